"""Dimensions written as expressions of names: past_sequence + 1, 2*batch, n // 8."""

from __future__ import annotations

import re
from collections.abc import Mapping

LONGEST = 120  # characters; exporters write a few
TOKEN = re.compile(r"\s*(?:(\d{1,18}(?!\d))|([A-Za-z_][\w.]*)|(//|[-+*/()]))")


class NotAnExpression(Exception):
    """The text is not an expression of known names."""


def evaluate(text: str, numbers: Mapping[str, int]) -> int | None:
    """The value of an expression; None if it is none or a name in it has no number.

    Operators: + - * // and /, which must divide without remainder.
    """
    if text in numbers:
        return numbers[text]
    try:
        return Parser(tokens(text), numbers).parse()
    except NotAnExpression:
        return None


def names(text: str) -> set[str] | None:
    """The names in an expression; None for a text that is no expression."""
    try:
        found = {t for t in tokens(text) if t[0].isalpha() or t[0] == "_"}
        Parser(tokens(text), dict.fromkeys(found, 1), exact=False).parse()
    except NotAnExpression:
        return None
    return found


def tokens(text: str) -> list[str]:
    if len(text) > LONGEST:
        raise NotAnExpression
    found: list[str] = []
    at, end = 0, len(text.rstrip())
    while at < end:
        match = TOKEN.match(text, at)
        if match is None:
            raise NotAnExpression
        found.append(match.group(match.lastindex or 0))
        at = match.end()
    return found


class Parser:
    """Recursive descent over tokens, evaluating on the way.

    exact: a division by zero or with a remainder has no value.
    """

    def __init__(
        self, found: list[str], numbers: Mapping[str, int], exact: bool = True
    ) -> None:
        self.rest = found[::-1]
        self.numbers = numbers
        self.exact = exact

    def parse(self) -> int:
        value = self.sum()
        if self.rest:
            raise NotAnExpression
        return value

    def next_is(self, *texts: str) -> bool:
        return bool(self.rest) and self.rest[-1] in texts

    def sum(self) -> int:
        value = self.product()
        while self.next_is("+", "-"):
            sign = 1 if self.rest.pop() == "+" else -1
            value += sign * self.product()
        return value

    def product(self) -> int:
        value = self.factor()
        while self.next_is("*", "/", "//"):
            sign = self.rest.pop()
            other = self.factor()
            if sign == "*":
                value *= other
                continue
            if other == 0 or (sign == "/" and value % other):
                if self.exact:
                    raise NotAnExpression
                other = 1
            value //= other
        return value

    def factor(self) -> int:
        if not self.rest:
            raise NotAnExpression
        token = self.rest.pop()
        if token == "-":
            return -self.factor()
        if token == "(":
            value = self.sum()
            if not self.next_is(")"):
                raise NotAnExpression
            self.rest.pop()
            return value
        if token[0].isdigit():
            return int(token)
        if token not in self.numbers:
            raise NotAnExpression
        return self.numbers[token]
