"""torch.compile with backend="nanoloom" and with Inductor: first call, and later ones.

    python -m benchmarks torch [--models bert-base,resnet50] [--threads 1,2]
        [--backends nanoloom,inductor] [--quick] [--kept FILE]
    python -m benchmarks torch --calls

Each backend has a process of its own with nothing cached, which is asked for calls in
turns with the others.  --kept: what is measured is written there at once, and what is
there already is not measured again.  --calls: what a call of a tiny module costs.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import IO, Any

from benchmarks import torch_calls
from benchmarks.arguments import parser_of
from benchmarks.show import Progress, print_sheet
from nanoloom.errors import Error
from nanoloom_papers.reproduce.tables import Sheet

NAMES = (
    "bert-base", "distilbert", "vit-base", "swin-tiny", "convnext-tiny", "resnet50",
    "mobilenet_v2", "efficientnet_b0", "unet", "lstm", "llama", "whisper",
)  # fmt: skip
BACKENDS = "nanoloom", "inductor", "max-autotune"
ROUNDS, QUICK, SECONDS = 15, 3, 0.2  # of calls in turns, and how long each lasts about
# One line in, one line out: "call" is answered with the seconds of one call.
CHILD = """
import json, sys, time, warnings
from nanoloom.errors import ModelWarning
warnings.simplefilter("ignore")
warnings.simplefilter("error", ModelWarning)  # a part that torch runs is no figure
name, backend, threads, seconds = sys.argv[1:]
import torch
from benchmarks.torch_models import model
torch.set_num_threads(int(threads))
module, args = model(name)
with torch.no_grad():
    wanted = module(*args)
    if backend == "nanoloom":
        from nanoloom.torch.backend import nanoloom
        options = {"threads": int(threads)}
        fast = torch.compile(module, backend=nanoloom, options=options)
    else:
        mode = "max-autotune" if backend == "max-autotune" else "default"
        fast = torch.compile(module, mode=mode)
    begun = time.perf_counter()
    made = fast(*args)
    first = time.perf_counter() - begun
    error = float((made - wanted).abs().max() / wanted.abs().max())
    print(json.dumps({"first": first, "error": error}), flush=True)
    fast(*args)
    begun = time.perf_counter()
    fast(*args)
    count = max(1, int(float(seconds) / (time.perf_counter() - begun)))
    for _ in sys.stdin:
        begun = time.perf_counter()
        for _ in range(count):
            fast(*args)
        print((time.perf_counter() - begun) / count, flush=True)
"""
Row = dict[str, Any]


class Child:
    """A process that calls one model by one backend."""

    def __init__(self, name: str, backend: str, threads: int, folder: str) -> None:
        place = {"NANOLOOM_CACHE": f"{folder}/n", "TORCHINDUCTOR_CACHE_DIR": folder}
        self.called = f"{name} by {backend}"
        self.process = subprocess.Popen(
            [sys.executable, "-c", CHILD, name, backend, str(threads), str(SECONDS)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True, env={**os.environ, **place, "OMP_NUM_THREADS": str(threads)},
        )  # fmt: skip
        self.facts: Row = json.loads(self.line())

    def line(self) -> str:
        """The next one that is a value: others are what libraries print."""
        out = pipe(self.process.stdout)
        while line := out.readline():
            if line.startswith("{") or line[:1].isdigit():
                return line
        told = pipe(self.process.stderr).read().strip().splitlines() or ["it ended"]
        raise Error(f"{self.called}: {told[-1]}")

    def call(self) -> float:
        put = pipe(self.process.stdin)
        put.write("call\n")
        put.flush()
        return float(self.line())

    def close(self) -> None:
        self.process.kill()
        self.process.wait()


def pipe(stream: IO[str] | None) -> IO[str]:
    assert stream is not None
    return stream


def measured(name: str, threads: int, backends: list[str], rounds: int) -> list[Row]:
    """First calls one after the other, later ones in turns; seconds."""
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="nanoloom-bench-") as folder:
        children: list[Child] = []
        try:
            for backend in backends:
                own = tempfile.mkdtemp(dir=folder)
                children.append(Child(name, backend, threads, own))
            times = [[child.call() for child in children] for _ in range(rounds)]
        finally:
            for child in children:
                child.close()
    for place, (backend, child) in enumerate(zip(backends, children, strict=True)):
        own = [each[place] for each in times]
        ratios = [each[place] / each[0] for each in times]
        rows.append({
            "model": name, "threads": threads, "backend": backend, **child.facts,
            "call": statistics.median(own), "ratio": statistics.median(ratios),
        })  # fmt: skip
    return rows


def sheet(rows: list[Row]) -> Sheet:
    heads = ("model", ">threads", "backend", ">first call s", ">call ms",
             ">times nanoloom", ">error")  # fmt: skip
    lines = tuple(
        (
            row["model"], str(row["threads"]), row["backend"], f"{row['first']:.1f}",
            f"{row['call'] * 1e3:.3f}", f"{row['ratio']:.2f}", f"{row['error']:.0e}",
        )
        for row in rows
    )  # fmt: skip
    notes = (
        "first call: traced and compiled with nothing cached, by a process of its own",
        "times nanoloom: the median of ratios of calls in turns; above 1 it is slower",
        "error: the largest difference from eager, of the largest value",
    )
    return Sheet("torch.compile", heads, lines, notes)


def kept(path: Path | None) -> list[Row]:
    if path is None or not path.exists():
        return []
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = parser_of("torch", __doc__)
    parser.add_argument("--models", default=",".join(NAMES), help="by commas")
    parser.add_argument("--threads", default="1,2", help="by commas")
    parser.add_argument("--backends", default=",".join(BACKENDS), help="by commas")
    parser.add_argument("--quick", action="store_true", help="few rounds")
    parser.add_argument("--kept", type=Path, help="a file of rows, to go on with")
    parser.add_argument("--calls", action="store_true", help="of tiny modules alone")
    given = parser.parse_args(arguments)
    for words, known in ((given.models, NAMES), (given.backends, BACKENDS)):
        if unknown := set(words.split(",")) - set(known):
            parser.error(f"there is no {min(unknown)}; there are {', '.join(known)}")
    if not all(n.isdigit() and int(n) for n in given.threads.split(",")):
        parser.error("--threads: numbers, by commas")
    return given


def main(arguments: list[str] | None = None) -> None:
    given = parse(arguments)
    if given.calls:
        print_sheet(torch_calls.overhead())
        return
    rows = kept(given.kept)
    known = {(row["model"], row["threads"]) for row in rows}
    pairs = [(name, int(n)) for name in given.models.split(",")
             for n in given.threads.split(",")]  # fmt: skip
    wanted = [pair for pair in pairs if pair not in known]
    with Progress(len(wanted)) as progress:
        for name, threads in wanted:
            progress.say(f"{name}, {threads}")
            rounds = QUICK if given.quick else ROUNDS
            made = measured(name, threads, given.backends.split(","), rounds)
            rows += made
            if given.kept:
                with given.kept.open("a", encoding="utf-8") as file:
                    file.writelines(json.dumps(row) + "\n" for row in made)
            progress.advance(f"{name}: {made[0]['first']:.1f} s")
    chosen = [row for row in rows if (row["model"], row["threads"]) in pairs]
    print_sheet(sheet(chosen))


if __name__ == "__main__":
    main()
