"""What compiling costs with nothing cached: CPU seconds, time passed, memory, by stage.

    python -m benchmarks compile_time [--models bert-base,FILE.onnx] [--dims batch=1]
        [--folder DIR] [--json FILE]

A model is a name of benchmarks/models or a file.  --dims: numbers for named dimensions;
those without one are sizes, compiled once for all.  Each model is compiled by a process
of its own, whose workers are counted: CPU seconds hardly depend on what else runs.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.arguments import parser_of
from benchmarks.models import MODELS
from benchmarks.models.quantized import parts
from benchmarks.show import Progress, print_sheet
from benchmarks.whole_models import model_file
from nanoloom.errors import Error
from nanoloom.frontend.onnx import load
from nanoloom.frontend.symbolic_dims import symbols
from nanoloom_papers.reproduce.tables import Sheet

DEFAULT = "resnet50,mobilenet_v2,densenet121,efficientnet_b0,bge-small"
COMPILE = """
import json, resource, sys, time
from pathlib import Path
path, dims, folder = sys.argv[1:]
started = time.perf_counter()
import nanoloom
from nanoloom.cache import Cache
from nanoloom.report import Report
from nanoloom.workers.pool import pool
report = Report()
try:
    program = nanoloom.compile(
        path, dims=json.loads(dims), cache=Cache(Path(folder)), report=report
    )
    if not report.kernels:
        program.save(Path(folder) / "library.so")
except nanoloom.Error as error:
    sys.exit(str(error))
wall = time.perf_counter() - started
pool().close()
own, others = (
    resource.getrusage(who)
    for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
)
print(json.dumps({
    "kernels": report.kernels,
    "wall": wall,
    "own": own.ru_utime + own.ru_stime,
    "workers": others.ru_utime + others.ru_stime,
    "own_megabytes": own.ru_maxrss / 1024,
    "worker_megabytes": others.ru_maxrss / 1024,
    "stages": report.seconds,
}))
"""


def measured(path: Path, dims: dict[str, int]) -> dict[str, Any]:
    """What a cold compile takes; raises Error with what the compiler says."""
    wanted = {name: dims[name] for name in symbols(load(path)) if name in dims}
    with tempfile.TemporaryDirectory(prefix="nanoloom-bench-") as folder:
        words = [str(path.resolve()), json.dumps(wanted), folder]
        done = subprocess.run(
            [sys.executable, "-c", COMPILE, *words],
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        raise Error(f"{path.name}: {done.stderr.strip().splitlines()[-1]}")
    return json.loads(done.stdout)


def sheet(rows: dict[str, dict[str, Any]]) -> Sheet:
    """A line a model: CPU seconds of all processes, and of each stage."""
    stages = list(dict.fromkeys(s for row in rows.values() for s in row["stages"]))
    heads = ("model", ">kernels", ">CPU s", ">own", ">workers", ">passed s", ">MB")
    lines = tuple(
        (
            name,
            str(row["kernels"]),
            *(f"{n:.1f}" for n in (row["own"] + row["workers"], row["own"])),
            *(f"{row[word]:.1f}" for word in ("workers", "wall")),
            f"{max(row['own_megabytes'], row['worker_megabytes']):.0f}",
            *(f"{row['stages'].get(stage, 0.0):.1f}" for stage in stages),
        )
        for name, row in rows.items()
    )
    notes = (
        "own: of the process that asks; workers: of those that compile its kernels",
        "MB: of the largest of these processes",
        "stages: seconds passed in each, added up over kernels and processes",
    )
    return Sheet("compile time", (*heads, *(f">{s}" for s in stages)), lines, notes)


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = parser_of("compile_time", __doc__)
    parser.add_argument("--models", default=DEFAULT, help="names and files, by commas")
    parser.add_argument("--dims", default="", help="NAME=N, by commas")
    parser.add_argument("--folder", type=Path, help="keep the models in this folder")
    parser.add_argument("--json", type=Path, help="also write the rows here")
    given = parser.parse_args(arguments)
    given.names = given.models.split(",")
    unknown = [
        name
        for name in given.names
        if not name.endswith(".onnx") and parts(name)[0] not in MODELS
    ]
    if unknown:
        parser.error(f"no model is named {', '.join(unknown)}; a file ends in .onnx")
    pairs = [word.partition("=") for word in given.dims.split(",") if word]
    if not all(number.isdigit() for _, _, number in pairs):
        parser.error("--dims: NAME=N, by commas")
    given.numbers = {name: int(number) for name, _, number in pairs}
    return given


def main(arguments: list[str] | None = None) -> None:
    given = parse(arguments)
    rows: dict[str, dict[str, Any]] = {}
    with (
        tempfile.TemporaryDirectory(prefix="nanoloom-bench-") as scratch,
        Progress(len(given.names)) as progress,
    ):
        folder: Path = given.folder or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        for name in given.names:
            progress.say(name)
            is_file = name.endswith(".onnx")
            path = Path(name) if is_file else model_file(name, folder)
            label = path.stem if is_file else name
            rows[label] = measured(path, given.numbers)
            progress.advance(f"{label}: {rows[label]['wall']:.1f} s")
    print_sheet(sheet(rows))
    if given.json:
        given.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
