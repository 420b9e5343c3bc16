"""Run the benchmarks: all of them, or those that are named.

python -m benchmarks [whole_models|gemm|parts] [options of the benchmark]
"""

from __future__ import annotations

import sys

from benchmarks import gemm, parts, whole_models

BENCHMARKS = {
    "whole_models": whole_models.main,
    "gemm": gemm.main,
    "parts": parts.main,
}


def main() -> None:
    given = sys.argv[1:]
    if not given:
        for run in BENCHMARKS.values():
            run([])
        return
    if given[0] not in BENCHMARKS:
        print(f"no benchmark {given[0]}; there are {', '.join(BENCHMARKS)}")
        sys.exit(2)
    BENCHMARKS[given[0]](given[1:])


if __name__ == "__main__":
    main()
