"""Run the benchmarks: all that measure, or the one that is named.

python -m benchmarks [NAME] [options of the benchmark]

whole_models, gemm, parts, layers, binary, computations, decoding, sizes, recurrences;
inner_loops, ports and instructions where they are named.
"""

from __future__ import annotations

import sys

from benchmarks import (
    binary,
    computations,
    decoding,
    gemm,
    inner_loops,
    instructions,
    layers,
    parts,
    ports,
    recurrences,
    sizes,
    whole_models,
)

BENCHMARKS = {
    "whole_models": whole_models.main,
    "gemm": gemm.main,
    "parts": parts.main,
    "layers": layers.main,
    "binary": binary.main,
    "computations": computations.main,
    "decoding": decoding.main,
    "sizes": sizes.main,
    "recurrences": recurrences.main,
}
# What needs llvm-mca or qemu-user: not among all of them.
NAMED = {
    "inner_loops": inner_loops.main,
    "ports": ports.main,
    "instructions": instructions.main,
}


def main() -> None:
    given = sys.argv[1:]
    if not given:
        for run in BENCHMARKS.values():
            run([])
        return
    known = BENCHMARKS | NAMED
    if given[0] not in known:
        print(f"no benchmark {given[0]}; there are {', '.join(known)}")
        sys.exit(2)
    known[given[0]](given[1:])


if __name__ == "__main__":
    main()
