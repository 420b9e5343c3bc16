"""One task measured: nanoloom and its peers on the same numbers, checked, in turns."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import onnx

from nanoloom.errors import Error
from nanoloom.inspect.timing import Times
from nanoloom.target.cached_host import to_dict
from nanoloom.target.facts import Target
from nanoloom_papers.reproduce import array_files
from nanoloom_papers.reproduce.chain_models import feeds, onnx_model
from nanoloom_papers.reproduce.chains import Arithmetic, Chain, Numbers, draw
from nanoloom_papers.reproduce.contenders import NANOLOOM, PEAK, Company, Remote
from nanoloom_papers.reproduce.expected_results import Expected, expected
from nanoloom_papers.reproduce.jobs import Job
from nanoloom_papers.reproduce.nanoloom_peer import PLAIN
from nanoloom_papers.reproduce.roofline import Limits, limits
from nanoloom_papers.reproduce.timing import Pace, interleaved

Say = Callable[[str, int, int], None]  # doing, done, total


class Task(Protocol):
    """What is measured: chains of products, convolutions."""

    @property
    def kind(self) -> str: ...
    @property
    def size(self) -> str: ...
    @property
    def arithmetic(self) -> Arithmetic: ...
    @property
    def flops(self) -> int: ...
    @property
    def bytes(self) -> int: ...


@dataclass(frozen=True)
class Setting:
    """What all measurements of a run share."""

    target: Target
    company: Company
    folder: Path  # for models and arrays, emptied after each
    pace: Pace
    say: Say = lambda doing, done, total: None


@dataclass
class Row:
    """What was measured of one task with one number of threads.

    times: by contender, nanoloom among them if it compiles; names: theirs, with
    versions; absent: who is not there, and why.  families: of nanoloom's nanokernels.
    peak: GFLOP/s (int8: GOP/s) of the fastest unit, in turns with the others, at the
    median; None without one.
    """

    chain: Task
    limits: Limits
    times: dict[str, Times] = field(default_factory=dict[str, Times])
    names: dict[str, str] = field(default_factory=dict[str, str])
    absent: dict[str, str] = field(default_factory=dict[str, str])
    families: tuple[str, ...] = ()
    peak: float | None = None

    @property
    def threads(self) -> int:
        return self.limits.threads

    def gflops(self, key: str) -> float | None:
        """10^9 operations a second at the median; None if it was not measured."""
        if key not in self.times:
            return None
        return self.chain.flops / self.times[key].median / 1e9

    def of_peak(self, key: str) -> float | None:
        """Percent of the measured peak."""
        rate = self.gflops(key)
        return 100 * rate / self.peak if rate and self.peak else None

    def of_bound(self, key: str) -> float | None:
        """Percent of what arithmetic and memory allow."""
        rate, bound = self.gflops(key), self.bound
        return 100 * rate / bound if rate and bound else None

    @property
    def bound(self) -> float | None:
        """The most GFLOP/s, see `bounds`."""
        chain = self.chain
        if self.peak is None:
            return None
        return self.limits.bound(self.peak, chain.flops, chain.bytes)

    def against(self, key: str) -> float | None:
        """nanoloom's speed in percent of a peer's; None if one was not measured."""
        ours, theirs = self.gflops("nanoloom"), self.gflops(key)
        return 100 * ours / theirs if ours and theirs else None

    @property
    def best_peer(self) -> str | None:
        """The key of the fastest peer."""
        peers = [key for key in self.times if key != "nanoloom"]
        return min(peers, key=lambda key: self.times[key].median, default=None)

    @property
    def note(self) -> str:
        """What nanoloom lacks for this arithmetic on this machine, "" for nothing."""
        if "nanoloom" not in self.times:
            return self.absent.get("nanoloom", "")
        arithmetic = self.chain.arithmetic
        word = {"mixed": "bf16", "bf16-flat": "flat bf16"}.get(arithmetic, arithmetic)
        if self.families and PLAIN not in self.families:
            wide = self.limits.peaks.best("f32", self.threads) or 0.0
            own_unit = (self.peak or 0.0) > 1.5 * wide
            if not (own_unit and self.families == ("fma",)):
                return ""
            return f"no {word} instructions for this product: multiply-adds in f32"
        return f"no {word} nanokernel for this product: plain loops"


def measure_chain(chain: Chain, counts: list[int], setting: Setting) -> list[Row]:
    """A row for each number of threads; the numbers are drawn and checked once."""
    label = f"{chain.kind} {chain.size} {chain.arithmetic}"
    setting.say(f"{label}: drawing", 0, 0)
    numbers = draw(chain)
    right = expected(chain, numbers)
    model = onnx_model(chain, numbers)
    place = Path(tempfile.mkdtemp(prefix="chain-", dir=setting.folder))
    try:
        write(place, chain, numbers, model)
        rows: list[Row] = []
        for threads in counts:
            setting.say(f"{label}, {threads} threads: opening", 0, 0)
            row = Row(chain, limits(setting.target, threads))
            row.absent |= setting.company.absent()
            job = chain_job(place, chain, numbers, threads, setting.target)
            contenders = open_all(row, job, setting)
            contenders = [x for x in contenders if agrees(x, right, row)]
            race(row, contenders, setting, f"{label}, {threads} threads")
            rows.append(row)
        return rows
    finally:
        shutil.rmtree(place, ignore_errors=True)


def race(row: Row, contenders: list[Remote], setting: Setting, label: str) -> None:
    """Time them in turns, and the peak with them."""
    unit = row.limits.unit(row.chain.arithmetic)
    facts = {"target": to_dict(setting.target), "unit": unit}
    job = Job(row.threads, facts=facts)
    peaks = [setting.company.open(PEAK.key, job)] if unit else []
    times = interleaved(
        [*contenders, *peaks],
        setting.pace,
        lambda done, total: setting.say(label, done, total),
    )
    for each, seconds in zip([*contenders, *peaks], times, strict=True):
        if each in peaks:
            row.peak = each.facts["operations"] / seconds.median / 1e9
        else:
            row.times[each.key] = seconds
            row.names[each.key] = each.name


def write(place: Path, chain: Chain, numbers: Numbers, model: onnx.ModelProto) -> None:
    """The files of a job."""
    onnx.save(model, place / "model.onnx")
    array_files.save(place / "inputs.npz", feeds(chain, numbers))
    array_files.save(place / "arrays.npz", numbers.arrays())


def chain_job(
    place: Path, chain: Chain, numbers: Numbers, threads: int, target: Target
) -> Job:
    """What all are told of a chain."""
    facts: dict[str, Any] = {
        "rows": chain.rows,
        "layers": len(numbers.layers),
        "activated": chain.activated,
        "weight_scales": [layer.weight_scale for layer in numbers.layers],
        "scales": [numbers.scale, *(layer.scale for layer in numbers.layers)],
        "zeros": [layer.zero for layer in numbers.layers],
        "target": to_dict(target),
        "cache": str(place / "cache"),  # one for all numbers of threads
        "lowered": chain.arithmetic == "mixed",
    }
    narrow = chain.arithmetic in ("bf16", "bf16-flat", "mixed")
    return Job(
        threads,
        str(place / "model.onnx"),
        str(place / "inputs.npz"),
        str(place / "arrays.npz"),
        "bf16" if narrow else "f32",
        chain.arithmetic,
        facts,
    )


def open_all(row: Row, job: Job, setting: Setting) -> list[Remote]:
    """nanoloom and the peers that take the job; for others the reason is in the row."""
    found: list[Remote] = []
    for peer in (NANOLOOM, *setting.company.peers):
        if peer.key in row.absent:
            continue
        try:
            found.append(setting.company.open(peer.key, job))
        except Error as error:
            row.absent[peer.key] = str(error)
            continue
        if peer is NANOLOOM:
            row.families = tuple(found[-1].facts["families"])
    return found


def agrees(contender: Remote, right: Expected, row: Row) -> bool:
    """Whether it computes what is right; if not, the reason is in the row."""
    try:
        complaint = right.complaint(contender.outputs()[0])
    except Error as error:
        complaint = str(error)
    if complaint:
        row.absent[contender.key] = complaint
    return not complaint
