"""Figure 9: what the configurations execute on RISC-V, counted under qemu.

Instructions of one run, and the loads and stores of vectors among them; results are
compared first.  Compiled for a machine whose vectors have that length at least.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from nanoloom.compile_program import compile
from nanoloom.errors import Error
from nanoloom.options import CompileOptions, Strategy
from nanoloom.runtime.emulation import Machine, machine, run_emulated
from nanoloom_papers.reproduce.instruction_counts import Count, build_plugin, of_one_run
from nanoloom_papers.reproduce.oml_case import Case
from nanoloom_papers.reproduce.oml_results import COSTS, RISCV, SIZE, Result

LENGTHS, QUICK_LENGTHS = (512, 256), (512,)
MOST_ROWS = 32  # under an emulator


def emulated(
    case: Case,
    strategies: Mapping[str, Strategy | None],
    lengths: Sequence[int],
    say: Callable[[str], None],
) -> Iterator[Result]:
    """Counts of a layer by these strategies; a note where something is missing."""
    with tempfile.TemporaryDirectory(prefix="nanoloom-") as scratch:
        folder = Path(scratch)
        for bits in lengths:
            for name, strategy in strategies.items():
                say(f"{case.layer.name}: counting {name}, vlen {bits}")
                yield from one(case, name, strategy, bits, folder)


def one(
    case: Case, name: str, strategy: Strategy | None, bits: int, folder: Path
) -> Iterator[Result]:
    """A configuration at a length of vectors."""
    on = machine(f"rv64gcv-zvl{bits}b:vlen={bits}")
    layer, note, count, size = case.layer, "", None, None
    try:
        path = executable(case, strategy, on, folder)
        size = path.stat().st_size
        note = checked(case, on, path)
        count = None if note else counts(case, on, path, folder)
    except Error as error:
        note = str(error)
    told = {
        "instructions": count and count.all,
        "vector loads": count and count.loads,
        "vector stores": count and count.stores,
    }
    for what, value in told.items():
        quantity = f"{what}, vlen {bits}"
        yield Result(RISCV, layer.name, layer.size, name, quantity, value, note)
    if bits == LENGTHS[0]:
        yield Result(COSTS, layer.name, layer.size, name, SIZE, size)


def executable(
    case: Case, strategy: Strategy | None, on: Machine, folder: Path
) -> Path:
    options = CompileOptions(on.target, strategy=strategy)
    program = compile(case.model, threads=1, options=options)
    return program.save(folder / "model", form="executable")


def checked(case: Case, on: Machine, path: Path) -> str:
    """What is wrong with the executable's result; "" if nothing is."""
    kinds = {"y": np.dtype(np.float32)}
    return case.wrong(run_emulated(on, path, list(case.feeds.values()), kinds)["y"])


def counts(case: Case, on: Machine, path: Path, folder: Path) -> Count:
    given = folder / "x.npy"
    np.save(given, case.feeds["x"])
    return of_one_run(build_plugin(folder), on, path, [given])
