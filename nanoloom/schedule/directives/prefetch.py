"""What comes into the caches before it is read."""

from __future__ import annotations

from dataclasses import dataclass, replace

from nanoloom.nest.nest import LoopNest
from nanoloom.schedule.directives.directive import (
    Directive,
    loop_of,
    refuse,
    require_number,
    require_tuple,
    stage_of,
)

LEVELS = 3  # of caches, as far as instructions tell them apart


@dataclass(frozen=True)
class Prefetch(Directive):
    """for panel: for k: f(panel, k)
      ->  for panel: for k: { fetch a part of the next panel; f(panel, k) }

    argument: which of the kernel's arguments comes before it is read.

    Of a weight in panels (Packing): loops, as STAGE.LOOP, run over the tiles that read
    one panel, and `lines` of the next panel come in each round of their sums, at most.
    Without loops a panel is read once and not kept: its own lines come, `ahead` of them
    in front of the reader.

    Of an operand that lies as it is, for a nanokernel that copies its panel: it comes
    so many steps of the sum `ahead`; so do rows beside a weight in panels, by whole
    rounds of the sum's outermost axis: those of an image further down.  By one, where
    only a run knows how long a round is.

    level: of the caches that it comes into, 1 for the nearest to the core.
    """

    argument: int
    lines: int = 0
    ahead: int = 0
    loops: tuple[str, ...] = ()
    level: int = 2

    def apply(self, nest: LoopNest) -> LoopNest:
        require_number(self, "argument", self.argument, least=0)
        require_tuple(self, "loops", self.loops)
        found = [b for b in nest.buffers if b.argument == self.argument]
        if not found:
            refuse(self, f"the kernel has no argument {self.argument}")
        if (self.loops or self.lines) and not found[0].panels:
            refuse(self, f"argument {self.argument} comes in no panels: pack it first")
        require_number(self, "lines", self.lines, least=int(bool(self.loops)))
        require_number(self, "ahead", self.ahead, least=int(not self.loops))
        if (self.lines and not self.loops) or (self.ahead and self.loops):
            refuse(self, "lines are of a panel that loops read, ahead is for others")
        require_number(self, "level", self.level)
        if self.level > LEVELS:
            refuse(self, f"level is {self.level}: caches 1 to {LEVELS} are known")
        for name in self.loops:
            stage, _, loop = name.rpartition(".")
            stage_of(self, nest, stage)
            loop_of(self, nest.placement(stage), loop)
        word = f"fetched {self.ahead} ahead"
        if self.loops:
            word = f"fetched {self.lines} lines a round in {', '.join(self.loops)}"
        return nest.with_buffer(replace(found[0], notes=(*found[0].notes, word)))
