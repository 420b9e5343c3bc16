"""The inner loops of Figure 9 in assembly: how many instructions, and their cycles.

Of each layer's largest product.  llvm-mca simulates the loop with most multiply-adds,
on a model of a core of RISC-V where it has one, and of the paper's Xeon; what stands
around it, the sums of lanes for one, is left out.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from nanoloom.emit import emit_stage
from nanoloom.explain.assembly import inner_loops
from nanoloom.frontend.onnx import load
from nanoloom.options import CompileOptions, Strategy
from nanoloom.target import Target, by_name
from nanoloom_papers.reproduce.llvm_mca import Refused, newest, simulate, version_of
from nanoloom_papers.reproduce.oml_case import Case
from nanoloom_papers.reproduce.oml_results import COSTS, CYCLES, RISCV, STATIC, Result

# Cores by the machine that is compiled for: with vectors of 512 bits, and the paper's.
CORES = {"rv64gcv-zvl512b": "sifive-x280", "x86-64-v3": "broadwell"}
FUSED = re.compile(r"vfm(acc|add)\.v[vf]\s|fmadd\.s\s|vfmadd\d+[ps]s\s")
BITS = {"x": 128, "y": 256, "z": 512}
PRODUCT = re.compile(r"contraction_\w+?_(\d+(?:x\d+)+)_")
UNIT = 1024  # multiply-adds


def inner_loops_of(
    case: Case, strategies: Mapping[str, Strategy | None]
) -> Iterator[Result]:
    """Instructions of all kernels on RISC-V, then cycles; notes where none are known.

    Cycles are of UNIT multiply-adds.
    """
    layer = case.layer
    for machine, core in CORES.items():
        target = by_name(machine)
        for name, strategy in strategies.items():
            texts = assembly(case, target, strategy)
            if target.arch == "riscv64":
                count = sum(map(instructions, texts.values()))
                yield Result(COSTS, layer.name, layer.size, name, STATIC, count)
            value, note = None, ""
            try:
                value = cycles(texts[max(texts, key=size_of)], target, core)
            except Refused as why:
                note = str(why)
            what = CYCLES.format(core)
            yield Result(RISCV, layer.name, layer.size, name, what, value, note)


def assembly(case: Case, target: Target, strategy: Strategy | None) -> dict[str, str]:
    """The kernels' texts by their names."""
    found: dict[str, str] = {}

    def keep(stage: str, kernel: str, text: str) -> None:
        found[kernel] = text

    options = CompileOptions(target, strategy=strategy)
    emit_stage(load(case.model), "asm", options, keep)
    return found


def size_of(kernel: str) -> int:
    """Steps of all loops of a product, by its name; 0 of what is none."""
    told = PRODUCT.match(kernel)
    return math.prod(map(int, told[1].split("x"))) if told else 0


def instructions(text: str) -> int:
    """Lines of assembly that are no labels, directives or comments."""
    lines = map(str.strip, text.splitlines())
    return sum(bool(x) and x[0] not in ".#" and not x.endswith(":") for x in lines)


def cycles(text: str, target: Target, core: str) -> float:
    """Of UNIT multiply-adds in the loop that has most of them.

    Raises Refused where llvm-mca is missing, or does not know the core.
    """
    mca = newest()
    if mca is None:
        raise Refused("llvm-mca is not installed (Debian: the package llvm-22)")
    every = [(group_before(text, loop), loop) for loop in inner_loops(text)]
    group, loop = max(every, key=lambda each: work(each[1], each[0], target))
    done = work(loop, group, target)
    if not done:
        raise Refused("no loop multiplies and adds")
    name = f"M{int(group)}" if group >= 1 else f"MF{int(1 / group)}"
    told = [f"# LLVM-MCA-RISCV-LMUL {name}", "# LLVM-MCA-RISCV-SEW E32"]
    given = [*(told if target.arch == "riscv64" else []), *loop]
    try:
        return simulate(mca, given, replace(target, cpu=core))[2] * UNIT / done
    except Refused as why:
        raise Refused(f"{why} ({version_of(mca)})") from None


def work(loop: Sequence[str], group: float, target: Target) -> int:
    """Multiply-adds of a round of a loop, lane by lane."""
    found = 0.0
    for line in filter(FUSED.match, loop):
        word = line.split()[0]
        if ".v" in word:
            found += target.vector.min_bits // 32 * group
        elif word.endswith("ps"):
            found += BITS[line.split("%")[-1][0]] // 32
        else:
            found += 1
    return int(found)


def group_before(text: str, loop: Sequence[str]) -> float:
    """How many of RISC-V's registers an instruction has: by the last that said so."""
    lines = list(map(str.strip, text.splitlines()))
    begin = next((n for n, line in enumerate(lines) if line == loop[0]), 0)
    for n in range(begin, len(lines)):
        if lines[n : n + 2] == list(loop[:2]):
            begin = n
            break
    said = re.findall(r"vsetv\w*\s.*, m(f?)(\d)", "\n".join([*lines[:begin], *loop]))
    if not said:
        return 1.0
    part, number = said[-1]
    return 1 / int(number) if part else float(number)
