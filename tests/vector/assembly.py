"""The loops of assembly text, for tests that look into them."""

from __future__ import annotations

import re

from benchmarks.assembly import count, inner_loops

STACK = re.compile(
    r"\(%rsp|\[sp\b|\(sp\)"
)  # frame pointers hold data in leaf functions


def loop_with(text: str, word: str) -> list[str]:
    """The inner loop with most of these instructions."""
    found = max(inner_loops(text), key=lambda loop: count(loop, word))
    assert count(found, word), f"no inner loop has {word}"
    return found


def touches_stack(lines: list[str]) -> list[str]:
    """The instructions that read or write the stack: spills."""
    return [line for line in lines if STACK.search(line)]


__all__ = ["count", "inner_loops", "loop_with", "touches_stack"]
