"""Run the benchmarks: all that measure, or the one that is named.

python -m benchmarks [NAME] [options of the benchmark] [--record [FILE]]
python -m benchmarks page
python -m benchmarks lock [--write]
python -m benchmarks bisect MODEL
python -m benchmarks versions COMMIT

whole_models, gemm, parts, layers, operators, binary, computations, decoding, sizes,
recurrences; compile_time, inner_loops, ports, instructions, scoring and torch where
they are named.  --record keeps the tables in benchmarks/results, of which `page` makes
docs/performance.md.  All of them say what got slower since `lock --write`; `bisect`
finds the commit; `versions` compares with a commit, model by model.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from benchmarks import (
    binary,
    bisect,
    compile_time,
    computations,
    decoding,
    gemm,
    inner_loops,
    instructions,
    layers,
    lock,
    operators,
    page,
    parts,
    ports,
    recurrences,
    scoring,
    sizes,
    torch_compile,
    versions,
    whole_models,
)
from benchmarks.results import commit, write_result
from benchmarks.show import printed
from nanoloom.errors import Error

BENCHMARKS = {
    "whole_models": whole_models.main,
    "gemm": gemm.main,
    "parts": parts.main,
    "layers": layers.main,
    "operators": operators.main,
    "binary": binary.main,
    "computations": computations.main,
    "decoding": decoding.main,
    "sizes": sizes.main,
    "recurrences": recurrences.main,
}
# What needs llvm-mca or qemu-user, or compares with nobody: not among all of them.
NAMED = {
    "compile_time": compile_time.main,
    "inner_loops": inner_loops.main,
    "ports": ports.main,
    "instructions": instructions.main,
    "scoring": scoring.main,
    "lock": lock.main,
    "bisect": bisect.main,
    "versions": versions.main,
    "torch": torch_compile.main,
}


RECORD = "--record"


def main() -> None:
    given = sys.argv[1:]
    if not given:
        lock.main([], ends=False)  # in place of whole_models
        for name, run in BENCHMARKS.items():
            if name != "whole_models":
                run([])
        return
    known = BENCHMARKS | NAMED | {"page": page.main}
    if given[0] not in known:
        print(f"no benchmark {given[0]}; there are {', '.join(known)}")
        sys.exit(2)
    try:
        run_named(known[given[0]], given)
    except Error as error:
        sys.exit(str(error))


def run_named(run: Callable[[list[str]], None], given: list[str]) -> None:
    """Run a benchmark; behind --record stands the file's name, if not its own."""
    name, words, file = recorded_as(given)
    if file is None:
        return run(words)
    commit()  # refuses before hours of measurements, not behind them
    with printed() as tables:
        run(words)
    print(write_result(file, [name, *words], tables))
    return None


def recorded_as(given: list[str]) -> tuple[str, list[str], str | None]:
    """A benchmark's name, its words without --record, and the name of a file."""
    name, *words = given
    if RECORD not in words:
        return name, words, None
    place = words.index(RECORD)
    following = words[place + 1 : place + 2]
    if following and not following[0].startswith("-"):
        return name, words[:place] + words[place + 2 :], following[0]
    return name, words[:place] + words[place + 1 :], name


if __name__ == "__main__":
    main()
