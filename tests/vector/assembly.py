"""The loops of assembly text, for tests that look into them."""

from __future__ import annotations

import re

LABEL = re.compile(r"^(\.L\w+):")
STACK = re.compile(
    r"\(%rsp|\[sp\b|\(sp\)"
)  # frame pointers hold data in leaf functions


def inner_loops(text: str) -> list[list[str]]:
    """The instructions of every loop that holds no other one, without labels."""
    lines = [line.strip() for line in text.splitlines()]
    places = {m[1]: i for i, line in enumerate(lines) if (m := LABEL.match(line))}
    found: list[tuple[int, int]] = []
    for end, line in enumerate(lines):
        target = line.split()[-1] if line else ""
        if target in places and places[target] < end:
            found.append((places[target] + 1, end + 1))
    return [
        [line for line in lines[a:b] if is_instruction(line)]
        for a, b in found
        if not any((c, d) != (a, b) and a <= c and d <= b for c, d in found)
    ]


def is_instruction(line: str) -> bool:
    return bool(line) and not line.startswith((".", "#", "//"))


def loop_with(text: str, word: str) -> list[str]:
    """The inner loop with most of these instructions."""
    found = max(inner_loops(text), key=lambda loop: count(loop, word))
    assert count(found, word), f"no inner loop has {word}"
    return found


def count(lines: list[str], word: str) -> int:
    """How many of the instructions begin with this word."""
    return sum(line.startswith(word) for line in lines)


def touches_stack(lines: list[str]) -> list[str]:
    """The instructions that read or write the stack: spills."""
    return [line for line in lines if STACK.search(line)]
