"""Matrix products of transformers beside their peers and the machine's limits.

    python -m benchmarks gemm [--sizes 128x768x768,512x512x512] [--rows 1,128]
        [--precision f32,bf16,int8] [--threads 1,2] [--json FILE] [--csv FILE]

x[M, K] @ w[K, N] with w a constant of the model.  bf16: a model in f32 that is computed
in bf16 (--precision bf16; OpenVINO's hint; bf16 tensors in PyTorch).  The bound is
min(peak, bandwidth * operations / bytes), with rates measured in the same run and the
bandwidth of the cache that the product fits in.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.arguments import add_race, parser_of
from benchmarks.show import Progress, print_sheet
from nanoloom.target.host import host
from nanoloom_papers.reproduce.chains import Arithmetic, Chain, gemm
from nanoloom_papers.reproduce.contenders import PEER_KEYS, Company
from nanoloom_papers.reproduce.measurement import Row, Setting, measure_chain
from nanoloom_papers.reproduce.tables import (
    NAMES,
    SHORT,
    Sheet,
    as_csv,
    as_dict,
    notes,
    peaks,
    whole,
)
from nanoloom_papers.reproduce.timing import QUICK, Pace

ROWS = (1, 4, 8, 16, 32, 64, 128, 384)
WEIGHTS = ((768, 768), (768, 3072), (3072, 768), (384, 1536), (1024, 4096))
ODD = (127, 333, 517)  # sizes that nothing divides
PRECISIONS: dict[str, Arithmetic] = {"f32": "f32", "bf16": "mixed", "int8": "int8"}
QUICK_SIZES = "1x32x48,13x32x48"


def sizes(text: str | None, rows: str | None) -> list[tuple[int, int, int]]:
    """MxKxN words; without them every weight with each number of rows."""
    if text:
        return [edges(word) for word in text.split(",")]
    counts = [int(word) for word in rows.split(",")] if rows else list(ROWS)
    shapes = [(m, k, n) for k, n in WEIGHTS for m in counts]
    return shapes if rows else [*shapes, ODD]


def edges(word: str) -> tuple[int, int, int]:
    m, k, n = map(int, word.split("x"))
    return m, k, n


def sheet(title: str, rows: Sequence[Row]) -> Sheet:
    """GFLOP/s of everybody, the bound, and nanoloom beside both."""
    keys = [key for key in NAMES if any(key in row.times for row in rows)]
    cells = [
        (
            row.chain.size,
            *(whole(row.gflops(key)) for key in keys),
            whole(row.bound),
            row.limits.bandwidth(row.chain.bytes)[0],
            whole(row.of_bound("nanoloom")),
            whole(row.of_peak("nanoloom")),
            ratio(row),
            " ".join(row.families),
        )
        for row in rows
    ]
    columns = ("MxKxN", *(f">{SHORT.get(key, NAMES[key])}" for key in keys))
    ends = (">bound", "in", ">%bound", ">%peak", ">best peer", "by")
    told = (
        *peaks(rows),
        "bound: min(peak, bandwidth * operations / bytes), read from the level in `in`",
        "best peer: nanoloom's time over that of the fastest peer, and its name",
        *notes(rows),
    )
    return Sheet(title, (*columns, *ends), tuple(cells), told)


def ratio(row: Row) -> str:
    """nanoloom's time over the best peer's: below 1 it is the fastest."""
    best = row.best_peer
    if best is None or "nanoloom" not in row.times:
        return ""
    times = row.times
    return (
        f"{times['nanoloom'].median / times[best].median:.2f} {SHORT.get(best, best)}"
    )


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = parser_of("gemm", __doc__)
    parser.add_argument("--sizes", help="MxKxN, by commas")
    parser.add_argument("--rows", help="only these M, by commas")
    parser.add_argument("--precision", default="f32,bf16,int8", help="by commas")
    add_race(parser, PEER_KEYS, "1")
    parser.add_argument("--csv", type=Path, metavar="FILE")
    given = parser.parse_args(arguments)
    for word in given.precision.split(","):
        if word not in PRECISIONS:
            parser.error(f"--precision: {word} is none of {', '.join(PRECISIONS)}")
    return given


def measure(given: argparse.Namespace) -> list[Row]:
    """All rows, in the order of the tables."""
    shapes = sizes(QUICK_SIZES if given.quick else given.sizes, given.rows)
    counts = [int(word) for word in given.threads.split(",")]
    chains: list[Chain] = [
        gemm(*shape, PRECISIONS[word])
        for word in given.precision.split(",")
        for shape in shapes
    ]
    pace = QUICK if given.quick else Pace(rounds=given.rounds)
    rows: list[Row] = []
    with (
        tempfile.TemporaryDirectory(prefix="nanoloom-") as scratch,
        Company(tuple(given.against.split(",")), Path(scratch)) as company,
        Progress(len(chains)) as progress,
    ):
        setting = Setting(host(), company, Path(scratch), pace, progress.say)
        for chain in chains:
            rows += measure_chain(chain, counts, setting)
            progress.advance()
    return rows


def main(arguments: list[str] | None = None) -> None:
    given = parse(arguments)
    rows = measure(given)
    words = {arithmetic: word for word, arithmetic in PRECISIONS.items()}
    for arithmetic in dict.fromkeys(row.chain.arithmetic for row in rows):
        for count in dict.fromkeys(row.threads for row in rows):
            title = f"GEMM in {words[arithmetic]}, threads: {count}, GFLOP/s"
            found = [
                row
                for row in rows
                if (row.chain.arithmetic, row.threads) == (arithmetic, count)
            ]
            print_sheet(sheet(title, found))
    if given.json:
        given.json.write_text(json.dumps(as_dict(rows, host().name), indent=1))
    if given.csv:
        given.csv.write_text(as_csv(rows))


if __name__ == "__main__":
    main()
