"""What comes into the caches before it is read."""

from __future__ import annotations

from dataclasses import dataclass, replace

from nanoloom.nest.nest import LoopNest
from nanoloom.schedule.words.word import Word, refuse, require_number

LINES = 8  # of a round: more of them keep its own loads waiting
AHEAD = 64  # lines, a page: the processor itself does not fetch over its end


@dataclass(frozen=True)
class Prefetch(Word):
    """for panel: for k: f(panel, k)
      ->  for panel: for k: { fetch a part of the next panel; f(panel, k) }

    argument: which of the kernel's arguments comes before it is read, a weight in
    panels (Packing).  lines: of a round of the innermost loop, at most, for a panel
    that several tiles read.  ahead: so many lines in front of the reader, where a panel
    is read once and not kept.
    """

    argument: int
    lines: int = LINES
    ahead: int = AHEAD

    def apply(self, nest: LoopNest) -> LoopNest:
        require_number(self, "argument", self.argument, least=0)
        require_number(self, "lines", self.lines)
        require_number(self, "ahead", self.ahead, least=0)
        found = [b for b in nest.buffers if b.argument == self.argument]
        if not found:
            refuse(self, f"the kernel has no argument {self.argument}")
        if not found[0].panels:
            refuse(self, f"argument {self.argument} comes in no panels: pack it first")
        word = f"fetched {self.lines} lines a round"
        return nest.with_buffer(replace(found[0], notes=(*found[0].notes, word)))
