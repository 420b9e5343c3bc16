"""What workers are asked for about reductions; the other jobs are in jobs.py."""

from __future__ import annotations

from dataclasses import dataclass

from nanoloom.ir import mlir
from nanoloom.notation.mlir_text import Text
from nanoloom.workers.compile_kernel import context
from nanoloom.workers.messages import Stage
from nanoloom_papers.affine.counting import counts, counts_of_loops, detection_seconds
from nanoloom_papers.affine.report import Loop, describe


@dataclass(frozen=True)
class FindReductions:
    """The loops of MLIR text and what each of them reduces."""

    text: Text

    def run(self, stage: Stage) -> tuple[Loop, ...]:
        """Raises ModelError for what does not parse."""
        del stage
        with context():
            return describe(self.text.parsed(), self.text.text)


@dataclass(frozen=True)
class CountReductions:
    """How many reductions a kernel's loops have, and how many MLIR itself finds.

    of_loops: of text that is affine loops already.
    """

    text: str
    of_loops: bool = False

    def run(self, stage: Stage) -> tuple[int, int]:
        """Raises what lowering the kernel raises."""
        del stage
        with context():
            module = mlir.ir.Module.parse(self.text)
            return counts_of_loops(module) if self.of_loops else counts(module)


@dataclass(frozen=True)
class TimeReductions:
    """Seconds that the reduction map of a kernel's loops takes."""

    text: str

    def run(self, stage: Stage) -> float:
        """Raises what lowering the kernel raises."""
        del stage
        with context():
            return detection_seconds(mlir.ir.Module.parse(self.text))
