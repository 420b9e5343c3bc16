"""python -m tests.fuzz.memcheck: models under valgrind, as C programs.

Random graphs are compiled for x86-64-v3, which valgrind knows, and run once with two
threads: no byte beside an array is touched, and none that was never written is used.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import nanoloom
from nanoloom.cache import Cache
from nanoloom.errors import Error
from nanoloom.options import CompileOptions
from nanoloom.target import by_name
from tests.fuzz.graphs import drawn, outputs_of, sketch

DRIVER = Path(__file__).with_name("memcheck.c")
FOUND, SECONDS = 9, 600
VALGRIND = (
    "valgrind", "--quiet", f"--error-exitcode={FOUND}", "--leak-check=full",
    "--errors-for-leak-kinds=definite", "--main-stacksize=1048576",
    "--vex-guest-max-insns=20",  # its own memory is little for long blocks of vectors
)  # fmt: skip


def check(seed: int, folder: Path, cache: Cache) -> str | None:
    """What valgrind says of a graph, "" for nothing; None for a graph without nodes."""
    s = sketch(seed)
    if not s.steps:
        return None
    graph = drawn(s, outputs_of(s), set(s.parameters))
    options = CompileOptions(by_name("x86-64-v3"))
    content = graph.model.SerializeToString()
    shapes = {name: array.shape for name, array in graph.feeds.items()}
    dims = {
        dim: size
        for x in nanoloom.compile(content, options=options, cache=cache).inputs
        for dim, size in zip(x.shape, shapes[x.name], strict=True)
        if isinstance(dim, str)
    }
    program = nanoloom.compile(content, dims=dims, options=options, cache=cache)
    library = program.save(folder / "model.so")
    files: list[str] = []
    for place, tensor in enumerate(program.inputs):
        file = folder / f"input{place}"
        file.write_bytes(graph.feeds[tensor.name].tobytes())
        files.append(str(file))
    driver = folder / "driver"
    subprocess.run(
        [
            "cc",
            "-g",
            "-I",
            str(folder),
            str(DRIVER),
            str(library),
            "-o",
            str(driver),
            f"-Wl,-rpath,{folder}",
        ],
        check=True,
    )
    done = subprocess.run(
        [*VALGRIND, str(driver), *files],
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    return "" if done.returncode == 0 else f"status {done.returncode}\n{done.stderr}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    found = checked = 0
    seed = given.seed * 1_000_000
    with tempfile.TemporaryDirectory() as scratch:
        cache = Cache(Path(scratch) / "cache")
        while checked < given.models:
            folder = Path(scratch) / str(seed)
            folder.mkdir()
            try:
                said = check(seed, folder, cache)
            except Error as error:  # refused: nothing to run
                print(f"graph {seed}: {error}", file=sys.stderr)
                seed += 1
                continue
            checked += said is not None
            if said:
                found += 1
                print(f"graph {seed}: {said}", flush=True)
            if said is not None and checked % 10 == 0:
                print(f"{checked} models, {found} with errors", flush=True)
            seed += 1
    return int(found > 0)


if __name__ == "__main__":
    sys.exit(main())
