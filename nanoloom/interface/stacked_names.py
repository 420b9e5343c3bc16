"""Names of the parts of a tensor that stacks others: `past[1, 0, :, :]`.

A program has such a tensor as its parts, which lie apart from each other.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from typing import TypeAlias

Index: TypeAlias = tuple[int | None, ...]  # for each axis; None for all of it
ALL = ":"


def part_name(whole: str, index: Sequence[int | None]) -> str:
    """The name of a part; that of the whole, where nothing is chosen."""
    if all(i is None for i in index):
        return whole
    return f"{whole}[{', '.join(ALL if i is None else str(i) for i in index)}]"


@lru_cache(4096)  # of all parts, at each call of a session
def named_part(name: str) -> tuple[str, Index]:
    """The whole's name, and which part it is; () for what is no name of a part."""
    whole, bracket, words = name.removesuffix("]").rpartition("[")
    numbers = words.split(", ")
    is_part = ALL in numbers and all(w == ALL or w.isdecimal() for w in numbers)
    if not bracket or not is_part or part_name(whole, index_of(numbers)) != name:
        return name, ()
    return whole, index_of(numbers)


def whole_of(name: str) -> str:
    return named_part(name)[0]


def index_of(words: Iterable[str]) -> Index:
    return tuple(None if word == ALL else int(word) for word in words)


def parts_of(whole: str, names: Collection[str]) -> dict[str, Index]:
    """The names of a tensor's parts in their order, or its own alone, with ()."""
    if whole in names:
        return {whole: ()}
    found = {name: named_part(name) for name in names if name.startswith(whole)}
    return {name: index for name, (of, index) in found.items() if of == whole}
