"""What the tables of recipes are written with."""

from __future__ import annotations

from collections.abc import Callable

from tests.fuzz.sketch import Sketch

Recipe = Callable[[Sketch, str], None]  # adds a node of an operator, or raises Rejected


def words(text: str) -> list[str]:
    return text.split()
