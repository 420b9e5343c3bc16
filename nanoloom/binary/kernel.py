"""A compiled kernel, and how the cache keeps one."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

from nanoloom.binary.sizes import COUNTED
from nanoloom.schedule.packing import Pack


@dataclass(frozen=True)
class CompiledKernel:
    """A kernel's object: its phases' numbers of tasks, and how it wants its weights."""

    object: bytes
    tasks: tuple[int, ...]
    packings: tuple[Pack, ...]
    needs_tiles: bool
    scratch_bytes: tuple[int, ...]  # of each phase, in each thread
    arena_bytes: tuple[int, ...] = ()  # of its own tensors, arguments behind the others

    @property
    def is_counted(self) -> bool:
        """Whether sizes decide how many tasks it has, or what scratch it takes."""
        return COUNTED in (*self.tasks, *self.scratch_bytes)

    def to_bytes(self) -> bytes:
        """A line of JSON, then the object."""
        facts = {
            "tasks": self.tasks,
            "packings": [asdict(packing) for packing in self.packings],
            "needs_tiles": self.needs_tiles,
            "scratch_bytes": self.scratch_bytes,
            "arena_bytes": self.arena_bytes,
        }
        return json.dumps(facts).encode() + b"\n" + self.object

    @classmethod
    def from_bytes(cls, data: bytes) -> CompiledKernel:
        """The inverse of `to_bytes`."""
        head, code = data.split(b"\n", 1)
        facts = json.loads(head)
        packings = tuple(Pack(**tuples(p)) for p in facts["packings"])
        tasks, scratch = tuple(facts["tasks"]), tuple(facts["scratch_bytes"])
        arena = tuple(facts["arena_bytes"])
        return cls(code, tasks, packings, facts["needs_tiles"], scratch, arena)


def tuples(facts: dict[str, Any]) -> dict[str, Any]:
    """JSON has lists where a frozen value has tuples."""
    return {k: tuple(v) if isinstance(v, list) else v for k, v in facts.items()}
