"""What is said of a compiled model: values, which JSON brings to other places.

Times are seconds of a run of the model, of all calls of a kernel together; None where
nothing was measured.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from nanoloom.errors import Error

FORMAT = 1  # of the JSON
# Resources: L2 is what comes from the second-level cache into the first, or goes there.
ARITHMETIC, L2, MEMORY = "arithmetic", "L2", "memory"


@dataclass(frozen=True)
class Node:
    """A node of the model.  kernels: that have operations of it; () for none."""

    name: str
    operator: str
    kernels: tuple[str, ...] = ()


@dataclass(frozen=True)
class Demand:
    """What a kernel takes of one resource: ARITHMETIC, L2 or MEMORY.

    amount: operations or bytes.  rate: of them a second, as measured.
    """

    resource: str
    amount: int
    rate: float | None = None

    @property
    def seconds(self) -> float | None:
        """At the measured rate, the least that it takes."""
        return self.amount / self.rate if self.rate else None


@dataclass(frozen=True)
class Fused:
    """A stage that is computed at a loop of one that reads it.  saved: bytes that go
    neither to memory nor back; again: points that are computed more than once."""

    producer: str
    consumer: str
    at: str
    saved: int
    again: int


@dataclass(frozen=True)
class NotFused:
    """A tensor that goes through memory.  readers: the layers that read it."""

    readers: tuple[str, ...]
    bytes: int
    why: str


@dataclass(frozen=True)
class RunnerUp:
    """A candidate for the schedule.  cost: predicted, cycles for the least work."""

    reason: str
    cost: float
    chosen: bool = False


@dataclass(frozen=True)
class KernelReport:
    """One kernel: what it computes, how, and how fast.

    layers: that its calls are named for.  nodes: of the model, that are in it.  loops:
    as the schedule made them; directives: the schedule; reason: why.  assembly: of its
    longest innermost loop, of so many.  cost: predicted cycles for the least work that
    there is, 1 at best; predicted: in seconds.  limit: the port or level that it waits
    for.  low, high: the tenth and the ninetieth percentile of `measured`.  fallbacks:
    what is slower than it could be, in words.
    """

    name: str
    layers: tuple[str, ...]
    nodes: tuple[str, ...]
    calls: int
    loops: str
    directives: str
    reason: str
    assembly: str
    inner_loops: int
    demands: tuple[Demand, ...]
    cost: float | None = None
    predicted: float | None = None
    limit: str = ""
    measured: float | None = None
    low: float | None = None
    high: float | None = None
    fused: tuple[Fused, ...] = ()
    not_fused: tuple[NotFused, ...] = ()
    fallbacks: tuple[str, ...] = ()
    candidates: tuple[RunnerUp, ...] = ()

    @property
    def operations(self) -> int:
        return self.demands[0].amount if self.demands else 0

    @property
    def share(self) -> float | None:
        """Of the measured roof: the least time by any resource, of the time taken."""
        least = [each.seconds for each in self.demands if each.seconds is not None]
        return max(least) / self.measured if least and self.measured else None


@dataclass(frozen=True)
class Explanation:
    """A compiled model.

    measured: median seconds of a run, timed from outside.  notes: what holds for all of
    it, in words.
    """

    model: str
    target: str
    precision: str
    version: str
    threads: int
    nodes: tuple[Node, ...]
    kernels: tuple[KernelReport, ...]
    measured: float | None = None
    runs: int = 0
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON; seconds, operations and bytes."""
        return {"format": FORMAT, **asdict(self)}

    @staticmethod
    def from_json(text: str, where: str = "") -> Explanation:
        """The inverse; raises Error for what is none, or of another format."""
        try:
            data = json.loads(text)
        except ValueError:
            data = None
        if not isinstance(data, dict) or "kernels" not in data:
            raise Error("is no report", where=where, hint="explain --json writes one")
        if data.pop("format", None) != FORMAT:
            hint = f"this version reads format {FORMAT}: write it anew"
            raise Error("is a report of another format", where=where, hint=hint)
        try:
            return restored(Explanation, data)
        except (TypeError, KeyError) as wrong:
            raise Error(f"is a damaged report: {wrong}", where=where) from None


PARTS: dict[tuple[type, str], type] = {
    (Explanation, "nodes"): Node,
    (Explanation, "kernels"): KernelReport,
    (KernelReport, "demands"): Demand,
    (KernelReport, "fused"): Fused,
    (KernelReport, "not_fused"): NotFused,
    (KernelReport, "candidates"): RunnerUp,
}


def restored(kind: Any, data: dict[str, Any]) -> Any:
    """A value of a class from its fields, lists as tuples."""
    made: dict[str, Any] = {}
    for field in fields(kind):
        if field.name in data:
            value = data[field.name]
            part = PARTS.get((kind, field.name))
            if part is not None:
                value = [restored(part, each) for each in value]
            made[field.name] = tuple(value) if isinstance(value, list) else value
    return kind(**made)


def read(path: Path) -> Explanation:
    """A report that was kept as JSON; raises Error for what is none."""
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        raise Error("no such report", where=str(path)) from None
    except (OSError, UnicodeDecodeError) as wrong:
        raise Error(f"cannot be read: {wrong}", where=str(path)) from None
    return Explanation.from_json(text, str(path))
