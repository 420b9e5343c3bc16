"""More blocks than the tests draw: python -m tests.fuzz.blocks --first 100 --count 50

Prints what does not compile or is wrong, with the seed that draws it again.
"""

from __future__ import annotations

import argparse

from nanoloom.errors import Error
from tests.kernels.test_blocks import BOUND, differs, levels
from tests.models.blocks import BLOCKS


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=100)
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--kind", choices=sorted(BLOCKS), action="append")
    given = parser.parse_args()
    known, wrong = levels(), 0
    for seed in range(given.first, given.first + given.count):
        for kind in given.kind or BLOCKS:
            level = known[seed % len(known)]
            try:
                error, _ = differs(kind, seed, level)
            except (Error, AssertionError) as failed:
                said = str(failed)
            else:
                said = f"is wrong by {error:.1e}" if error >= BOUND else ""
            if said:
                wrong += 1
                print(f"{kind} {seed} {level}: {said}", flush=True)
    print(f"{given.count * len(given.kind or BLOCKS)} blocks, {wrong} failed")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
