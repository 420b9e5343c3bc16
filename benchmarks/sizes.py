"""One program for every size: texts of many lengths, batches of images, their sides.

    python -m benchmarks sizes [--models bert-base,resnet18-images] [--threads N]
        [--lengths N] [--against onnxruntime,openvino] [--rounds N] [--quick]
        [--json FILE] [--folder DIR]

Everybody has the model once, with its dimensions left open; `own` is nanoloom's variant
for that size alone.  All in one process, in turns, medians.  `resnet18` has any batch,
`resnet18-images` one image of any height and width.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

import nanoloom
from benchmarks.arguments import add_race, parser_of
from benchmarks.models import MODELS, seeded_inputs
from benchmarks.open_images import base, image, image_sizes, is_open, open_sides
from benchmarks.show import Progress, print_sheet
from benchmarks.whole_models import model_file
from nanoloom.cache import Cache
from nanoloom.errors import Error
from nanoloom_papers.reproduce.tables import NAMES, Sheet

Array = np.ndarray
Run = Callable[[Mapping[str, Array]], object]
LENGTHS = (1, 5, 8, 16, 33, 64, 128, 200, 256, 384, 512)
BATCHES = (1, 2, 4, 8)
DRAWN = "so many lengths, drawn with a seed"
OWN = "own"
DEFAULT = (
    "bert-base", "resnet18", "resnet18-images", "mobilenet_v2-images", "unet-images"
)  # fmt: skip
ENOUGH = 0.5  # seconds of one size, where a run is short


@dataclass
class Found:
    """Seconds of every size by contender; what was compiled after the first call."""

    model: str
    threads: int
    times: dict[str, dict[str, list[float]]] = field(
        default_factory=dict[str, dict[str, list[float]]]
    )
    notes: list[str] = field(default_factory=list[str])

    def medians(self) -> dict[str, dict[str, float]]:
        return {
            size: {key: statistics.median(each) for key, each in row.items()}
            for size, row in self.times.items()
        }

    def to_dict(self) -> dict[str, object]:
        return {
            "model": self.model,
            "threads": self.threads,
            "median_seconds": self.medians(),
            "notes": self.notes,
        }


def sizes_of(name: str, quick: bool, drawn: int = 0) -> list[dict[str, int]]:
    """Numbers of the open dimensions, a dict for each size; drawn: so many lengths."""
    if is_open(name):
        return image_sizes(name)[: 1 if quick else None]
    sizes = MODELS[name].full.sizes
    if "sequence" in sizes:
        lengths = LENGTHS[1::8] if quick else lengths_of(drawn)
        return [{"batch": 1, "sequence": n} for n in lengths]
    return [{"batch": n} for n in (BATCHES[:1] if quick else BATCHES)]


def lengths_of(drawn: int) -> Sequence[int]:
    """LENGTHS, or so many others between their ends, seeded."""
    if not drawn:
        return LENGTHS
    every = range(LENGTHS[0], LENGTHS[-1] + 1)
    return sorted(random.Random(40).sample(every, drawn))


def onnx_runtime(path: Path, threads: int) -> Run:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        str(path), options, providers=["CPUExecutionProvider"]
    )
    return lambda inputs: session.run(None, dict(inputs))


def openvino(path: Path, threads: int) -> Run:
    from openvino import Core

    hints = {"INFERENCE_NUM_THREADS": threads, "INFERENCE_PRECISION_HINT": "f32"}
    compiled = Core().compile_model(
        str(path), "CPU", {**hints, "PERFORMANCE_HINT": "LATENCY"}
    )
    request = compiled.create_infer_request()
    return lambda inputs: request.infer(
        dict(inputs), share_inputs=True, share_outputs=True
    )


PEERS: Mapping[str, Callable[[Path, int], Run]] = {
    "onnxruntime": onnx_runtime,
    "openvino": openvino,
}


def timed(run: Run, inputs: Mapping[str, Array]) -> float:
    start = time.perf_counter()
    run(inputs)
    return time.perf_counter() - start


def race(
    ready: Mapping[str, Run], inputs: Mapping[str, Array], rounds: int
) -> dict[str, list[float]]:
    """Everybody in turns; short runs more often, three at once."""
    once = max(min(timed(run, inputs) for _ in range(2)) for run in ready.values())
    repeated = max(rounds, min(200, int(ENOUGH / len(ready) / once)))
    times: dict[str, list[float]] = {key: [] for key in ready}
    for _ in range(repeated):
        for key, run in ready.items():
            run(inputs)  # what another left in the caches
            times[key].append(min(timed(run, inputs) for _ in range(2)))
    return times


def measured(given: argparse.Namespace, name: str, threads: int, folder: Path) -> Found:
    found = Found(name, threads)
    path, cache = model_file(base(name), folder), Cache(folder / "cache")
    path = open_sides(path) if is_open(name) else path
    program = nanoloom.compile(path, threads=threads, cache=cache)
    peers: dict[str, Run] = {}
    for key in filter(None, given.against.split(",")):
        try:
            peers[key] = PEERS[key](path, threads)
        except (ImportError, Error) as error:
            found.notes.append(f"{NAMES[key]}: {error}")
    for dims in sizes_of(name, given.quick, given.lengths):
        inputs = image(path, dims) if is_open(name) else seeded_inputs(name, sizes=dims)
        shapes = {key: array.shape for key, array in inputs.items()}
        ready = {"nanoloom": program, OWN: program.variant_of(shapes, {}), **peers}
        size = ", ".join(f"{key}={n}" for key, n in dims.items())
        found.times[size] = race(ready, inputs, 1 if given.quick else given.rounds)
    why = program.open.reason
    found.notes.append(why or "compiled once for all sizes")
    return found


def sheet(found: Found) -> Sheet:
    keys = list(next(iter(found.times.values())))
    heads = ["-", *(f">{NAMES.get(key, key)} ms" for key in keys)]
    cells: list[tuple[str, ...]] = []
    for size, row in found.medians().items():
        others = [seconds for key, seconds in row.items() if key in PEERS]
        best = min(others, default=float("nan")) / row["nanoloom"]
        times = [f"{1e3 * row[key]:.2f}" for key in keys]
        own = row["nanoloom"] / row[OWN]
        cells.append((size, *times, f"{own:.2f}", f"{best:.2f}"))
    title = f"{found.model}, threads: {found.threads}"
    columns = (*heads, ">times own", ">best peer's")
    return Sheet(title, columns, tuple(cells), tuple(found.notes))


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = parser_of("sizes", __doc__)
    add_race(parser, tuple(PEERS), "1")
    parser.set_defaults(rounds=5)
    parser.add_argument("--lengths", type=int, default=0, metavar="N", help=DRAWN)
    parser.add_argument("--models", default=",".join(DEFAULT), help="by commas")
    parser.add_argument("--folder", type=Path, help="where models are kept")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> None:
    given = parse(arguments)
    cases = [
        (name, int(threads))
        for name in given.models.split(",")
        for threads in given.threads.split(",")
    ]
    every: list[Found] = []
    with (
        tempfile.TemporaryDirectory(prefix="nanoloom-") as scratch,
        Progress(len(cases)) as progress,
    ):
        folder: Path = given.folder or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        for name, threads in cases:
            progress.say(f"{name}, threads: {threads}")
            every.append(measured(given, name, threads, folder))
            print_sheet(sheet(every[-1]))
            progress.advance(f"{name}, threads: {threads}")
    if given.json:
        given.json.write_text(json.dumps([f.to_dict() for f in every], indent=1))


if __name__ == "__main__":
    main()
