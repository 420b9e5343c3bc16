"""Weights in the order the nanokernel reads them, made while compiling."""

from __future__ import annotations

from dataclasses import dataclass, replace

from nanoloom.nest.nest import LoopNest, Role
from nanoloom.schedule.directives.directive import Directive, refuse, require_number
from nanoloom.weights.panels import Panels


@dataclass(frozen=True)
class Pack(Directive):
    """logical [...] -> [shared..., panels, reduced..., columns], zeros at the edges.

    argument: which kernel argument.  shared, column, reduced: its dimensions by role.
    columns, group, sums, steps, bits, differences: of the panels (weights/panels.py).
    """

    argument: int
    shared: tuple[int, ...]
    column: int
    reduced: tuple[int, ...]
    columns: int
    group: int = 1
    sums: int = 0
    steps: int = 1
    bits: int = 0
    differences: bool = False

    @property
    def panels(self) -> Panels:
        """What is made of the weight."""
        return Panels(
            self.shared, self.column, self.reduced, self.columns, self.group, self.sums,
            self.steps, self.bits, self.differences,
        )  # fmt: skip

    def apply(self, nest: LoopNest) -> LoopNest:
        """The nest with a weight that lies otherwise."""
        require_number(self, "argument", self.argument, least=0)
        packed = (b for b in nest.buffers if b.argument == self.argument)
        buffer = next(packed, None)
        if buffer is None or buffer.role is not Role.CONSTANT:
            refuse(self, f"argument {self.argument} is no weight: none else is packed")
        for stage in nest.stages:
            for number, _ in nest.placement(stage.name).copied:
                if stage.reads[number].buffer == buffer.name:
                    refuse(self, f"{stage.name} reads a copy of {buffer.name}")
        return nest.with_buffer(replace(buffer, panels=self.columns))
