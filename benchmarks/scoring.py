"""Tables scored: beside a bare loop, beside ONNX Runtime, by one worker and by two.

    python -m benchmarks scoring [--rows N] [--batch-rows N] [--rounds N] [--quick]
        [--ray] [--json FILE]

A worker is a process on one CPU, with a table of its own, as the engines have them; all
take turns, medians.  ONNX Runtime has one thread a worker and all its optimizations.
With --ray the same ways are Ray's actors, too, with tables in its memory.  Last, what a
thousand workers would take, simulated with the figures of this run.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pyarrow as pa

from benchmarks.arguments import parser_of
from benchmarks.scoring_growth import Figures, growth
from benchmarks.show import print_sheet
from nanoloom.scoring import Scorer
from nanoloom_papers.reproduce.tables import Sheet

FEATURES, HIDDEN, CLASSES = 256, 1024, 16
MLP = f"""
<ir_version: 10, opset_import: ["" : 20]>
mlp (float[batch, {FEATURES}] x) => (float[batch, {CLASSES}] y) {{
    a = MatMul(x, w1)  b = Relu(a)  c = MatMul(b, w2)  d = Relu(c)
    e = MatMul(d, w3)  y = Softmax<axis = -1>(e)
}}"""
WAYS = ("bare loop", "nanoloom", "onnxruntime", "reproducible")
Run = Callable[[], object]


def model_in(folder: Path) -> Path:
    """Three products, 5 MB of weights."""
    model, random = onnx.parser.parse_model(MLP), np.random.default_rng(0)
    sizes = [FEATURES, HIDDEN, HIDDEN, CLASSES]
    for i in range(3):
        w = random.standard_normal((sizes[i], sizes[i + 1]), np.float32) / 32
        model.graph.initializer.append(onnx.numpy_helper.from_array(w, f"w{i + 1}"))
    path = folder / "mlp.onnx"
    onnx.save(model, path)
    return path


def table_of(rows: int) -> pa.Table:
    x = np.random.default_rng(1).standard_normal((rows, FEATURES), np.float32)
    column = pa.FixedSizeListArray.from_arrays(pa.array(x.reshape(-1)), FEATURES)
    return pa.table({"x": column})


def way_of(name: str, model: Path, rows: int, batch_rows: int) -> Run:
    """One way to score a table, ready to run."""
    table, way = table_of(rows), scoring_by(name, model, batch_rows)
    return lambda: way(table)


def scoring_by(name: str, model: Path, batch_rows: int) -> Callable[[pa.Table], Any]:
    """A way to score tables: from Arrow to Arrow, but for the bare loop."""
    if name == "onnxruntime":
        return by_onnxruntime(model, batch_rows)
    alone = name == "reproducible"
    scorer = Scorer(model, batch_rows=batch_rows, threads=1, reproducible=alone)
    if name != "bare loop":
        return scorer
    program = scorer.place.program()

    def loop(table: pa.Table) -> None:
        arrays = array_of(table)
        for begin in range(0, len(table), batch_rows):
            program({"x": arrays[begin : begin + batch_rows]})

    return loop


def array_of(table: pa.Table) -> np.ndarray:
    column = table["x"].chunk(0)
    return column.flatten().to_numpy().reshape(len(table), FEATURES)


def by_onnxruntime(model: Path, batch_rows: int) -> Callable[[pa.Table], pa.Table]:
    """Its loop over the same table, from Arrow to Arrow, in memory that is there."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])

    def loop(table: pa.Table) -> pa.Table:
        arrays, made = array_of(table), np.empty((len(table), CLASSES), np.float32)
        for begin in range(0, len(table), batch_rows):
            part = slice(begin, begin + batch_rows)
            made[part] = session.run(None, {"x": arrays[part]})[0]
        column = pa.FixedSizeListArray.from_arrays(pa.array(made.reshape(-1)), CLASSES)
        return pa.table({"y": column})

    return loop


# ---- workers


def _serve(wire: Connection, cpu: int, words: tuple[Path, int, int]) -> None:
    """A worker: opens, says what that took, and scores in the way it is asked."""
    os.sched_setaffinity(0, {cpu})
    begun = time.perf_counter()
    run = way_of("nanoloom", *words)
    run()
    wire.send((time.perf_counter() - begun, private_bytes()))
    runs = {way: way_of(way, *words) for way in WAYS}
    for run in runs.values():
        run()
    wire.send(True)
    while way := wire.recv():
        runs[way]()
        wire.send(time.perf_counter())


def private_bytes() -> int:
    """Memory that is this process's alone: what is mapped by others is not."""
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    found = dict(line.split(":", 1) for line in lines[1:])
    parts = ("Private_Clean", "Private_Dirty")
    return sum(int(found[part].split()[0]) * 1024 for part in parts)


class Turns:
    """Two workers that score in turns."""

    def seconds(self, way: str, count: int) -> float:
        """Until the last of so many has scored its table."""
        raise NotImplementedError

    def measured(self, rounds: int) -> dict[str, dict[int, list[float]]]:
        """Seconds of each round, by way and number of workers, all in turns."""
        found: dict[str, dict[int, list[float]]] = {w: {1: [], 2: []} for w in WAYS}
        for _ in range(rounds):
            for way in WAYS:
                for count in (1, 2):
                    found[way][count].append(self.seconds(way, count))
        return found


class Workers(Turns):
    """Two processes, each on a CPU of its own.

    opened: seconds and private bytes of each: the first compiles.
    """

    def __init__(self, words: tuple[Path, int, int]) -> None:
        context = multiprocessing.get_context("spawn")
        cpus = sorted(os.sched_getaffinity(0))
        self.wires: list[Connection] = []
        self.opened: list[tuple[float, int]] = []
        for i in range(2):
            here, there = context.Pipe()
            given = (there, cpus[i % len(cpus)], words)
            context.Process(target=_serve, args=given, daemon=True).start()
            there.close()  # a worker that fails is seen
            self.wires.append(here)
            self.opened.append(here.recv())
        for wire in self.wires:
            wire.recv()

    def seconds(self, way: str, count: int) -> float:
        """Until the last of so many has scored its table."""
        begun = time.perf_counter()
        for wire in self.wires[:count]:
            wire.send(way)
        return max(wire.recv() for wire in self.wires[:count]) - begun

    def end(self) -> None:
        for wire in self.wires:
            wire.send("")


def ratio(above: Sequence[float], below: Sequence[float]) -> float:
    """The median of the rounds' ratios: what slows a round slows both."""
    return statistics.median(a / b for a, b in zip(above, below, strict=True))


def sheet(
    found: dict[str, dict[int, list[float]]], rows: int, who: str = "a worker"
) -> Sheet:
    lines: list[list[str]] = []
    for way, times in found.items():
        rate = rows / statistics.median(times[1])
        over = ratio(times[1], found["bare loop"][1])
        lines.append(
            [way, f"{rate:.0f}", f"{over:.3f}", f"{2 * ratio(times[1], times[2]):.2f}"]
        )
    columns = ("~way", ">rows/s", ">time / bare loop", ">2 workers / 1")
    notes = ["medians of ratios within a round; every worker on a CPU of its own"]
    return Sheet(f"{rows} rows {who}", columns, lines, notes)


def main(arguments: list[str]) -> None:
    parser = parser_of("scoring", __doc__)
    parser.add_argument("--rows", type=int, default=16384)
    parser.add_argument("--batch-rows", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--quick", action="store_true", help="tiny: does it work?")
    parser.add_argument("--ray", action="store_true", help="beside them, Ray's actors")
    parser.add_argument("--json", type=Path, metavar="FILE")
    given = parser.parse_args(arguments)
    rows, rounds = (256, 2) if given.quick else (given.rows, given.rounds)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["NANOLOOM_CACHE"] = f"{folder}/cache"
        words = model_in(Path(folder)), rows, given.batch_rows
        workers = Workers(words)
        found = workers.measured(rounds)
        workers.end()
        if given.ray:
            from benchmarks.scoring_on_ray import actors

            with actors(words) as own:
                print_sheet(sheet(own.measured(rounds), rows, "an actor of Ray"))
        size = sum(x.stat().st_size for x in Path(folder).rglob("*") if x.is_file())
    figures = Figures(
        compile_seconds=workers.opened[0][0],
        start_seconds=workers.opened[1][0],
        private_bytes=workers.opened[1][1],
        artefact_bytes=size,
        rows_per_second=rows / statistics.median(found["nanoloom"][1]),
    )
    print_sheet(sheet(found, rows))
    print_sheet(growth(figures))
    if given.json:
        given.json.write_text(json.dumps({"seconds": found, "figures": vars(figures)}))
