"""The strings of a model at a call: numbers on the way in, strings on the way out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nanoloom.errors import InputError

Array = np.ndarray
Given = Mapping[str, Any]
Run = Callable[[Given], dict[str, Array]]


@dataclass(frozen=True)
class Strings:
    """What code that computes with numbers has for strings: their places in `known`.

    inputs, outputs: names of those that hold strings.
    """

    known: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.inputs or self.outputs)

    def call(self, given: Given, run: Run) -> dict[str, Array]:
        """run: the code, with numbers for strings.  Raises InputError."""
        vocabulary = Vocabulary.of(self.known)
        named = [name for name in self.inputs if name in given]
        numbers = {name: vocabulary.encoded(name, given[name]) for name in named}
        made = run({**given, **numbers})
        decoded = {name: vocabulary.decoded(made[name]) for name in self.outputs}
        return {**made, **decoded}


NO_STRINGS = Strings()


@dataclass
class Vocabulary:
    """codes: of strings, the model's first and then those that one call brings."""

    codes: dict[str, int] = field(default_factory=dict[str, int])

    @classmethod
    def of(cls, texts: Iterable[str]) -> Vocabulary:
        return cls({text: number for number, text in enumerate(texts)})

    def encoded(self, name: str, given: object) -> Array:
        """An array of strings as int64.  Raises InputError for anything else."""
        array = strings_of(name, given)
        texts = array.reshape(-1).tolist()
        numbers = [self.codes.setdefault(text, len(self.codes)) for text in texts]
        return np.array(numbers, np.int64).reshape(array.shape)

    def decoded(self, numbers: Array) -> Array:
        """Strings, in an array of objects."""
        table = np.empty(len(self.codes), object)
        table[:] = list(self.codes)
        return table[numbers.reshape(-1)].reshape(numbers.shape)


def strings_of(name: str, given: object) -> Array:
    """An input as an array of str objects.  Raises InputError for anything else."""
    array = np.asarray(given)
    texts = array.reshape(-1).tolist()
    if array.dtype.kind not in "UTO" or not all(isinstance(t, str) for t in texts):
        raise InputError(
            f"is {array.dtype.name}, the model wants strings",
            where=f"input {name}",
            hint="give an array of str",
        )
    return array.astype(object)
