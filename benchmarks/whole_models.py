"""Whole models beside ONNX Runtime and OpenVINO: time, compile time, memory.

    python -m benchmarks whole_models [--models bert-base,bge-small-int8]
        [--threads 1,2] [--precision f32,bf16] [--folder DIR] [--json FILE]
        [--plot FILE.png]

Models have random weights from their configurations (benchmarks/models); NAME-int8 is
one in 8 bits.  bf16: the same f32 file, nanoloom with --precision bf16 and OpenVINO
with its hint; ONNX Runtime has nothing of the kind.  Everybody in a process of its own,
in turns, medians of the repetitions.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from benchmarks.arguments import parser_of
from benchmarks.models import MODELS, seeded_inputs
from benchmarks.models.quantized import parts, write_quantized
from benchmarks.pictures import relative_times
from benchmarks.show import Progress, print_sheet
from benchmarks.systems import MODEL_PEERS, Measured, Task, job_of, measure
from nanoloom.errors import Error
from nanoloom.target.host import host
from nanoloom_papers.reproduce.contenders import NANOLOOM, Company
from nanoloom_papers.reproduce.roofline import Limits, limits
from nanoloom_papers.reproduce.tables import NAMES, Sheet, told
from nanoloom_papers.reproduce.timing import QUICK, Pace

DEFAULT = (
    "bert-base", "bge-small", "distilbert", "roberta-base", "vit-base", "mlp1024",
    "mlp2048", "resnet50", "bge-small-int8",
)  # fmt: skip
MEMORY = """
import sys, numpy, nanoloom
from pathlib import Path
from nanoloom.cache import Cache
from nanoloom.options import CompileOptions
from nanoloom.target.host import host
path, folder, threads, feeds, precision = sys.argv[1:]
arrays = dict(numpy.load(feeds))
program = nanoloom.compile(
    path, threads=int(threads), cache=Cache(Path(folder)),
    options=CompileOptions(host(), precision),
)
program(arrays)
status = Path("/proc/self/status").read_text()
print(next(l.split()[1] for l in status.splitlines() if l.startswith("VmHWM")))
"""

PEER_MEMORY = """
import sys, numpy, onnxruntime
from pathlib import Path
path, threads, feeds = sys.argv[1:]
arrays = dict(numpy.load(feeds))
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = int(threads)
session = onnxruntime.InferenceSession(
    path, options, providers=["CPUExecutionProvider"]
)
session.run(None, arrays)
status = Path("/proc/self/status").read_text()
print(next(l.split()[1] for l in status.splitlines() if l.startswith("VmHWM")))
"""


@dataclass(frozen=True)
class Row:
    """A model with a number of threads: times, seconds to compile, megabytes."""

    measured: Measured
    precision: str
    cold: float  # seconds to compile, nothing cached
    warm: float  # the same again
    # file; peak: of a first run; cached: of a later one; peer: of ONNX Runtime's
    megabytes: dict[str, float]

    def to_dict(self) -> dict[str, object]:
        found = self.measured
        return {
            "model": found.task.name,
            "precision": self.precision,
            "threads": found.threads,
            "milliseconds": {k: 1e3 * t.median for k, t in found.times.items()},
            "names": found.names,
            "differences": found.differences,
            "absent": found.absent,
            "compile_seconds": self.cold,
            "cached_seconds": self.warm,
            "megabytes": self.megabytes,
        }


def model_file(name: str, folder: Path) -> Path:
    """The model's file, written if the folder has none (needs PyTorch)."""
    path = folder / f"{name}.onnx"
    if not path.exists():
        try:
            write_model(name, path)
        except ModuleNotFoundError as error:
            raise Error(
                f"{path} is not there, and writing it needs PyTorch ({error}); "
                "pip install torch==2.13.0 transformers"
            ) from None
    return path


def write_model(name: str, path: Path) -> None:
    if parts(name)[1] is not None:
        write_quantized(name, path)
    else:
        from benchmarks.models.export import write  # needs torch; the names do not

        write(name, path)


def peak_megabytes(
    task: Task, cache: Path, threads: int, feeds: Path, precision: str
) -> float:
    """Peak resident memory of a process that compiles (or loads) and runs a model."""
    words = [str(task.path), str(cache), str(threads), str(feeds), precision]
    return peak_of(MEMORY, words)


def peak_of(script: str, words: list[str]) -> float:
    """What a script with these arguments prints last, of kilobytes; NaN if it fails."""
    done = subprocess.run(
        [sys.executable, "-c", script, *words],
        capture_output=True,
        text=True,
        check=False,
    )
    return int(done.stdout.split()[-1]) / 1024 if done.returncode == 0 else float("nan")


def row(
    name: str, threads: int, precision: str, folder: Path, company: Company, pace: Pace
) -> Row:
    """Measure one model with one number of threads in one precision."""
    base, form = parts(name)
    task = Task(
        name,
        model_file(name, folder),
        seeded_inputs(base),
        "int8" if form else precision,
        lowered=precision == "bf16",
    )
    with tempfile.TemporaryDirectory(prefix="row-", dir=folder) as place:
        scratch = Path(place)
        job = job_of(task, threads, scratch, host(), scratch / "cache")
        made = measure(task, job, company, pace)
        cold = warm = float("nan")
        megabytes = {"file": task.path.stat().st_size / 2**20}
        if NANOLOOM.key in made.times:
            cold = made.facts["seconds"]
            warm = company.open(NANOLOOM.key, job).facts["seconds"]
            for word in ("peak", "cached"):
                megabytes[word] = peak_megabytes(
                    task, scratch / "fresh", threads, Path(job.inputs), precision
                )
        if "onnxruntime" in made.times:
            words = [str(task.path), str(threads), job.inputs]
            megabytes["peer"] = peak_of(PEER_MEMORY, words)
    return Row(made, precision, cold, warm, megabytes)


def sheet(rows: list[Row], rates: Limits) -> Sheet:
    """Milliseconds, the ratio to the best peer, and what compiling costs."""
    keys = [NANOLOOM.key, *MODEL_PEERS]
    missing: dict[str, dict[str, None]] = {}
    for each in rows:
        for key, reason in each.measured.absent.items():
            names = missing.setdefault(told(key, reason), {})
            names[each.measured.task.name] = None
    notes = [f"{reason} ({', '.join(names)})" for reason, names in missing.items()]
    heads = ("model", "type", ">threads", *(f">{NAMES[key]} ms" for key in keys))
    more = (">ratio", ">compile s", ">cached s", ">file MB", ">peak MB", ">cached MB")
    more = (*more, ">ORT MB", ">of it")
    peak = rates.peak("f32") or 0.0
    first = (
        f"measured f32 peak of a core: {peak:.0f} GFLOP/s",
        "ratio: nanoloom's time over that of the fastest peer",
        "peak: a first run's, which compiles; cached: a later one's, and of ORT's peak",
    )
    cells = tuple(line(each, keys) for each in rows)
    types = ", ".join(dict.fromkeys(cell[1] for cell in cells))
    title = f"whole models, {types}"
    return Sheet(title, (*heads, *more), cells, (*first, *notes))


def line(row: Row, keys: list[str]) -> tuple[str, ...]:
    """A row as cells."""
    made = row.measured
    times = {key: f"{1e3 * t.median:.2f}" for key, t in made.times.items()}
    found = row.megabytes
    sizes = [found.get(word, 0) for word in ("file", "peak", "cached", "peer")]
    share = found["cached"] / found["peer"] if {"cached", "peer"} <= set(found) else 0
    return (
        made.task.name,
        made.kind,
        str(made.threads),
        *(times.get(key, "") for key in keys),
        "" if made.ratio is None else f"{made.ratio:.2f}",
        f"{row.cold:.1f}",
        f"{row.warm:.2f}",
        *(f"{size:.0f}" if size else "" for size in sizes),
        f"{share:.2f}" if share else "",
    )


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = parser_of("whole_models", __doc__)
    parser.add_argument("--models", default=",".join(DEFAULT), help="or: all")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--repeat", type=int, default=15, help="rounds of everybody")
    parser.add_argument("--precision", default="f32", help="f32, bf16, by commas")
    parser.add_argument("--against", default=",".join(MODEL_PEERS), help="by commas")
    parser.add_argument("--quick", action="store_true", help="hardly measure")
    parser.add_argument("--json", type=Path, help="also write the rows here")
    parser.add_argument("--plot", type=Path, help="draw the rows (PNG)")
    parser.add_argument("--folder", type=Path, help="keep the models in this folder")
    given = parser.parse_args(arguments)
    given.names = list(MODELS) if given.models == "all" else given.models.split(",")
    unknown = [name for name in given.names if parts(name)[0] not in MODELS]
    if unknown:
        parser.error(f"no model is named {', '.join(unknown)}")
    if not set(given.precision.split(",")) <= {"f32", "bf16"}:
        parser.error("--precision: f32, bf16 or both")
    return given


def run(given: argparse.Namespace, folder: Path, progress: Progress) -> list[Row]:
    pace = QUICK if given.quick else Pace(rounds=given.repeat)
    found: list[Row] = []
    with (
        tempfile.TemporaryDirectory(prefix="nanoloom-") as scratch,
        Company(tuple(given.against.split(",")), Path(scratch)) as company,
    ):
        for name, precision, threads in cases(given):
            progress.say(f"{name} {precision}, threads: {threads}")
            try:
                found.append(row(name, threads, precision, folder, company, pace))
                line = json.dumps(found[-1].to_dict()["milliseconds"])
            except Error as error:
                line = str(error)
            progress.advance(f"{name} {precision}, threads: {threads}: {line}")
    return found


def cases(given: argparse.Namespace) -> list[tuple[str, str, int]]:
    """Model, precision, threads; what is in 8 bits already is measured once."""
    return [
        (name, precision, threads)
        for name in given.names
        for precision in given.precision.split(",")
        if not (parts(name)[1] and precision == "bf16" and "," in given.precision)
        for threads in map(int, given.threads.split(","))
    ]


def main(arguments: list[str] | None = None) -> None:
    measured_rows(arguments)


def measured_rows(arguments: list[str] | None) -> list[Row]:
    """The rows that these words ask for, printed and written where they say."""
    given = parse(arguments)
    rates = limits(host(), 1)
    with (
        tempfile.TemporaryDirectory(prefix="nanoloom-bench-") as scratch,
        Progress(len(cases(given))) as progress,
    ):
        folder: Path = given.folder or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        rows = run(given, folder, progress)
    print_sheet(sheet(rows, rates))
    if given.json:
        every = [each.to_dict() for each in rows]
        facts = {"peak_f32": rates.peak("f32"), "rows": every}
        given.json.write_text(json.dumps(facts, indent=1))
    if given.plot:
        given.plot.write_bytes(relative_times([each.measured for each in rows]))
    return rows


if __name__ == "__main__":
    main()
