"""An ONNX model in nanoloom and its peers: outputs compared, times taken in turns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from nanoloom.errors import Error
from nanoloom.inspect.timing import Times
from nanoloom.target.cached_host import to_dict
from nanoloom.target.facts import Target
from nanoloom_papers.reproduce import array_files
from nanoloom_papers.reproduce.contenders import NANOLOOM, PEAK, Company, Remote
from nanoloom_papers.reproduce.jobs import Job
from nanoloom_papers.reproduce.tables import told
from nanoloom_papers.reproduce.timing import Pace, interleaved

# The largest difference to the reference, by its largest number: what f32, bf16 and
# 8 bits leave of a network's outputs.  Random numbers instead of them are off by 1.
# Networks of random weights amplify a half that is rounded up or down: ONNX Runtime
# differs by 0.18 from itself without its optimizations (efficientnet_b0 in 8 bits).
AGREEMENT = {"f32": 1e-3, "bf16": 0.15, "int8": 0.3}
MODEL_PEERS = ("openvino", "onnxruntime")  # those that read ONNX files
Arrays = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Task:
    """A model file with inputs.

    functions: "module:function" of peers that read no ONNX, by key; constants and
    facts: what these need beside the inputs.  expected: the right outputs, else they
    are nanoloom's.  allowed: relative difference, else AGREEMENT's.
    """

    name: str
    path: Path
    inputs: Arrays
    precision: str = "f32"
    lowered: bool = False  # f32 computed in bf16
    functions: Mapping[str, str] = field(default_factory=dict[str, str])
    expected: Sequence[np.ndarray] | None = None
    constants: Arrays = field(default_factory=dict[str, np.ndarray])
    facts: Mapping[str, Any] = field(default_factory=dict[str, Any])
    allowed: float | None = None


@dataclass
class Measured:
    """What came out.

    differences: of outputs, relative.  steps: nanoloom's, in ns.  peak: GFLOP/s of a
    unit that took turns with all, None without one.
    """

    task: Task
    threads: int
    times: dict[str, Times] = field(default_factory=dict[str, Times])
    names: dict[str, str] = field(default_factory=dict[str, str])
    absent: dict[str, str] = field(default_factory=dict[str, str])
    differences: dict[str, float] = field(default_factory=dict[str, float])
    facts: dict[str, Any] = field(default_factory=dict[str, Any])
    steps: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])
    peak: float | None = None

    @property
    def kind(self) -> str:
        """f32, bf16 or int8."""
        return "bf16" if self.task.lowered else self.task.precision

    @property
    def best_peer(self) -> str | None:
        peers = [key for key in self.times if key != NANOLOOM.key]
        return min(peers, key=lambda key: self.times[key].median, default=None)

    @property
    def ratio(self) -> float | None:
        """nanoloom's time over that of the fastest peer."""
        best = self.best_peer
        if best is None or NANOLOOM.key not in self.times:
            return None
        return self.times[NANOLOOM.key].median / self.times[best].median

    def to_dict(self) -> dict[str, object]:
        """Of one task, for JSON."""
        return {
            "threads": self.threads,
            "median_seconds": {k: t.median for k, t in self.times.items()},
            "names": self.names,
            "differences": self.differences,
            "absent": self.absent,
        }


def absences(rows: Iterable[Measured]) -> list[str]:
    """Who did not take part in what, and why."""
    return [
        f"{row.task.name}: {told(key, reason)}"
        for row in rows
        for key, reason in row.absent.items()
    ]


def job_of(task: Task, threads: int, folder: Path, target: Target, cache: Path) -> Job:
    """What all are told.  cache: nanoloom's folder; folder: for the arrays."""
    inputs, arrays = folder / "inputs.npz", folder / "arrays.npz"
    array_files.save(inputs, task.inputs)
    array_files.save(arrays, {**task.inputs, **task.constants})
    own = {"target": to_dict(target), "cache": str(cache), "lowered": task.lowered}
    return Job(
        threads,
        str(task.path),
        str(inputs),
        str(arrays),
        "bf16" if task.lowered else "f32",
        "",
        {**task.facts, **own},
    )


def measure(
    task: Task, job: Job, company: Company, pace: Pace, unit: str = ""
) -> Measured:
    """Open, compare, time.  unit: of the target, whose peak takes turns with all."""
    made = Measured(task, job.threads, absent=company.absent())
    expected = list(task.expected or ())
    ready = [x for x in opened(made, company, job) if agrees(x, made, expected)]
    if unit:
        facts = {"target": job.facts["target"], "unit": unit}
        ready.append(company.open(PEAK.key, Job(job.threads, facts=facts)))
    for each, times in zip(ready, interleaved(ready, pace), strict=True):
        if each.key == PEAK.key:
            made.peak = each.facts["operations"] / times.median / 1e9
            continue
        made.times[each.key] = times
        made.names[each.key] = each.name
        if each.key == NANOLOOM.key:
            made.facts = each.facts
            made.steps = steps_of(each, pace)
    return made


def opened(made: Measured, company: Company, job: Job) -> list[Remote]:
    """nanoloom and the peers that take the job, nanoloom first."""
    found: list[Remote] = []
    functions = made.task.functions
    for peer in (NANOLOOM, *company.peers):
        if peer.key in made.absent:
            continue
        if peer.key not in (NANOLOOM.key, *MODEL_PEERS, *functions):
            continue
        try:
            found.append(company.open(peer.key, job, functions.get(peer.key, "")))
        except Error as error:
            made.absent[peer.key] = str(error)
    return found


def agrees(remote: Remote, made: Measured, expected: list[np.ndarray]) -> bool:
    """Whether its outputs are those expected; else the first one's become it."""
    try:
        outputs = remote.outputs()
    except Error as error:
        made.absent[remote.key] = str(error)
        return False
    if not expected:
        expected += outputs
    far = difference(outputs, expected)
    made.differences[remote.key] = far
    allowed = made.task.allowed
    if far <= (AGREEMENT[made.kind] if allowed is None else allowed):
        return True
    made.absent[remote.key] = f"wrong result: off by {far:.2g} of the largest number"
    return False


def difference(outputs: Sequence[np.ndarray], expected: Sequence[np.ndarray]) -> float:
    """max |output - expected| / max |expected| over all outputs; infinity: no match."""
    if len(outputs) != len(expected):
        return float("inf")
    found = 0.0
    for one, other in zip(outputs, expected, strict=True):
        if one.shape != other.shape:
            return float("inf")
        wide = other.astype(np.float64)
        gap = np.abs(one.astype(np.float64) - wide).max(initial=0.0)
        share = float(gap / max(np.abs(wide).max(initial=0.0), 1e-30))
        found = max(found, share if np.isfinite(share) else float("inf"))
    return found


def steps_of(remote: Remote, pace: Pace) -> list[tuple[str, int]]:
    """The median nanoseconds of every step, of as many runs as there are rounds."""
    runs = [remote.steps() for _ in range(max(3, pace.rounds))]
    names = [name for name, _ in runs[0]]
    times = np.median([[t for _, t in run] for run in runs], axis=0)
    return list(zip(names, times.astype(int).tolist(), strict=True))
