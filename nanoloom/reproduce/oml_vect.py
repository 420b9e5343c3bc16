"""Measurements of "Enabling Automatic Compiler-Driven Vectorization of Transformers".

Figure 7, reductions found by nanoloom and by MLIR in the same loops, and Figure 8, the
times of the paper's configurations beside nanoloom's default and ONNX Runtime, with one
thread each, checked and then in turns.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from nanoloom.cache import Cache
from nanoloom.compiler import Report, cut_model
from nanoloom.errors import Error
from nanoloom.frontend.onnx import load
from nanoloom.inspect.peers import open_peer
from nanoloom.inspect.references import open_reference
from nanoloom.inspect.timing import interleaved
from nanoloom.options import CompileOptions, Strategy
from nanoloom.program import compile
from nanoloom.reproduce.oml_models import LAYERS, QUICK, Array, Layer, draw, model_of
from nanoloom.reproduce.tables import csv_of
from nanoloom.target.facts import Target
from nanoloom.workers.batch import Batch
from nanoloom.workers.jobs import CountReductions
from nanoloom.workers.pool import pool

Say = Callable[[str], None]
CONFIGURATIONS: Mapping[str, Strategy] = {
    "plain": "plain",
    "oml": "oml",
    "onnx-mlir": "onnx-mlir",
    "oml-vect": "affine",  # which lays right operands along the sum
    "nanoloom": "default",
}
PEER = "ort"
ROOM = 1e-4  # of the largest number, that results may differ by
TURNS, QUICK_TURNS = 11, 3
WANTED_REDUCTIONS = 2.5  # times MLIR's, the paper's mean
WANTED_SPEED = 1.05  # times ONNX-MLIR's, the paper's mean on x86
FIELDS = ("layer", "size", "reductions", "mlir_reductions", "contender",
          "median_seconds", "note")  # fmt: skip


@dataclass
class Row:
    """A layer: reductions by nanoloom and by MLIR; medians, and why one is missing."""

    layer: Layer
    reductions: int = 0
    by_mlir: int = 0
    seconds: dict[str, float] = field(default_factory=dict[str, float])
    absent: dict[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True)
class Claim:
    """What the paper says, and what it is here; None where nothing was measured."""

    what: str
    paper: float
    here: float | None

    @property
    def holds(self) -> bool | None:
        return None if self.here is None else self.here >= self.paper


def run(target: Target, folder: Path, say: Say, *, quick: bool) -> list[Row]:
    """Every layer, counted, checked and timed.  folder: for models meanwhile."""
    return [
        measured(layer, target, folder, say, QUICK_TURNS if quick else TURNS)
        for layer in (QUICK if quick else LAYERS)
    ]


def measured(layer: Layer, target: Target, folder: Path, say: Say, turns: int) -> Row:
    row, numbers = Row(layer), draw(layer)
    model = model_of(layer, numbers)
    say(f"{layer.name}: counting reductions")
    row.reductions, row.by_mlir = counted(model, target)
    runs: dict[str, Callable[[], list[Array]]] = {}
    feeds = {"x": numbers["x"]}
    for name, strategy in CONFIGURATIONS.items():
        say(f"{layer.name}: compiling {name}")
        options = CompileOptions(target, strategy=strategy)
        program = compile(model, threads=1, options=options, cache=Cache.temporary())
        runs[name] = lambda program=program: list(program(feeds).values())
    path = folder / f"{layer.name}.onnx"
    onnx.save(model, path)
    (wanted,) = open_reference("reference", path, 1)(feeds)
    try:
        runs[PEER] = open_peer(PEER, path, feeds, 1).run
    except Error as error:
        row.absent[PEER] = str(error)
    row.absent |= wrong(runs, wanted)
    right = {name: each for name, each in runs.items() if name not in row.absent}
    say(f"{layer.name}: measuring")
    times = interleaved(list(right.values()), turns)
    row.seconds = {n: each.median for n, each in zip(right, times, strict=True)}
    return row


def counted(model: onnx.ModelProto, target: Target) -> tuple[int, int]:
    """The reductions of all kernels, as often as they are called."""
    program = cut_model(load(model), CompileOptions(target), Report())
    with Batch[tuple[int, int]](pool(), 1, lambda _: None) as batch:
        for kernel in program.kernels.values():
            batch.ask(kernel.name, CountReductions(kernel.text))
        found = batch.answers()
    pairs = [found[call.kernel] for call in program.calls]
    return sum(own for own, _ in pairs), sum(theirs for _, theirs in pairs)


def wrong(
    runs: Mapping[str, Callable[[], list[Array]]], wanted: Array
) -> dict[str, str]:
    """Whose results differ from ONNX's reference: named, and not timed."""
    exact = wanted.astype(np.float64)
    room = ROOM * abs(exact).max()
    errors = {name: abs(run()[0] - exact).max() for name, run in runs.items()}
    return {
        name: f"wrong result: off by {error:.2g}"
        for name, error in errors.items()
        if not error <= room
    }


# ---- what comes of it


def claims(rows: Sequence[Row]) -> list[Claim]:
    """The paper's, each with its figure here."""
    found = mean([r.reductions / r.by_mlir for r in rows if r.by_mlir])
    return [
        Claim("reductions found, of MLIR's", WANTED_REDUCTIONS, found),
        Claim("speed of OML-vect, of ONNX-MLIR's", WANTED_SPEED, speed(rows)),
    ]


def speed(rows: Sequence[Row]) -> float | None:
    """OML-vect's by ONNX-MLIR's algorithm, geometric mean over the layers."""
    both = [r.seconds for r in rows if {"onnx-mlir", "oml-vect"} <= r.seconds.keys()]
    return mean([seconds["onnx-mlir"] / seconds["oml-vect"] for seconds in both])


def mean(values: Sequence[float]) -> float | None:
    """The geometric one."""
    if not values:
        return None
    return math.exp(sum(map(math.log, values)) / len(values))


def records(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """A flat record for each layer and contender."""
    return [
        dict(
            zip(
                FIELDS,
                (
                    row.layer.name,
                    row.layer.size,
                    row.reductions,
                    row.by_mlir,
                    name,
                    row.seconds.get(name),
                    row.absent.get(name, ""),
                ),
                strict=True,
            )
        )
        for row in rows
        for name in (*CONFIGURATIONS, PEER)
    ]


def as_csv(rows: Sequence[Row]) -> str:
    return csv_of(FIELDS, records(rows))


def as_dict(rows: Sequence[Row], target: str) -> dict[str, Any]:
    """What `--json` prints."""
    told = [{**asdict(claim), "holds": claim.holds} for claim in claims(rows)]
    return {"target": target, "results": records(rows), "claims": told}
