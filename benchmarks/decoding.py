"""A model of GPT-2's shape that continues a text: token by token behind 512 others.

    python -m benchmarks decoding [--threads N] [--against onnxruntime,openvino]
        [--rounds N] [--quick] [--json FILE] [--folder DIR]

A token reads every weight and what is kept of all tokens before it once: time, and the
share of the bandwidth that the machine reads memory with, measured in the same run.
Then the prompt at once; and 300 tokens one after the other, which must compile nothing
and leave the memory of the process as it is, but for what is kept of them.  Peers get
their last outputs as inputs.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

import nanoloom
from benchmarks.arguments import add_race, parser_of
from benchmarks.decoder_model import TINY, Decoder
from benchmarks.decoder_peers import PEERS, Decoding
from benchmarks.show import Progress, print_sheet
from nanoloom.api.sessions.session import Session
from nanoloom.cache import Cache
from nanoloom.compiler import Report
from nanoloom.errors import Error
from nanoloom.target.host import host
from nanoloom.target.peaks import measure
from nanoloom_papers.reproduce.tables import NAMES, Sheet

CLOSE = 1e-3  # of the largest logit: f32 in another order, through twelve layers
Array = np.ndarray


@dataclass(frozen=True)
class Text:
    """prompt, count: tokens at once, and then one after the other."""

    model: Decoder
    prompt: int
    count: int

    @property
    def token_bytes(self) -> int:
        return self.model.weight_bytes + self.model.cache_bytes(self.prompt)

    def ids(self) -> Array:
        random = np.random.default_rng(1)
        return random.integers(0, self.model.words, (1, self.prompt + self.count))


LONG, SHORT = Text(Decoder(), 512, 300), Text(TINY, 17, 20)


class Ours(Decoding):
    """nanoloom's session."""

    def __init__(self, path: Path, threads: int, folder: Path) -> None:
        self.report = Report()
        program = nanoloom.compile(
            path, threads=threads, cache=Cache(folder), report=self.report
        )
        self.session: Session = program.session()

    def prompt(self, ids: Array) -> Array:
        self.session.reset()
        return self.session({"input_ids": ids})["logits"]

    def token(self, ids: Array, length: int) -> Array:
        self.session.rewind(length)
        return self.session({"input_ids": ids})["logits"]


@dataclass
class Found:
    """Seconds of a token and of the prompt, by contender; what was absent, and why."""

    text: Text
    threads: int
    bandwidth: float  # bytes a second
    token: dict[str, list[float]] = field(default_factory=dict[str, list[float]])
    prompt: dict[str, list[float]] = field(default_factory=dict[str, list[float]])
    notes: list[str] = field(default_factory=list[str])

    def share(self, key: str) -> float:
        """Of the bandwidth."""
        seconds = statistics.median(self.token[key])
        return self.text.token_bytes / seconds / self.bandwidth

    def to_dict(self) -> dict[str, object]:
        return {
            "threads": self.threads,
            "bytes_a_token": self.text.token_bytes,
            "bandwidth": self.bandwidth,
            "token_seconds": medians(self.token),
            "prompt_seconds": medians(self.prompt),
            "share_of_bandwidth": {key: self.share(key) for key in self.token},
            "notes": self.notes,
        }


def medians(times: Mapping[str, Sequence[float]]) -> dict[str, float]:
    return {key: statistics.median(seconds) for key, seconds in times.items()}


def timed(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def race(text: Text, ready: Mapping[str, Decoding], found: Found, rounds: int) -> None:
    """Everybody's prompt and token, in turns; who is wrong is left out."""
    ids = text.ids()
    new = ids[:, text.prompt : text.prompt + 1]
    right: Array | None = None
    for key, each in ready.items():
        each.prompt(ids[:, : text.prompt])
        logits = each.token(new, text.prompt)
        right = logits if right is None else right
        if np.abs(logits - right).max() > CLOSE * np.abs(right).max():
            found.notes.append(f"{NAMES[key]} gives other numbers")
            continue
        found.token[key], found.prompt[key] = [], []
    for _ in range(rounds):
        for key in found.token:
            run = ready[key]
            found.token[key].append(timed(lambda r=run: r.token(new, text.prompt)))
    for _ in range(max(1, rounds // 5)):
        for key in found.prompt:
            run = ready[key]
            seconds = timed(lambda r=run: r.prompt(ids[:, : text.prompt]))
            found.prompt[key].append(seconds)


def long_text(text: Text, ours: Ours) -> str:
    """Many tokens: what was compiled behind the first ones, and what they took.

    The memory that a session has room in is the process's page by page, as keys are
    written: so it grows the first time, and not when they are said again.
    """
    ids = text.ids()
    ours.prompt(ids[:, : text.prompt])
    ours.token(ids[:, -1:], text.prompt)
    seconds, kernels = dict(ours.report.seconds), ours.report.kernels
    grown: list[float] = []
    for _ in range(2):
        before = resident()
        for place in range(text.prompt, text.prompt + text.count):
            ours.token(ids[:, place : place + 1], place)
        grown.append((resident() - before) / 2**20)
    same = (seconds, kernels) == (dict(ours.report.seconds), ours.report.kernels)
    keys = text.model.cache_bytes(text.count) / 2**20
    return (
        f"{text.count} tokens: {'nothing' if same else 'something'} was compiled;"
        f" memory grew by {grown[0]:.1f} MB, where keys and values are {keys:.1f} MB,"
        f" and by {grown[1]:.1f} MB when they were said again"
    )


def resident() -> int:
    """Bytes of this process in memory."""
    pages = Path("/proc/self/statm").read_text("ascii").split()[1]
    return int(pages) * resource.getpagesize()


def sheet(found: Found) -> Sheet:
    first = next(iter(found.token))
    own = statistics.median(found.token[first])
    cells: list[tuple[str, ...]] = []
    for key, seconds in found.token.items():
        token = statistics.median(seconds)
        prompt = statistics.median(found.prompt[key])
        cells.append(
            (
                NAMES[key],
                f"{1e3 * token:.2f}",
                f"{1 / token:.1f}",
                f"{100 * found.share(key):.0f}",
                f"{token / own:.2f}",
                f"{1e3 * prompt:.0f}",
                f"{found.text.prompt / prompt:.0f}",
            )
        )
    title = f"GPT-2's shape behind {found.text.prompt} tokens, threads: {found.threads}"
    heads = ("-", ">ms a token", ">tokens/s", ">%bandwidth", ">times nanoloom's")
    notes = (
        f"a token reads {found.text.token_bytes / 1e6:.0f} MB; measured, reading: "
        f"{found.bandwidth / 1e9:.1f} GB/s",
        *found.notes,
    )
    return Sheet(title, (*heads, ">ms the prompt", ">tokens/s"), tuple(cells), notes)


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = parser_of("decoding", __doc__)
    add_race(parser, tuple(PEERS), "1")
    parser.set_defaults(rounds=25)
    parser.add_argument("--folder", type=Path, help="where the model is kept")
    return parser.parse_args(arguments)


def run(given: argparse.Namespace, threads: int, folder: Path) -> Found:
    text = SHORT if given.quick else LONG
    name = f"decoder_{text.model.layers}x{text.model.width}.onnx"
    path = folder / name
    if not path.is_file():
        text.model.write(path)
    rate = measure(host(), threads).best("memory", threads) or 0.0
    found = Found(text, threads, rate * 1e9)
    ours = Ours(path, threads, folder / "cache")
    ready: dict[str, Decoding] = {"nanoloom": ours}
    for key in filter(None, given.against.split(",")):
        try:
            ready[key] = PEERS[key](path, threads)
        except Error as error:
            found.notes.append(str(error))
    race(text, ready, found, 2 if given.quick else given.rounds)
    found.notes.append(long_text(text, ours))
    return found


def main(arguments: list[str] | None = None) -> None:
    given = parse(arguments)
    counts = [int(word) for word in given.threads.split(",")]
    every: list[Found] = []
    with (
        tempfile.TemporaryDirectory(prefix="nanoloom-") as scratch,
        Progress(len(counts)) as progress,
    ):
        folder: Path = given.folder or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        for threads in counts:
            progress.say(f"decoding, threads: {threads}")
            every.append(run(given, threads, folder))
            print_sheet(sheet(every[-1]))
            progress.advance(f"decoding, threads: {threads}")
    if given.json:
        given.json.write_text(json.dumps([f.to_dict() for f in every], indent=1))


if __name__ == "__main__":
    main()
