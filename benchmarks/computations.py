"""Computations that no library has, beside plain loops in C.

    python -m benchmarks computations [--threads 1] [--json FILE]

A stencil of seven points with a nonlinearity, and a product of the shortest paths
(minimum of sums): nanoloom by itself, by a schedule of a few words, and the loops that
people write, by clang -O3 -march=native (of zig), in the order that is written and in
the best one.  The limit is the bandwidth of memory, or two operations a cycle where
`minimum` and addition take one each: half of the multiply-add peak.
"""

from __future__ import annotations

import ctypes
import json
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import nanoloom
from benchmarks.arguments import parser_of
from benchmarks.show import Progress, print_sheet
from nanoloom.binary.toolchain import Run, zig_triple
from nanoloom.cache import Cache
from nanoloom.inspect.timing import Run as Timed
from nanoloom.inspect.timing import interleaved
from nanoloom.nest.extent import Lanes
from nanoloom.notation import (
    Buffer,
    Computation,
    axes,
    computation,
    maximum,
    minimum,
    tanh,
)
from nanoloom.options import CompileOptions
from nanoloom.schedule.language import Parallel, Schedule, UnrollAndJam, Vectorize
from nanoloom.target.host import host
from nanoloom.target.peaks import measure
from nanoloom_papers.reproduce.tables import Sheet

GRID, NODES = 256, 512
FLAGS = ("-O3", "-shared", "-fPIC", "-lm")
STENCIL = """
static float step(float x) {{ return {function}; }}
void run(const float *restrict a, float *restrict b) {{
  enum {{ N = {grid}, M = N + 2 }};
  for (long i = 0; i < N; i++)
    for (long j = 0; j < N; j++)
      for (long k = 0; k < N; k++) {{
        const float *p = a + ((i + 1) * M + j + 1) * M + k + 1;
        float around = p[-M * M] + p[M * M] + p[-M] + p[M] + p[-1] + p[1];
        b[(i * N + j) * N + k] = step(around - 6 * p[0]);
      }}
}}
"""
PATHS = """
void run(const float *restrict a, const float *restrict b, float *restrict c) {{
  enum {{ N = {nodes} }};
  for (long i = 0; i < N * N; i++) c[i] = __builtin_inff();
  {loops} {{
        float sum = a[i * N + k] + b[k * N + j], *best = c + i * N + j;
        *best = sum < *best ? sum : *best;
      }}
}}
"""
LOOPS = {x: f"for (long {x} = 0; {x} < N; {x}++)" for x in "ijk"}


@dataclass(frozen=True)
class Case:
    """loops: C texts by what they are called.  schedule: by hand.

    work: additions, and what else is done to numbers.  bytes: that must be moved.
    """

    name: str
    made: Computation
    arrays: dict[str, np.ndarray]
    right: Callable[[dict[str, np.ndarray]], np.ndarray]
    schedule: Schedule
    loops: dict[str, str]
    work: float
    bytes: float


def grid(name: str, function: str, step: Callable[..., object]) -> Case:
    """Seven points of [GRID + 2] cubed."""
    i, j, k = axes("i j k")
    a, b = Buffer("a", (GRID + 2,) * 3), Buffer("b")
    around = a[i, j + 1, k + 1] + a[i + 2, j + 1, k + 1]
    around = around + a[i + 1, j, k + 1] + a[i + 1, j + 2, k + 1]
    around = around + a[i + 1, j + 1, k] + a[i + 1, j + 1, k + 2]
    b[i, j, k] = step(around - 6 * a[i + 1, j + 1, k + 1])  # type: ignore[assignment]
    array = np.random.default_rng(1).standard_normal((GRID + 2,) * 3)
    lanes = Lanes(host().lanes(32))
    words = (
        Parallel("b", (16, 16, 0)),
        Vectorize("b", "k", lanes),
        UnrollAndJam("b", "i", 4),
    )
    text = STENCIL.format(function=function, grid=GRID)
    return Case(
        name,
        computation(b),
        {"a": array.astype(np.float32)},
        lambda given: in_float64(given["a"], function),
        Schedule(words, "by hand"),
        {"as written": text},
        GRID**3 * 8.0,
        4.0 * ((GRID + 2) ** 3 + GRID**3),
    )


def in_float64(a: np.ndarray, function: str) -> np.ndarray:
    x = a.astype(np.float64)
    inner = slice(1, -1)
    sums = [
        np.roll(x, by, axis)[inner, inner, inner] for axis in range(3) for by in (-1, 1)
    ]
    made = sum(sums) - 6 * x[inner, inner, inner]
    return np.tanh(made) if "tanh" in function else np.maximum(made, 0)


def paths() -> Case:
    """The smallest a[i, k] + b[k, j] over k."""
    i, j, k = axes("i j k")
    a, b, c = Buffer("a", (NODES,) * 2), Buffer("b", (NODES,) * 2), Buffer("c")
    c[i, j] = minimum(c[i, j], a[i, k] + b[k, j])
    r = np.random.default_rng(2)
    arrays = {n: r.random((NODES, NODES)).astype(np.float32) for n in "ab"}
    target = host()
    lanes = Lanes(target.lanes(32))
    rows = 8 if target.vector.registers >= 32 else 4
    words = (
        Parallel("c", (16, 2 * lanes.count)),
        Vectorize("c", "j", lanes),
        UnrollAndJam("c", "j", 2),
        UnrollAndJam("c", "i", rows),
    )

    def right(given: dict[str, np.ndarray]) -> np.ndarray:
        wide = [given[n].astype(np.float64) for n in "ab"]
        return np.stack([(row[:, None] + wide[1]).min(0) for row in wide[0]])

    orders = {"as written": "ijk", "best order": "ikj"}
    return Case(
        "shortest paths",
        computation(c),
        arrays,
        right,
        Schedule(words, "by hand"),
        {
            name: PATHS.format(loops=" ".join(LOOPS[x] for x in order), nodes=NODES)
            for name, order in orders.items()
        },
        2.0 * NODES**3,
        12.0 * NODES**2,
    )


def cases() -> list[Case]:
    return [
        grid("stencil, relu", "x > 0 ? x : 0", lambda x: maximum(x, 0)),
        grid("stencil, tanh", "__builtin_tanhf(x)", tanh),
        paths(),
    ]


def compiled(text: str, case: Case, results: list[np.ndarray]) -> Timed:
    """Loops in C as a function without arguments."""
    target = host()
    folder = Path(tempfile.mkdtemp(prefix="nanoloom-"))
    (folder / "loops.c").write_text(text)
    words = ["cc", *FLAGS, "-march=native", "-target", zig_triple(target.triple)]
    Run([*words, "loops.c", "-o", "loops.so"], "compiling loops.c", folder).wait()
    library = ctypes.CDLL(str(folder / "loops.so"))
    arrays = [*case.arrays.values(), *results]
    places = [x.ctypes.data_as(ctypes.c_void_p) for x in arrays]
    return lambda: library.run(*places)


def ours(case: Case, schedule: Schedule | None, threads: int) -> tuple[Timed, list]:
    """nanoloom's, and where its results lie."""
    given = (("*", schedule),) if schedule else ()
    options = CompileOptions(host(), schedules=given)
    program = nanoloom.compile(
        case.made, threads=threads, options=options, cache=Cache.temporary()
    )
    variant = program.variant(case.arrays)
    inputs = [case.arrays[x.name] for x in variant.library.inputs]
    results = variant.library.new_outputs()
    return lambda: variant.instance.run(inputs, results), results


def main(arguments: Sequence[str]) -> None:
    parser = parser_of("computations", __doc__)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args(arguments)
    every = cases()
    progress = Progress(len(every))
    peaks = measure(host(), asked.threads)
    memory = peaks.best("memory", asked.threads) or 0.0
    peak = (peaks.best("f32", asked.threads) or 0.0) / 2
    records = []
    for case in every:
        limit = max(case.bytes / memory, case.work / peak) / 1e9
        records.append(timed(case, asked.threads, limit))
        progress.advance(case.name)
    print_sheet(sheet(records, f"memory {memory:.1f} GB/s, {asked.threads} threads"))
    if asked.json:
        asked.json.write_text(json.dumps(records, indent=1))


def timed(case: Case, threads: int, limit: float) -> dict[str, object]:
    """Milliseconds of every contender, interleaved; results are compared first."""
    runs: dict[str, Timed] = {}
    right = case.right(case.arrays)
    for name, schedule in (("automatic", None), ("by hand", case.schedule)):
        runs[name], results = ours(case, schedule, threads)
        runs[name]()
        require_close(results[0], right, name)
    for name, text in case.loops.items():
        results = [np.zeros(right.shape, np.float32)]
        runs[f"C, {name}"] = compiled(text, case, results)
        runs[f"C, {name}"]()
        require_close(results[0], right, name)
    times = interleaved(list(runs.values()), None)
    found = {n: t.median * 1e3 for n, t in zip(runs, times, strict=True)}
    return {"case": case.name, "limit": limit * 1e3, **found}


def require_close(made: np.ndarray, right: np.ndarray, name: str) -> None:
    """Ten roundings of numbers up to 60."""
    error = float(abs(made - right).max())
    assert error < 60 * 10 * 2.0**-24, (name, error)


def sheet(records: list[dict[str, object]], note: str) -> Sheet:
    names = ("automatic", "by hand", "C, as written", "C, best order")
    rows: list[tuple[str, ...]] = []
    for record in records:
        best = min(float(record[n]) for n in names[:2])  # type: ignore[arg-type]
        cells = [f"{record[n]:.2f}" if n in record else "" for n in names]
        times = [
            f"{float(record[n]) / best:.1f}x" if n in record else ""  # type: ignore[arg-type]
            for n in names[2:]
        ]
        share = f"{100 * float(record['limit']) / best:.0f}%"  # type: ignore[arg-type]
        rows.append((str(record["case"]), *cells, *times, share))
    columns = ("", *(f">{n}" for n in names), ">faster", ">than best", ">of limit")
    return Sheet("Computations, ms", columns, tuple(rows), (note,))
