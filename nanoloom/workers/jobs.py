"""What workers are asked for: a kernel's code or text, what is in a script.

schedule -> vector -> llvm -> object, a kernel each

Values, which load nothing: who asks for them does not do the work (compile_kernel.py).
"""

from __future__ import annotations

from dataclasses import dataclass

from nanoloom.cache import key
from nanoloom.options import Strategy, facts
from nanoloom.target.facts import Target
from nanoloom.workers.messages import Stage


@dataclass(frozen=True)
class MakeKernel:
    """vector -> llvm -> object for one kernel: the bytes of a CompiledKernel.

    text: the kernel on tensors.  script: its schedule.  given: whether that is the
    user's.  strategy: of CompileOptions; a kernel has a script or a strategy.
    """

    name: str
    text: str
    script: str
    given: bool
    target: Target
    strategy: Strategy | None = None

    @property
    def entry(self) -> str:
        """Of the cache that keeps what comes of it."""
        way = self.strategy
        return key("kernel", self.name, self.text, self.script, facts(self.target), way)

    def run(self, stage: Stage) -> bytes:
        """Raises Error, naming the schedule, for a script that does not fit."""
        from nanoloom.workers.compile_kernel import made

        return made(self, stage)


@dataclass(frozen=True)
class ShowKernel:
    """A kernel at a stage (schedule, vector, llvm or asm), as text."""

    kernel: MakeKernel
    at: str

    @property
    def given(self) -> bool:
        """Whether the script is the user's."""
        return self.kernel.given

    def run(self, stage: Stage) -> str:
        """Raises what making the kernel raises."""
        from nanoloom.workers.compile_kernel import shown

        del stage
        return shown(self.kernel, self.at)


@dataclass(frozen=True)
class ReadScript:
    """The names of the operations of a script that is read, not applied."""

    text: str

    def run(self, stage: Stage) -> list[str]:
        """Raises Error for what does not parse."""
        from nanoloom.workers.compile_kernel import operations_of

        del stage
        return operations_of(self.text)
