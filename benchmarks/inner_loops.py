"""The inner loops of the nanokernels in llvm-mca: cycles a round beside the bound.

    python -m benchmarks inner_loops [--only amx-bf16,int8-dot] [--size 96x256x256]
        [--mca PATH] [--text] [--json FILE]

For families that may not run here: each is compiled for its target, and its inner loop
is given to llvm-mca with that CPU's model (or the nearest that llvm-mca has).  `block`
is what its ports need at least, `cycles` what the simulation takes with all waiting,
for a round; the bound is the products over the rate of the unit that multiplies.  That
rate is nanoloom's fact about the target: where LLVM's model knows another one, the
percentage tells of the difference, too.  Fewer cycles than the bound are a mistake of
the model, and no percentage: LLVM 22 lets Skylake and Ice Lake add 512 bits on port 1,
which is off while those are computed.
LLVM has no model of tile registers: sixteen loads stand for a tile's load, its products
are left out, and 16 cycles each of them are the bound.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import onnx_ir
from onnx import TensorProto, helper

from benchmarks.arguments import parser_of
from benchmarks.assembly import count, inner_loops
from benchmarks.llvm_mca import found
from benchmarks.show import Progress, print_sheet
from nanoloom.emit import emit_stage
from nanoloom.kernels.retype.widening import ROWS
from nanoloom.options import CompileOptions
from nanoloom.schedule.families import FAMILIES
from nanoloom.schedule.register_tile import arithmetic
from nanoloom.target import Target, by_name
from nanoloom.target.instructions.choose import dot_for
from nanoloom.target.instructions.x86 import TILE_CYCLES
from nanoloom_papers.reproduce.llvm_mca import Refused, simulate, version_of
from nanoloom_papers.reproduce.tables import Sheet

SIZE = "96x256x256"
FLAT_ROWS = 24
TYPES = {
    "f32": TensorProto.FLOAT,
    "f16": TensorProto.FLOAT16,
    "bf16": TensorProto.BFLOAT16,
    "s8": TensorProto.INT8,
    "u8": TensorProto.UINT8,
}


@dataclass(frozen=True)
class Case:
    """A product to compile, and the word that its multiplications begin with.

    flat: the right operand is an activation; of vectors, rows are too few to copy it.
    """

    family: str
    target: str
    left: str
    right: str
    word: str
    flat: bool = False


CASES = (
    Case("amx-bf16", "sapphirerapids", "bf16", "bf16", "tdpbf16ps"),
    Case("amx-bf16", "sapphirerapids", "bf16", "bf16", "tdpbf16ps", flat=True),
    Case("amx-int8", "sapphirerapids", "u8", "s8", "tdpb"),
    Case("amx-int8", "sapphirerapids", "u8", "s8", "tdpb", flat=True),
    Case("bf16-dot", "znver4", "bf16", "bf16", "vdpbf16ps"),
    Case("bf16-dot", "neoverse-v2", "bf16", "bf16", "bfdot"),
    Case("bf16-convert", "arrowlake-s", "bf16", "bf16", "vfmadd"),
    Case("bf16-convert", "arrowlake-s", "bf16", "bf16", "vfmadd", flat=True),
    Case("bf16-convert", "sierraforest", "bf16", "bf16", "vfmadd", flat=True),
    Case("bf16-halves", "skylake-avx512", "bf16", "bf16", "vfmadd"),
    Case("bf16-halves", "skylake-avx512", "bf16", "bf16", "vfmadd", flat=True),
    Case("bf16-halves", "alderlake", "bf16", "bf16", "vfmadd", flat=True),
    Case("int8-dot", "icelake-server", "u8", "s8", "vpdpb"),
    Case("int8-dot", "alderlake", "u8", "s8", "vpdpb"),
    Case("int8-dot", "alderlake", "s8", "s8", "vpdpb"),
    Case("int8-dot", "arrowlake-s", "s8", "s8", "vpdpb"),
    Case("int8-dot", "neoverse-v2", "s8", "s8", "sdot"),
    Case("int8-pairs", "skylake-avx512", "s8", "s8", "vpmaddwd"),
    Case("fma", "skylake-avx512", "f32", "f32", "vfmadd"),
    Case("fma", "alderlake", "f16", "f16", "vfmadd"),
    Case("fma", "neoverse-v2", "f32", "f32", "fmla"),
)


@dataclass(frozen=True)
class Row:
    """An inner loop.  cycles and block: of one round, None where llvm-mca refused."""

    case: Case
    tile: str
    products: int
    bound: float
    model: str = ""
    block: float | None = None
    cycles: float | None = None
    note: str = ""

    @property
    def percent(self) -> float | None:
        """The bound in percent of the cycles; None where the model has fewer."""
        if self.cycles is None or self.cycles < self.bound:
            return None
        return 100 * self.bound / self.cycles

    def to_dict(self) -> dict[str, object]:
        named = {k: v for k, v in asdict(self).items() if k != "case"}
        return {**asdict(self.case), **named, "percent_of_bound": self.percent}


# ---- the loop ------------------------------------------------------------------------


def model(case: Case, size: tuple[int, int, int]) -> onnx_ir.Model:
    """x[M, K] @ w[K, N], w a constant if it is not flat."""
    m, k, n = size
    if case.flat and not FAMILIES[case.family].tiles:
        m = min(m, FLAT_ROWS)
    if case.family == "bf16-halves" or case.left == "f16":
        m = min(m, ROWS - 1)  # more would have their weight in f32
    integers = case.right in ("s8", "u8")
    left, right = TYPES[case.left], TYPES[case.right]
    data = bytes(k * n * helper.tensor_dtype_to_np_dtype(right).itemsize)
    constant = helper.make_tensor("w", right, [k, n], data, raw=True)
    given = helper.make_tensor_value_info("w", right, [k, n])
    node = helper.make_node("MatMulInteger" if integers else "MatMul", "xw", ["y"])
    x = helper.make_tensor_value_info("x", left, [m, k])
    result = TensorProto.INT32 if integers else left
    y = helper.make_tensor_value_info("y", result, [m, n])
    inputs, weights = ([x, given], []) if case.flat else ([x], [constant])
    graph = helper.make_graph([node], "product", inputs, [y], weights)
    opsets = [helper.make_opsetid("", 21)]
    return onnx_ir.from_proto(
        helper.make_model(graph, opset_imports=opsets, ir_version=10)
    )


def compiled(case: Case, size: tuple[int, int, int]) -> tuple[list[str], str]:
    """The inner loop with most products, and the register tile."""
    options = CompileOptions(by_name(case.target))
    scripts: list[str] = []
    texts: list[str] = []
    emit_stage(
        model(case, size), "schedule", options, lambda *given: scripts.append(given[-1])
    )
    emit_stage(
        model(case, size), "asm", options, lambda *given: texts.append(given[-1])
    )
    family = f'"{case.family}"'
    for script, text in zip(scripts, texts, strict=True):
        tile = re.search(r"rows = (\d+).*vectors = (\d+)", script)
        if tile and family in script:
            loops = inner_loops(text)
            # The longest of those that have most: where a flat operand is woven.
            loops.sort(key=len, reverse=True)
            loop = max(loops, key=lambda lines: count(lines, case.word), default=[])
            if not count(loop, case.word):
                raise Refused("no loop of its products is left: K is small")
            return loop, f"{tile[1]}x{tile[2]}"
    raise Refused(f"{case.target} computes this with another family")


def bound(case: Case, products: int, target: Target) -> float:
    """Cycles that the multiplications of a round, and what adds them, take at least."""
    family, unit = FAMILIES[case.family], target.vector
    if family.tiles:
        return float(products * TILE_CYCLES)
    dot = dot_for(target, case.left, case.right)
    if family.name.endswith("-dot") and dot is not None:
        return products / dot.dot.rate(target)
    return arithmetic(products / family.cost.multiplies, 0, unit, family.cost)


def row(case: Case, size: tuple[int, int, int], mca: str, show: bool) -> Row:
    """One case, compiled and simulated."""
    target = by_name(case.target)
    try:
        loop, tile = compiled(case, size)
    except Refused as why:
        return Row(case, "", 0, 0.0, note=str(why))
    if show:
        print(f"# {case.family} on {case.target}", *loop, "", sep="\n")
    products = count(loop, case.word)
    least = bound(case, products, target)
    try:
        cpu, block, taken = simulate(mca, loop, target)
    except Refused as why:
        return Row(case, tile, products, least, note=str(why))
    if FAMILIES[case.family].tiles:
        taken = max(taken, least)  # the unit works beside the loads
    note = f"the model of {cpu} has more units for this than the core" * (taken < least)
    return Row(case, tile, products, least, cpu, block, taken, note)


# ---- the table -----------------------------------------------------------------------


def sheet(rows: Sequence[Row], version: str) -> Sheet:
    cells = [
        (
            made.case.family,
            f"{made.case.left} x {made.case.right}" + " flat" * made.case.flat,
            made.case.target,
            made.model,
            made.tile,
            str(made.products),
            "" if made.block is None else f"{made.block:.1f}",
            "" if made.cycles is None else f"{made.cycles:.1f}",
            f"{made.bound:.1f}",
            "" if made.percent is None else f"{made.percent:.0f}",
        )
        for made in rows
    ]
    columns = ("family", "types", "target", "model", "tile", ">products", ">block")
    notes = [f"{r.case.family} on {r.case.target}: {r.note}" for r in rows if r.note]
    told = (
        version,
        "block, cycles, bound: of a round of the loop; %: the bound of the cycles",
        "tile registers: 16 loads for one of a tile; products not simulated",
        *notes,
    )
    title = "Inner loops in llvm-mca"
    return Sheet(title, (*columns, ">cycles", ">bound", ">%"), tuple(cells), told)


def edges(text: str) -> tuple[int, int, int]:
    if not re.fullmatch(r"[1-9]\d*(x[1-9]\d*){2}", text):
        raise argparse.ArgumentTypeError(f"{text} is not like {SIZE}")
    m, k, n = map(int, text.split("x"))
    return m, k, n


def families(text: str) -> tuple[str, ...]:
    known = {case.family for case in CASES}
    for word in text.split(","):
        if word not in known:
            told = ", ".join(dict.fromkeys(case.family for case in CASES))
            raise argparse.ArgumentTypeError(f"{word} is none of {told}")
    return tuple(text.split(","))


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = parser_of("inner_loops", __doc__)
    parser.add_argument("--only", type=families, help="families, by commas")
    parser.add_argument("--size", type=edges, default=edges(SIZE), help="MxKxN")
    parser.add_argument("--mca", metavar="PATH")
    parser.add_argument("--text", action="store_true", help="print the loops, too")
    parser.add_argument("--json", type=Path, metavar="FILE")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> None:
    given = parse(arguments)
    mca = found(given.mca)
    cases = [c for c in CASES if not given.only or c.family in given.only]
    rows: list[Row] = []
    with Progress(len(cases)) as progress:
        for case in cases:
            progress.say(f"{case.family} on {case.target}")
            rows.append(row(case, given.size, mca, given.text))
            progress.advance(f"{case.family} on {case.target}")
    version = version_of(mca)
    print_sheet(sheet(rows, version))
    if given.json:
        told = {"tool": version, "loops": [made.to_dict() for made in rows]}
        given.json.write_text(json.dumps(told, indent=1))


if __name__ == "__main__":
    main()
