"""A line for those who miss the pictures of a measurement."""

from __future__ import annotations

from nanoloom.cli.failures import say

EXTRA = "pip install 'nanoloom[bench]'"


def said_undrawn() -> bool:
    """Whether nothing can be drawn; stderr then says what is missing."""
    from nanoloom_papers.reproduce.pictures import can_draw

    if can_draw():
        return False
    say(f"nanoloom: no pictures without matplotlib; {EXTRA}")
    return True
