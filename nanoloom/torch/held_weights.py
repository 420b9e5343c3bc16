"""Whether weights are those that a program was compiled with."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from operator import attrgetter

import torch

from nanoloom.runtime import layout
from nanoloom.torch.tensor_words import paths, words_of

State = tuple[list[int], list[int]]
Same = Callable[[int, int], int]  # a library's same_words
ITEMS = tuple.__basicsize__  # where a tuple's items begin
PLAIN = frozenset({torch.Tensor, torch.nn.Parameter})
# Called by map: a loop of Python takes three times as long over hundreds of weights.
_start_of = torch.Tensor.data_ptr
_changes_of = attrgetter("_version")


class HeldWeights:
    """Tensors as they are now: where each is, and how often torch has seen it change.

    What goes past torch's counters is not seen: changes through `.data` or numpy, and
    those of inference tensors, which have no counter.
    """

    def __init__(self, tensors: Sequence[torch.Tensor]) -> None:
        self._state = state(tensors)
        self._words: layout.Words | None = None
        found = paths()
        if found is not None and all(type(t) in PLAIN for t in tensors):
            expected = [word for t in tensors for word in words_of(t, found)]
            self._words = layout.Words(
                (layout.Path * len(found))(*found),
                (ctypes.c_int64 * len(expected))(*expected),
                len(found),
                len(tensors),
            )
            self._pointer = ctypes.addressof(self._words)

    def are(self, tensors: tuple[torch.Tensor, ...], same: Same | None) -> bool:
        """Whether tensors, as many, are those, unchanged.

        same: compiled code that compares them in a tenth of Python's time.
        """
        if same is None or self._words is None:
            return state(tensors) == self._state
        return bool(same(self._pointer, id(tensors) + ITEMS))


def state(tensors: Sequence[torch.Tensor]) -> State:
    starts = list(map(_start_of, tensors))
    try:
        return starts, list(map(_changes_of, tensors))
    except RuntimeError:  # an inference tensor among them
        return starts, [-1 if t.is_inference() else t._version for t in tensors]
