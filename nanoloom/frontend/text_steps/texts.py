"""One call of a program that takes or gives strings: its code computes with numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from nanoloom.errors import Error
from nanoloom.frontend.text_steps.steps import TextStep, computed
from nanoloom.interface.check_inputs import Spec, check_inputs
from nanoloom.interface.vocabulary import Array, Given, Run, Strings, strings_of


class Side(Spec, Protocol):
    """An input or output, and whether it holds strings."""

    @property
    def is_text(self) -> bool: ...


@dataclass(frozen=True)
class Texts:
    """strings: of the model, whose places are their numbers.  steps: before the code.

    inputs: of the model; entries: of the code, which are the same without steps.
    """

    strings: Sequence[str]
    steps: Sequence[TextStep]
    inputs: Sequence[Side]
    entries: Sequence[Side]
    outputs: Sequence[Side]

    def __bool__(self) -> bool:
        sides = (*self.inputs, *self.entries, *self.outputs)
        return any(x.is_text for x in sides)

    def call(self, given: Given, run: Run) -> dict[str, Array]:
        """run: the code, with numbers for strings.  Raises InputError."""
        if not hasattr(given, "keys"):
            return run(given)  # which says what is wrong
        return self.of_code.call(self.stepped(given) if self.steps else given, run)

    @property
    def of_code(self) -> Strings:
        """What is left of them behind the steps."""
        inputs, outputs = (
            tuple(x.name for x in sides if x.is_text)
            for sides in (self.entries, self.outputs)
        )
        return Strings(tuple(self.strings), inputs, outputs)

    def spelled(self, given: Given) -> dict[str, Any]:
        """Inputs or outputs, with strings for places, which code has without Python; a
        place that is no string's is one that the model does not name."""
        names = {x.name for x in (*self.inputs, *self.outputs) if x.is_text}

        def text(place: int) -> str:
            known = 0 <= place < len(self.strings)
            return self.strings[place] if known else f"string {place}"

        def spelled(array: Array) -> Array:
            texts = [text(place) for place in array.reshape(-1).tolist()]
            return np.array(texts, object).reshape(array.shape)

        wanted = {k for k in names & {*given} if given[k].dtype.kind == "i"}
        return {**given, **{k: spelled(given[k]) for k in wanted}}

    def require_no_steps(self, what: str) -> None:
        """Raise Error for what has no Python to run them."""
        if self.steps:
            names = ", ".join(dict.fromkeys(step.operator for step in self.steps))
            raise Error(
                f"{what} cannot look into strings, as {names} do",
                hint="call the program from Python, or do that part before the model",
            )

    def stepped(self, given: Given) -> dict[str, Any]:
        """What the code takes: inputs of the model, and what steps make of them."""
        texts = [x.name for x in self.inputs if x.is_text and x.name in given]
        strings = {name: strings_of(name, given[name]) for name in texts}
        places = {name: np.zeros(x.shape, np.int64) for name, x in strings.items()}
        check_inputs(self.inputs, {**given, **places})
        found = computed(self.steps, strings)
        return {x.name: found.get(x.name, given.get(x.name)) for x in self.entries}


NO_TEXTS = Texts((), (), (), (), ())
