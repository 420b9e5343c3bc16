"""Texts as string literals and in comments of C."""

from __future__ import annotations


def c_string(text: str) -> str:
    """A C string literal of the text's UTF-8 bytes, in plain ASCII.

    Octal escapes of three digits end by themselves, unlike hexadecimal ones; a question
    mark is escaped because two of them may begin a trigraph.
    """
    plain = set(range(32, 127)) - set(b'"\\?')
    body = (chr(b) if b in plain else f"\\{b:03o}" for b in text.encode())
    return f'"{"".join(body)}"'


def c_comment(text: str) -> str:
    """Text that cannot end the comment it stands in, nor its line."""
    printable = "".join(c if c.isprintable() else " " for c in text)
    return printable.replace("*/", "* /").replace("/*", "/ *").rstrip("\\")
