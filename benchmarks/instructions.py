"""Instructions that models execute on other machines, counted under qemu-user.

    python -m benchmarks instructions [--only product,minilm] [--machines riscv64]
        [--quick] [--json FILE]

One executable for each CPU, run at every length that its vectors may have: `fewer` is
how many times fewer instructions than at the least length, `than scalar` than on the
CPU without vectors.  Beside the product and the softmax stand the same loops in C, made
vectors of by clang (`zig cc -O3 -ffast-math`), exp a polynomial of few bits.
qemu-user must be installed (Debian: the package qemu-user).
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from argparse import ArgumentTypeError, Namespace
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper, parser

import nanoloom
from benchmarks.arguments import parser_of
from benchmarks.show import Progress, print_sheet
from nanoloom.binary.toolchain import zig
from nanoloom.options import CompileOptions
from nanoloom.runtime.emulation import machine
from nanoloom_papers.reproduce.instruction_counts import (
    Count,
    build_plugin,
    counted,
    of_one_run,
)
from nanoloom_papers.reproduce.tables import Sheet

LENGTHS = {
    "riscv64": ("",),
    "riscv64+v": (":vlen=128", ":vlen=256", ":vlen=512", ":vlen=1024"),
    "aarch64": ("",),
    "aarch64+sve": (":sve=128", ":sve=256", ":sve=512", ":sve=2048"),
    "aarch64+sve+sme": (":sme=128", ":sme=256", ":sme=512", ":sme=2048"),
}
SCALAR = {"riscv64+v": "riscv64"}  # the CPU without vectors
SOURCE = Path(__file__).with_name("loops.c")
CLANG = {
    "riscv64+v": ("riscv64-linux-musl", "generic_rv64+m+a+f+d+c+v"),
    "aarch64+sve": ("aarch64-linux-musl", "generic+sve"),
}
# The model that they compute, and what the preprocessor is told.
IN_C = {
    "product, C": ("product", ()),
    "softmax, C": ("softmax", ("-DSOFTMAX",)),
    "softmax, C, exp inlined": ("softmax", ("-DSOFTMAX", "-DINLINED")),
}
TOKENS, FEWER_TOKENS = 32, 8
# What loops.c has, and what there is of it for layers of other kinds.
MODELS = {
    "product": """p (float[96, 256] x, float[256, 384] w) => (float[96, 384] y)
        { y = MatMul(x, w) }""",
    "softmax": "s (float[96, 384] x) => (float[96, 384] y) { y = Softmax(x) }",
    "normalization": """n (float[96, 384] x, float[384] w) => (float[96, 384] y)
        { y = LayerNormalization(x, w) }""",
    "convolution": """c (float[1, 32, 16, 16] x, float[64, 32, 3, 3] w)
        => (float[1, 64, 16, 16] y) { y = Conv<pads = [1, 1, 1, 1]>(x, w) }""",
    "gelu": "g (float[96, 384] x) => (float[96, 384] y) { y = Gelu(x) }",
}
MINILM = "minilm"
NAMES = (*MODELS, MINILM)


@dataclass(frozen=True)
class Row:
    """A model on a machine.  least, scalar: of its CPU's shortest vectors, and of the
    CPU without; 0 where there is none."""

    model: str
    machine: str
    count: Count
    least: int = 0
    scalar: int = 0

    def to_dict(self) -> dict[str, object]:
        return asdict(self)


def model(name: str) -> onnx.ModelProto:
    """A layer with weights in it."""
    made = parser.parse_model(
        f'<ir_version: 10, opset_import: ["": 21]> {MODELS[name]}'
    )
    random = np.random.default_rng(0)
    for info in [x for x in made.graph.input if x.name == "w"]:
        shape = [d.dim_value for d in info.type.tensor_type.shape.dim]
        array = random.standard_normal(shape).astype(np.float32)
        made.graph.initializer.append(numpy_helper.from_array(array, "w"))
        made.graph.input.remove(info)
    return made


def program_of(name: str, cpu: str, tokens: int, folder: Path) -> nanoloom.Program:
    options = CompileOptions(machine(cpu).target)
    if name != MINILM:
        return nanoloom.compile(model(name), options=options)
    from examples.minilm.model import build, package_files

    path = folder / "minilm.onnx"
    if not path.exists():
        build(path, package_files())
    dims = {"batch": 1, "sequence": tokens}
    return nanoloom.compile(path, dims=dims, options=options)


def inputs_of(program: nanoloom.Program, tokens: int, folder: Path) -> list[Path]:
    """Files with random numbers, or tokens."""
    sizes = {"batch": 1, "sequence": tokens}
    random, paths = np.random.default_rng(1), list[Path]()
    for number, x in enumerate(program.inputs):
        shape = tuple(int(sizes.get(str(n), n)) for n in x.shape)
        array = random.standard_normal(shape).astype(np.float32)
        if x.dtype == np.int64:
            array = random.integers(100, 20000, shape)
            array = array if x.name == "input_ids" else np.ones_like(array)
            array = array * (x.name != "token_type_ids")
        paths.append(folder / f"input{number}.npy")
        np.save(paths[-1], array)
    return paths


def in_c(name: str, cpu: str, turns: int, folder: Path) -> Path:
    """The loops of a model, compiled by clang for a CPU."""
    triple, features = CLANG[cpu]
    made = folder / f"{name.replace(', ', '-').replace(' ', '-')}-{turns}"
    words = [str(zig()), "cc", "-target", triple, f"-mcpu={features}", "-O3"]
    words += ["-ffast-math", "-nostdlib", "-ffreestanding", "-static", *IN_C[name][1]]
    words += [f"-DTURNS={turns}", "-o", str(made), str(SOURCE)]
    subprocess.run(words, check=True, capture_output=True)
    return made


def rows_of(
    name: str, cpus: Sequence[str], plugin: Path, folder: Path, tokens: int
) -> Iterator[Row]:
    """A model on every machine, and its loops in C where there are some."""
    found: dict[str, int] = {}
    for cpu in cpus:
        program = program_of(name, cpu, tokens, folder)
        path = program.save(folder / f"{name}-{cpu}", form="executable")
        inputs = inputs_of(program, tokens, folder)
        for spec in (cpu + length for length in LENGTHS[cpu]):
            count = of_one_run(plugin, machine(spec), path, inputs)
            found[spec] = count.all
            least = found[cpu + LENGTHS[cpu][0]] if len(LENGTHS[cpu]) > 1 else 0
            yield Row(name, spec, count, least, found.get(SCALAR.get(cpu, ""), 0))
        if cpu in CLANG:
            for loops in [x for x, (of, _) in IN_C.items() if of == name]:
                one, two = (in_c(loops, cpu, turns, folder) for turns in (1, 2))
                for spec in (cpu + length for length in LENGTHS[cpu]):
                    counts = [counted(plugin, machine(spec), x) for x in (one, two)]
                    yield Row(loops, spec, counts[1] - counts[0])


def sheet(rows: Sequence[Row]) -> Sheet:
    """All counts; of the loops in C beside what nanoloom executes."""
    own = {(row.model, row.machine): row.count.all for row in rows}
    cells: list[tuple[str, ...]] = []
    for row in rows:
        model, _ = IN_C.get(row.model, ("", ()))
        ours = own.get((model, row.machine), 0)
        cells.append(
            (
                row.model,
                row.machine,
                f"{row.count.all:,}",
                f"{100 * row.count.vectors / row.count.all:.0f}",
                times(row.least, row.count.all),
                times(row.scalar, row.count.all),
                times(row.count.all, ours),
            )
        )
    columns = ("model", "machine", ">instructions", ">% vectors", ">fewer")
    told = (
        "of one run by one thread, whatever stands around it left out",
        "fewer: than at the shortest vectors; % vectors: on Arm with scalar floats",
    )
    title = "Instructions executed under qemu"
    more = (">than scalar", ">nanoloom fewer")
    return Sheet(title, (*columns, *more), tuple(cells), told)


def times(one: int, other: int) -> str:
    return f"{one / other:.2f}x" if one and other else ""


def listed(known: Sequence[str], text: str) -> tuple[str, ...]:
    for word in text.split(","):
        if word not in known:
            raise ArgumentTypeError(f"{word} is none of {', '.join(known)}")
    return tuple(text.split(","))


def parse(arguments: list[str] | None) -> Namespace:
    words = parser_of("instructions", __doc__)
    cpus = tuple(LENGTHS)
    words.add_argument("--only", type=lambda text: listed(NAMES, text), default=NAMES)
    words.add_argument("--machines", type=lambda x: listed(cpus, x), default=cpus)
    words.add_argument("--quick", action="store_true", help="fewer tokens")
    words.add_argument("--json", type=Path, metavar="FILE")
    return words.parse_args(arguments)


def main(arguments: list[str] | None = None) -> None:
    given = parse(arguments)
    rows: list[Row] = []
    tokens = FEWER_TOKENS if given.quick else TOKENS
    with (
        tempfile.TemporaryDirectory(prefix="nanoloom-") as scratch,
        Progress(len(given.only)) as progress,
    ):
        folder = Path(scratch)
        plugin = build_plugin(folder)
        for name in given.only:
            progress.say(name)
            for row in rows_of(name, given.machines, plugin, folder, tokens):
                rows.append(row)
                progress.say(f"{row.model}, {row.machine}: {row.count.all:,}")
            progress.advance(name)
    print_sheet(sheet(rows))
    if given.json:
        told = [row.to_dict() for row in rows]
        given.json.write_text(json.dumps({"instructions": told}, indent=1))


if __name__ == "__main__":
    main()
