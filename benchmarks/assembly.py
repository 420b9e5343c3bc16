"""The loops of assembly text."""

from __future__ import annotations

import re

LABEL = re.compile(r"^(\.L\w+):")


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


def count(lines: list[str], word: str) -> int:
    """How many of the instructions begin with this word, after a prefix ({vex})."""
    return sum(line.removeprefix("{vex}").lstrip().startswith(word) for line in lines)
