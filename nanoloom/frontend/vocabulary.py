"""The strings of a model at a call: numbers on the way in, strings on the way out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from nanoloom.errors import InputError

Array = np.ndarray


@dataclass
class Vocabulary:
    """codes: of strings, the model's first and then those that one call brings."""

    codes: dict[str, int] = field(default_factory=dict[str, int])

    @classmethod
    def of(cls, texts: Iterable[str]) -> Vocabulary:
        return cls({text: number for number, text in enumerate(texts)})

    def encoded(self, name: str, given: object) -> Array:
        """An array of strings as int64.  Raises InputError for anything else."""
        array = np.asarray(given)
        texts = array.reshape(-1).tolist()
        if array.dtype.kind not in "UO" or not all(isinstance(t, str) for t in texts):
            raise InputError(
                f"is {array.dtype.name}, the model wants strings",
                where=f"input {name}",
                hint="give an array of str",
            )
        numbers = [self.codes.setdefault(text, len(self.codes)) for text in texts]
        return np.array(numbers, np.int64).reshape(array.shape)

    def decoded(self, numbers: Array) -> Array:
        """Strings, in an array of objects."""
        table = np.empty(len(self.codes), object)
        table[:] = list(self.codes)
        return table[numbers]


class Side(Protocol):
    """An input or output: its name, and whether it holds strings."""

    @property
    def name(self) -> str: ...
    @property
    def is_text(self) -> bool: ...


def with_texts(
    inputs: Sequence[Side],
    outputs: Sequence[Side],
    texts: Sequence[str],
    given: Mapping[str, object],
    run: Callable[[Mapping[str, object]], dict[str, Array]],
) -> dict[str, Array]:
    """One call of a program that computes with numbers of strings."""
    if not hasattr(given, "keys"):
        return run(given)  # which says what is wrong
    vocabulary = Vocabulary.of(texts)
    named = [x.name for x in inputs if x.is_text and x.name in given]
    numbers = {name: vocabulary.encoded(name, given[name]) for name in named}
    made = run({**given, **numbers})
    for name in (x.name for x in outputs if x.is_text):
        made[name] = vocabulary.decoded(made[name])
    return made
