"""A computation: outputs, and all the statements that they are made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING

from nanoloom.cache.digest import of
from nanoloom.errors import Error
from nanoloom.frontend.memory_claims import available_memory, in_words
from nanoloom.notation.buffer import Buffer, Statement

if TYPE_CHECKING:
    from nanoloom.linalg.stage import LinalgModule


@dataclass(frozen=True, eq=False)
class Computation:
    """What `computation` makes of buffers; `nanoloom.compile` takes it like a model.

    statements: in an order in which they can run; inputs: in the order of their use.
    """

    statements: tuple[Statement, ...]
    inputs: tuple[Buffer, ...]
    constants: tuple[Buffer, ...]
    outputs: tuple[Buffer, ...]

    @property
    def place(self) -> str:
        """What it is called in messages."""
        return f"computation of {', '.join(b.name for b in self.outputs)}"

    @cached_property
    def digest(self) -> str:
        """Equal for what gives the same program."""
        arrays = [b.array.tobytes() for b in self.constants if b.array is not None]
        return of("computation", str(self), *arrays)

    def lower(self) -> LinalgModule:
        """The linalg stage; an MLIR context must be current."""
        from nanoloom.notation.lower import lower

        return lower(self)

    def __str__(self) -> str:
        lines = [f"input {buffer}" for buffer in self.inputs]
        lines += [f"constant {buffer}" for buffer in self.constants]
        lines += [str(statement) for statement in self.statements]
        lines += [f"output {buffer}" for buffer in self.outputs]
        return "\n".join(lines)


def computation(*outputs: Buffer) -> Computation:
    """The computation that makes these buffers, of the statements so far.

    Buffers without a statement are its inputs.  Raises Error for an output that nothing
    is said of, and for two buffers of one name.
    """
    if not outputs:
        raise Error("a computation has at least one output")
    require_buffers(outputs)
    for buffer in outputs:
        if not buffer.statements:
            raise Error(
                "is an output, but no statement writes it",
                where=f"buffer {buffer.name}",
                hint=f"write {buffer.name}[...] = ...",
            )
    if len(set(outputs)) != len(outputs):
        raise Error("an output is given twice")
    found: dict[Buffer, None] = {}
    for buffer in outputs:
        visit(buffer, found)
    require_names(list(found))
    require_memory(list(found))
    return Computation(
        tuple(statement for buffer in found for statement in buffer.statements),
        tuple(b for b in found if not b.statements and b.array is None),
        tuple(b for b in found if b.array is not None),
        outputs,
    )


def require_buffers(given: Sequence[object]) -> None:
    for each in given:
        if not isinstance(each, Buffer):
            raise Error(f"{each} is no buffer", hint="give buffers, not elements")


def visit(buffer: Buffer, found: dict[Buffer, None]) -> None:
    """Note a buffer behind all that it is made of."""
    waiting = [(buffer, False)]
    while waiting:
        each, is_done = waiting.pop()
        if is_done:
            found.setdefault(each)
        elif each not in found:
            waiting.append((each, True))
            reads = [x.buffer for s in each.statements for x in s.reads]
            waiting += [(x, False) for x in reversed(reads) if x is not each]


def require_names(found: Sequence[Buffer]) -> None:
    names = [buffer.name for buffer in found]
    for buffer in found:
        if names.count(buffer.name) > 1:
            raise Error(f"there are two buffers {buffer.name}", hint="rename one")


def require_memory(found: Sequence[Buffer]) -> None:
    """Raise Error for a buffer that is larger than the memory there is."""
    limit = available_memory()
    for buffer in found:
        need = prod(buffer.shape or ()) * buffer.dtype.itemsize
        if need > limit:
            raise Error(
                f"{buffer} needs {in_words(need)}, {in_words(limit)} of memory are free"
            )
