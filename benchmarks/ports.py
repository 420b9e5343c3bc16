"""Inner loops of f32 in llvm-mca: percent of what the ports allow, for cores elsewhere.

    python -m benchmarks ports [--only neoverse-v1,znver4] [--mca PATH] [--json FILE]

Of the kernel with most multiply-adds of a product and of a 3x3 convolution the loop
with most of them is given to llvm-mca with the model of a core.  The convolution is
there as a sum over its window, and by Winograd's method, whose transforms have long
loops that run rarely: the kernel tells, not the loop.  `limit` is what the ports need
for its multiply-adds alone, as that model has them, `cycles` what the simulation takes
for the whole loop.  Below WANTED percent a note says what of a model is in doubt, and
the percentage without that (port_doubts.py).
"""

from __future__ import annotations

import json
import re
from argparse import ArgumentTypeError, Namespace
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import prod
from pathlib import Path

import numpy as np
import onnx
import onnx_ir
from onnx import numpy_helper, parser

from benchmarks.arguments import parser_of
from benchmarks.assembly import inner_loops
from benchmarks.llvm_mca import found
from benchmarks.port_doubts import DOUBTS
from benchmarks.show import Progress, print_sheet
from nanoloom.emit import emit_stage
from nanoloom.options import CompileOptions
from nanoloom.target import by_name
from nanoloom_papers.reproduce.llvm_mca import Refused, simulate, version_of
from nanoloom_papers.reproduce.tables import Sheet

# Targets that llvm-mca has a model of.
CORES = (
    "neoverse-v1",
    "neoverse-v2",
    "cortex-a76",
    "sifive-x280",
    "sifive-p670",
    "spacemit-x60",
    "sapphirerapids",
    "znver4",
    "znver5",
)
WANTED = 90
WINOGRAD = ", Winograd"
LAYERS = {
    "product": """p (float[96, 256] x, float[256, 384] w) => (float[96, 384] y)
        { y = MatMul(x, w) }""",
    "convolution 3x3": """c (float[1, 32, 16, 16] x, float[64, 32, 3, 3] w)
        => (float[1, 64, 16, 16] y) { y = Conv<pads = [1, 1, 1, 1]>(x, w) }""",
}
LAYERS[f"convolution 3x3{WINOGRAD}"] = LAYERS["convolution 3x3"]
EXTENTS = re.compile(r"_(\d+(?:x\d+)+)(?:_|$)")
PRODUCT = re.compile(r"vfm(add|acc|sac)|fmla|fmad")
GROUP = re.compile(r"vsetv\w*\t.*\be(\d+), (mf?\d)")


@dataclass(frozen=True)
class Row:
    """A loop on a core.  limit, cycles: of a round, 0 where llvm-mca refused.

    undoubted: cycles without what is in doubt of a model, 0 where nothing is.
    """

    layer: str
    core: str
    products: int = 0
    limit: float = 0
    cycles: float = 0
    note: str = ""
    undoubted: float = 0

    @property
    def percent(self) -> float:
        return 100 * self.limit / self.cycles if self.cycles else 0

    @property
    def doubt(self) -> str:
        """What a model below the wanted percentage makes of this loop, "" for none."""
        if not self.undoubted or self.percent >= WANTED:
            return ""
        so, without = DOUBTS[self.core].so, 100 * self.limit / self.undoubted
        return f"{self.layer} on {self.core}: {without:.0f} % {so}"


def model(layer: str) -> onnx_ir.Model:
    made = parser.parse_model(
        f'<ir_version: 10, opset_import: ["": 21]> {LAYERS[layer]}'
    )
    weight = made.graph.input.pop()
    shape = [d.dim_value for d in weight.type.tensor_type.shape.dim]
    random = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    made.graph.initializer.append(numpy_helper.from_array(random, weight.name))
    onnx.checker.check_model(made)
    return onnx_ir.from_proto(made)


def main_loop(text: str) -> list[str]:
    """The inner loop with most products of all kernels' code.

    Before it what a group of RISC-V's registers is, which llvm-mca is told in comments.
    """
    loops = inner_loops(text)
    loop = max(loops, key=lambda lines: len(products_of(lines)), default=[])
    if not products_of(loop):
        raise Refused("there is no loop of products")
    lines = [line.strip() for line in text.splitlines()]
    starts = [
        number
        for number in range(len(lines))
        if lines[number : number + 1] == loop[:1] and loop[1] in lines[number + 1 :][:2]
    ]
    groups = [GROUP.search(line) for line in lines[: starts[0] if starts else 0]]
    told = [match for match in groups if match]
    if not told:
        return loop
    sew, group = told[-1].groups()
    words = [f"# LLVM-MCA-RISCV-LMUL {group.upper()}"]
    return [*words, f"# LLVM-MCA-RISCV-SEW E{sew}", *loop]


def steps(kernel: str) -> int:
    """The points of a kernel's loops, which its name has; 0 if it has no products."""
    found = EXTENTS.search(kernel) if kernel.startswith("contraction") else None
    return prod(int(extent) for extent in found[1].split("x")) if found else 0


def products_of(lines: Sequence[str]) -> list[str]:
    return [line for line in lines if PRODUCT.match(line)]


def row(layer: str, core: str, mca: str) -> Row:
    """A layer compiled for a core's target, its loop simulated."""
    target = by_name(core)
    texts: dict[str, str] = {}
    options = CompileOptions(target, exact_conv=not layer.endswith(WINOGRAD))
    emit_stage(model(layer), "asm", options, lambda _, *x: texts.update([x]))
    try:
        loop = main_loop(texts[max(texts, key=steps)])
        words = ("#", "vset")  # what the products' registers are, on RISC-V
        alone = [x for x in loop if x.startswith(words) or PRODUCT.match(x)]
        limit, cycles = simulate(mca, alone, target)[1], simulate(mca, loop, target)[2]
        undoubted = 0.0
        if core in DOUBTS:
            undoubted = simulate(mca, DOUBTS[core].without(loop), target)[2]
    except Refused as why:
        return Row(layer, core, note=str(why))
    count = len(products_of(loop))
    return Row(layer, core, count, limit, cycles, undoubted=undoubted)


def sheet(rows: Sequence[Row], version: str) -> Sheet:
    cells = [
        (x.layer, x.core, "", "", "", "")
        if x.note
        else (
            *(x.layer, x.core, str(x.products)),
            *(f"{x.limit:.1f}", f"{x.cycles:.1f}", f"{x.percent:.0f}"),
        )
        for x in rows
    ]
    notes = [f"{x.layer} on {x.core}: {x.note}" for x in rows if x.note]
    columns = ("layer", "core", ">products", ">limit", ">cycles", ">%")
    told = [version, "%: the ports' limit for the products alone, of the cycles"]
    told += [x.doubt for x in rows if x.doubt]
    doubted = dict.fromkeys(x.core for x in rows if x.doubt)
    told += [f"{core}: {DOUBTS[core].why}" for core in doubted]
    return Sheet("Inner loops in llvm-mca", columns, tuple(cells), (*told, *notes))


def cores(text: str) -> tuple[str, ...]:
    for word in text.split(","):
        if word not in CORES:
            raise ArgumentTypeError(f"{word} is none of {', '.join(CORES)}")
    return tuple(text.split(","))


def parse(arguments: list[str] | None) -> Namespace:
    words = parser_of("ports", __doc__)
    words.add_argument("--only", type=cores, default=CORES, help="cores")
    words.add_argument("--mca", metavar="PATH")
    words.add_argument("--json", type=Path, metavar="FILE")
    return words.parse_args(arguments)


def main(arguments: list[str] | None = None) -> None:
    given = parse(arguments)
    mca = found(given.mca)
    pairs = [(layer, core) for layer in LAYERS for core in given.only]
    rows: list[Row] = []
    with Progress(len(pairs)) as progress:
        for layer, core in pairs:
            progress.say(f"{layer} on {core}")
            rows.append(row(layer, core, mca))
            progress.advance(f"{layer} on {core}")
    print_sheet(sheet(rows, version_of(mca)))
    if given.json:
        told = [{**asdict(x), "percent": x.percent} for x in rows]
        given.json.write_text(json.dumps({"loops": told}, indent=1))


if __name__ == "__main__":
    main()
