"""Whole models beside ONNX Runtime and OpenVINO: time, compile time, memory.

    python -m benchmarks whole_models [--models bert-base,resnet50] [--threads 1,2]

Models have random weights from their configurations (benchmarks/models).  Every row is
one process run: all systems interleaved, medians of the repetitions.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

import nanoloom
from benchmarks.models import MODELS, seeded_inputs
from benchmarks.peers import PEERS, installed
from benchmarks.timing import interleaved
from nanoloom.cache import Cache
from nanoloom.options import CompileOptions
from nanoloom.target.host import host
from nanoloom.target.peaks import measure

DEFAULT = ("bert-base", "bge-small", "distilbert", "vit-base", "resnet50")
MEMORY = """
import sys, numpy, nanoloom
from pathlib import Path
from nanoloom.cache import Cache
path, folder, threads, feeds = sys.argv[1:]
arrays = dict(numpy.load(feeds))
dims = {}
program = nanoloom.compile(path, threads=int(threads), cache=Cache(Path(folder)))
program(arrays)
status = Path("/proc/self/status").read_text()
print(next(l.split()[1] for l in status.splitlines() if l.startswith("VmHWM")))
"""


def peak_megabytes(path: Path, cache: Path, threads: int, feeds: Path) -> float:
    """Peak resident memory of a process that compiles (or loads) and runs a model."""
    command = [sys.executable, "-c", MEMORY, str(path), str(cache), str(threads)]
    done = subprocess.run(
        [*command, str(feeds)], capture_output=True, text=True, check=True
    )
    return int(done.stdout.split()[-1]) / 1024


def row(name: str, threads: int, repetitions: int, folder: Path, precision: str):  # type: ignore[no-untyped-def]
    """Measure one model with one number of threads."""
    import numpy as np

    path = folder / f"{name}.onnx"
    if not path.exists():
        from benchmarks.models.export import write  # needs PyTorch

        write(name, path)
    arrays = seeded_inputs(name)
    cache = Path(tempfile.mkdtemp(prefix="cache-", dir=folder))
    options = CompileOptions(host(), precision)  # type: ignore[arg-type]
    started = time.perf_counter()
    program = nanoloom.compile(
        path, threads=threads, options=options, cache=Cache(cache)
    )
    variant = program.variant(arrays)
    cold = time.perf_counter() - started
    started = time.perf_counter()
    again = nanoloom.compile(path, threads=threads, options=options, cache=Cache(cache))
    again.variant(arrays)
    warm = time.perf_counter() - started
    calls = {"nanoloom": lambda: variant(arrays)}
    for peer in installed():
        calls[peer] = PEERS[peer](path, arrays, threads)
    seconds = interleaved(calls, repetitions)
    feeds = folder / f"{name}.npz"
    np.savez(feeds, **arrays)
    first = peak_megabytes(path, folder / f"fresh-{name}-{threads}", threads, feeds)
    later = peak_megabytes(path, folder / f"fresh-{name}-{threads}", threads, feeds)
    return {
        "model": name,
        "threads": threads,
        "milliseconds": {k: 1e3 * v for k, v in seconds.items()},
        "compile_seconds": cold,
        "cached_seconds": warm,
        "file_megabytes": path.stat().st_size / 2**20,
        "peak_megabytes_first": first,
        "peak_megabytes_cached": later,
    }


def show(rows: list[dict[str, object]], peak: float) -> None:
    table = Table(title=f"whole models, measured fp32 peak {peak:.0f} GFLOP/s a core")
    peers = ["nanoloom", *installed()]
    heads = ["model", "threads", *[f"{p} ms" for p in peers], "ratio to best peer"]
    for head in [*heads, "compile s", "cached s", "file MB", "peak MB", "cached MB"]:
        table.add_column(head, justify="left" if head == "model" else "right")
    for r in rows:
        times: dict[str, float] = r["milliseconds"]  # type: ignore[assignment]
        best = min((times[p] for p in peers[1:]), default=float("nan"))
        table.add_row(
            str(r["model"]),
            str(r["threads"]),
            *[f"{times[p]:.2f}" for p in peers],
            f"{times['nanoloom'] / best:.2f}",
            f"{r['compile_seconds']:.1f}",
            f"{r['cached_seconds']:.2f}",
            f"{r['file_megabytes']:.0f}",
            f"{r['peak_megabytes_first']:.0f}",
            f"{r['peak_megabytes_cached']:.0f}",
        )
    Console(width=160).print(table)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks whole_models")
    parser.add_argument("--models", default=",".join(DEFAULT), help="or: all")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--repeat", type=int, default=15)
    parser.add_argument("--precision", default="f32", choices=("f32", "bf16"))
    parser.add_argument("--json", type=Path, help="also write the rows here")
    parser.add_argument("--folder", type=Path, help="keep the models in this folder")
    given = parser.parse_args(arguments)
    names = list(MODELS) if given.models == "all" else given.models.split(",")
    peak = measure(host(), 1).best("f32")
    rows: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory(prefix="nanoloom-bench-") as scratch:
        folder = given.folder or Path(scratch)
        for name in names:
            for threads in map(int, given.threads.split(",")):
                rows.append(row(name, threads, given.repeat, folder, given.precision))
                print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
    show(rows, peak)
    if given.json:
        given.json.write_text(json.dumps({"peak_f32": peak, "rows": rows}, indent=1))


if __name__ == "__main__":
    main()
