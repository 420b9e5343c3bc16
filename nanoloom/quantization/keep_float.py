"""Which layers stay in floats, so that the outputs are within a limit.

Layers are left out in the order of the error that each adds, the worst first: as few as
the limit asks for.  The number is doubled until it is enough, and then halved between.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from nanoloom.errors import Error

Model = TypeVar("Model")
Build = Callable[[Sequence[str]], Model]
Errors = Callable[[Model], Mapping[str, float]]


@dataclass(frozen=True)
class Trial(Generic[Model]):
    """A model with these layers quantized.  errors: of its outputs."""

    layers: tuple[str, ...]
    model: Model
    errors: Mapping[str, float]

    @property
    def worst(self) -> float:
        return max(self.errors.values(), default=0.0)


@dataclass
class Search(Generic[Model]):
    """The layers from the worst on; build and errors of a model with some of them."""

    ranked: Sequence[str]
    order: Sequence[str]
    limit: float
    build: Build[Model]
    errors: Errors[Model]
    progress: Callable[[str, int, int], None]
    tried: dict[int, Trial[Model]] = field(default_factory=dict)

    def within(self, left: int) -> bool:
        """Whether it is enough to leave so many of the worst in floats."""
        return self.trial(left).worst <= self.limit

    def trial(self, left: int) -> Trial[Model]:
        if left not in self.tried:
            said = f"comparing outputs, {left} layers left in floats"
            self.progress(said, 0, 0)
            floats = {*self.ranked[:left]}
            layers = tuple(name for name in self.order if name not in floats)
            model = self.build(layers)
            self.tried[left] = Trial(layers, model, self.errors(model))
        return self.tried[left]

    def best(self) -> Trial[Model]:
        """The model with the fewest layers in floats; raises Error if there is none."""
        if self.within(0):
            return self.trial(0)
        too_few, enough = 0, 1
        while enough < len(self.ranked) and not self.within(enough):
            too_few, enough = enough, 2 * enough
        enough = min(enough, len(self.ranked))
        while enough - too_few > 1:
            middle = (too_few + enough) // 2
            too_few, enough = (
                (too_few, middle) if self.within(middle) else (middle, enough)
            )
        if enough == len(self.ranked):
            raise Error(
                f"no layer can be quantized within an error of {self.limit:.3g}: with"
                f" all of them it is {self.trial(0).worst:.3g}",
                hint="allow more with --max-error, or give samples that are like those"
                " of use",
            )
        return self.trial(enough)
