"""Directives that change no loop, but what the code of a stage's loops does."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import ClassVar

from nanoloom.nest.loop import Placement
from nanoloom.nest.nest import LoopNest
from nanoloom.schedule.directives.directive import Directive, stage_of

CAPITAL = re.compile(r"(?<!^)(?=[A-Z])")


class Note(Directive):
    """A fact about a stage's code, as a script has it: an operation on the stage.

    operation: what that is called, by the class's own name if nothing is said.
    """

    operation: ClassVar[str] = ""
    stage: str

    @property
    def word(self) -> str:
        """The operation's name without the dialect's: reduce_jointly."""
        return self.operation or operation_of(type(self))

    @property
    def fields(self) -> Mapping[str, object]:
        """The operation's attributes."""
        return {name: value for name, value in vars(self).items() if name != "stage"}

    def apply(self, nest: LoopNest) -> LoopNest:
        stage_of(self, nest, self.stage)
        self.require(nest, nest.placement(self.stage))
        return nest

    def require(self, nest: LoopNest, placement: Placement) -> None:
        """That the stage's code can be so; else Error, with the reason."""
        raise NotImplementedError


def operation_of(kind: type[object]) -> str:
    """What a directive's operation is called: reduce_jointly of ReduceJointly."""
    return CAPITAL.sub("_", kind.__name__).lower()
