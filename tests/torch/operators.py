"""torch's own samples of operators, of several element types: right, refused, wrong.

python -m tests.torch.operators [--share 0.1] [--seed 1] [--type float32 ...] [--all]
    [--minutes 5] [--first NAME]

Runs them in ONNX Runtime as they are imported, and what that has no kernels for, and a
tenth of the rest, compiled.  --all: every operator, not only those that models are
made of.  --minutes: each element type stops then, and says with which --first it goes
on.  Exit status 1 where a sample is wrong.
"""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch  # pyright: ignore[reportMissingImports]

import nanoloom
from nanoloom.errors import Error, Unsupported
from tests.torch.operator_results import PEER_REFUSES, by_peer, computed, is_right
from tests.torch.operator_samples import EVERY, NAMES, Sample, samples

TYPES = (
    "float32", "float64", "bfloat16", "float16", "int64", "int32", "int16", "int8",
    "uint8", "bool", "complex64",
)  # fmt: skip
COMPILED = 0.1


def outcome(sample: Sample, folder: Path, compiles: bool) -> str:
    """What became of a sample: right, wrong, or why it is refused."""

    def by_us(model: Any, arrays: dict[str, Any]) -> dict[str, Any]:
        return nanoloom.compile(model, cache=folder, threads=1)(arrays)

    try:
        try:
            found = computed(sample, by_us if compiles else by_peer)
        except PEER_REFUSES:
            found, compiles = computed(sample, by_us), True
        if not compiles and not is_right(sample, found):  # it has f32 within f64
            found = computed(sample, by_us)
    except Unsupported as error:
        return error.reason
    except Error as error:
        return f"fails: {error}"
    except Exception as error:  # noqa: BLE001 - an error of our own, to be told
        return f"breaks: {type(error).__name__}: {error}"
    return "right" if is_right(sample, found) else "wrong"


def kind_of(result: str) -> str:
    if result.startswith("breaks") or "a bug of nanoloom" in result:
        return "wrong"
    return result if result in ("right", "wrong") else "refused"


def rows(words: argparse.Namespace) -> Iterator[tuple[str, Counter[str], list[str]]]:
    for name in words.type or TYPES:
        counts, told = Counter[str](), list[str]()
        drawn = np.random.default_rng(words.seed)
        dtype = getattr(torch, name)
        chosen = EVERY if words.all else NAMES
        end = time.monotonic() + 60 * words.minutes
        with tempfile.TemporaryDirectory() as folder:
            for sample in samples(words.seed, words.share, dtype, chosen, words.first):
                if time.monotonic() > end:
                    told.append(f"time is up: --first {sample.name} goes on")
                    break
                compiles = drawn.random() < COMPILED
                result = outcome(sample, Path(folder), compiles)
                counts[kind_of(result)] += 1
                if result != "right":
                    told.append(f"{sample.name}: {result}")
        yield name, counts, told


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--share", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--type", nargs="*", choices=TYPES)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--first", default="", help="the operator to begin with")
    words = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    is_wrong = False
    for name, counts, told in rows(words):
        right, refused, wrong = (counts[x] for x in ("right", "refused", "wrong"))
        total = max(counts.total(), 1)
        print(f"{name}: {right} of {total} right ({right / total:.1%}), "
              f"{refused} refused, {wrong} wrong", flush=True)  # fmt: skip
        for line, count in Counter(told).most_common():
            print(f"  {count} x {line}", flush=True)
        is_wrong |= wrong > 0
    sys.exit(is_wrong)


if __name__ == "__main__":
    main()
