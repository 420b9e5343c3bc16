"""Find the sentences that mean the same, with a trained model compiled by nanoloom.

    python -m examples.minilm.demo FOLDER [--threads N]

builds all-MiniLM-L6-v2 in FOLDER (once), embeds twelve sentences, prints each nearest
pair, checks every number against ONNX Runtime and times both in the same run.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

import nanoloom
from examples.minilm.model import OUTPUT, build, package_files
from examples.minilm.sentences import SENTENCES, tokenize
from nanoloom.errors import Error

LIMIT = 1e-4  # the largest difference allowed between two embeddings of length 1
WARM_UPS, REPETITIONS = 3, 20

Floats = NDArray[np.float32]
Arrays = Mapping[str, NDArray[Any]]


def nearest_pairs(embeddings: Floats) -> list[tuple[float, int, int]]:
    """(cosine, i, j) of every row and its nearest other row, best first, each once.

    `embeddings` is float32 [rows, width] and each row has length 1.
    """
    cosines = embeddings @ embeddings.T
    np.fill_diagonal(cosines, -np.inf)
    nearest = cosines.argmax(axis=1)
    pairs = {(min(i, int(j)), max(i, int(j))) for i, j in enumerate(nearest)}
    return sorted(((float(cosines[i, j]), i, j) for i, j in pairs), reverse=True)


def largest_difference(got: Floats, expected: Floats) -> float:
    """max |got - expected|; infinity if a shape differs or a number is not finite."""
    if got.shape != expected.shape or not np.isfinite(got).all():
        return float("inf")
    return float(np.abs(got.astype(np.float64) - expected).max())


def interleaved_medians(
    first: Callable[[], object], second: Callable[[], object]
) -> tuple[float, float]:
    """The median seconds of each, called in turn so that both see one machine."""
    times: tuple[list[float], list[float]] = ([], [])
    for repetition in range(WARM_UPS + REPETITIONS):
        for call, seconds in zip((first, second), times, strict=True):
            start = time.perf_counter()
            call()
            if repetition >= WARM_UPS:
                seconds.append(time.perf_counter() - start)
    return statistics.median(times[0]), statistics.median(times[1])


def onnx_runtime(path: Path, threads: int) -> Callable[[Arrays], Floats]:
    """ONNX Runtime on the same file with the same number of threads."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    # Its threads must not spin on while the other side is measured.
    options.add_session_config_entry("session.force_spinning_stop", "1")
    session = onnxruntime.InferenceSession(
        str(path), options, providers=["CPUExecutionProvider"]
    )
    return lambda inputs: np.asarray(session.run([OUTPUT], dict(inputs))[0])


def pair_table(pairs: list[tuple[float, int, int]]) -> Table:
    """The pairs as a table, best first."""
    table = Table(title="nearest pairs", show_lines=True)
    table.add_column("cosine", justify="right")
    table.add_column("sentence")
    table.add_column("nearest sentence")
    for cosine, i, j in pairs:
        table.add_row(f"{cosine:.2f}", SENTENCES[i], SENTENCES[j])
    return table


def time_table(rows: list[tuple[str, float]], threads: int) -> Table:
    """Median milliseconds of each, and the times a second all sentences fit in."""
    noun = "thread" if threads == 1 else "threads"
    table = Table(title=f"{len(SENTENCES)} sentences, {threads} {noun}, median")
    table.add_column("")
    table.add_column("milliseconds", justify="right")
    table.add_column("sentences a second", justify="right")
    for name, seconds in rows:
        rate = len(SENTENCES) / seconds
        table.add_row(name, f"{seconds * 1e3:.2f}", f"{rate:,.0f}")
    return table


def demo(folder: Path, threads: int) -> int:
    """Run the demo with the model cached in `folder`; 0, or 1 if a number is wrong.

    Raises nanoloom.errors.Error when the weights are missing or nothing compiles.
    """
    out, progress = Console(), Console(stderr=True)
    files = package_files()
    path = folder / "minilm.onnx"
    if not path.is_file():
        progress.print(f"building {path}")
        folder.mkdir(parents=True, exist_ok=True)
        build(path, files)
    inputs = tokenize(files, SENTENCES)
    progress.print("compiling")
    start = time.perf_counter()
    program = nanoloom.compile(path, threads=threads)
    got = program(inputs)[OUTPUT]  # the first call compiles for these shapes
    progress.print(f"compiled and ran in {time.perf_counter() - start:.1f} s")
    reference = onnx_runtime(path, threads)

    out.print(pair_table(nearest_pairs(got)))
    difference = largest_difference(got, reference(inputs))
    if not difference <= LIMIT:
        progress.print(
            f"the embeddings differ from ONNX Runtime's by {difference:.1e}, "
            f"more than the {LIMIT:.0e} allowed",
        )
        return 1
    ours, theirs = interleaved_medians(
        lambda: program(inputs), lambda: reference(inputs)
    )
    out.print(time_table([("nanoloom", ours), ("ONNX Runtime", theirs)], threads))
    out.print(
        f"all {got.size} numbers agree with ONNX Runtime: "
        f"largest difference {difference:.1e}, allowed {LIMIT:.0e}"
    )
    return 0


def main(arguments: list[str] | None = None) -> int:
    """The command: 0 done, 1 the data or the model is at fault, 2 wrong usage."""
    parser = argparse.ArgumentParser(prog="python -m examples.minilm.demo")
    parser.add_argument("folder", type=Path, help="where minilm.onnx is kept")
    parser.add_argument(
        "--threads", type=int, default=len(os.sched_getaffinity(0)), metavar="N"
    )
    options = parser.parse_args(arguments)
    if options.threads < 1:
        parser.error("--threads must be at least 1")
    try:
        return demo(options.folder, options.threads)
    except Error as error:
        print(error, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
