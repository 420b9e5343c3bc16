"""Which layers stay in floats, so that the outputs are within a limit.

The worst first, and as few as the limit asks for: the number is doubled until it is
enough, and then halved between.  The worst alone change the outputs most.
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
    """order: all layers.  ranks: asks for them from the worst on, where that matters.

    build, errors: of a model with some of them.
    """

    order: Sequence[str]
    ranks: Callable[[], Sequence[str]]
    limit: float
    build: Build[Model]
    errors: Errors[Model]
    progress: Callable[[str, int, int], None]
    tried: dict[int, Trial[Model]] = field(default_factory=dict)
    ranked: Sequence[str] = ()

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
        self.ranked = self.ranks()
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


def by_effect(
    layers: Sequence[str],
    build: Build[Model],
    errors: Errors[Model],
    progress: Callable[[str, int, int], None],
) -> list[str]:
    """The layers from the one on that alone changes an output most."""
    effects: dict[str, float] = {}
    for done, name in enumerate(layers):
        progress("quantizing one layer at a time", done, len(layers))
        effects[name] = max(errors(build([name])).values(), default=0.0)
    return sorted(layers, key=lambda name: -effects[name])
