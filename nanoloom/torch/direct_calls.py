"""The direct calls of a program for the shapes that came last, as variants are kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from nanoloom.api.program import MOST_BYTES, MOST_VARIANTS
from nanoloom.runtime.bounded_cache import BoundedCache
from nanoloom.torch.direct_call import DirectCall

Shapes = tuple[torch.Size | None, ...]  # None of a number


class DirectCalls:
    """A call gives the results; None where it must be done the long way.

    same_words: how the weights of what is run are looked at.
    """

    def __init__(self) -> None:
        self._last: DirectCall | None = None
        self._kept = BoundedCache[Shapes, DirectCall](
            MOST_VARIANTS, MOST_BYTES, lambda _, x: x.variant.instance.arena_bytes
        )

    @property
    def same_words(self) -> Any:
        return self._last and self._last.same_words  # of what is in memory

    def __call__(self, args: Sequence[Any]) -> list[Any] | None:
        last = self._last
        if last is None:
            return None
        if (made := last(args)) is not None:
            return made
        found = self._kept.get(shapes_of(last, args))
        if found is None or found is last:
            return None
        self._last = found
        return found(args)

    def keep(self, direct: DirectCall | None, args: Sequence[Any]) -> None:
        """Let calls with arguments of these shapes be this one."""
        if direct is not None:
            self._kept.put(shapes_of(direct, args), direct)
        self._last = direct


def shapes_of(direct: DirectCall, args: Sequence[Any]) -> Shapes:
    given = [args[place] for place, *_ in direct.inputs]
    return tuple([x.shape if isinstance(x, torch.Tensor) else None for x in given])
