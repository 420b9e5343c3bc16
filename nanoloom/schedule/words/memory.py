"""What comes into the caches before it is read."""

from __future__ import annotations

from dataclasses import dataclass, replace

from nanoloom.nest.nest import LoopNest
from nanoloom.schedule.words.word import Word, refuse, require_number


@dataclass(frozen=True)
class Prefetch(Word):
    """for panel: for k: f(panel, k)
      ->  for panel: for k: { fetch a part of the next panel; f(panel, k) }

    argument: which of the kernel's arguments comes before it is read.  Of a weight in
    panels (Packing), lines: of a round of the innermost loop, at most, for a panel
    that several tiles read; ahead: so many lines in front of the reader, where a panel
    is read once and not kept.  Of an operand that lies as it is, for a nanokernel that
    copies its panel, ahead: so many steps of the sum; lines: none.
    """

    argument: int
    lines: int = 0
    ahead: int = 0

    def apply(self, nest: LoopNest) -> LoopNest:
        require_number(self, "argument", self.argument, least=0)
        found = [b for b in nest.buffers if b.argument == self.argument]
        if not found:
            refuse(self, f"the kernel has no argument {self.argument}")
        panels = bool(found[0].panels)
        require_number(self, "lines", self.lines, least=int(panels))
        require_number(self, "ahead", self.ahead, least=int(not panels))
        if self.lines and not panels:
            refuse(
                self,
                f"argument {self.argument} comes in no panels: it has no lines",
                "Packing in front of it makes panels, ahead alone is for what is flat",
            )
        word = f"fetched {self.lines} lines a round"
        word = word if panels else f"fetched {self.ahead} steps ahead"
        return nest.with_buffer(replace(found[0], notes=(*found[0].notes, word)))
