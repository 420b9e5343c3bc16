"""The forms of loops beside each other: instructions under qemu, and llvm-mca's cycles.

One executable for a size and a form, run at every length of a vector; results are
compared first.  llvm-mca simulates rounds of a loop, of which the cycles for a size
are made.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from onnx import parser

from nanoloom.compile_program import compile
from nanoloom.emit import emit_stage
from nanoloom.errors import Error
from nanoloom.frontend.onnx import load
from nanoloom.options import CompileOptions
from nanoloom.runtime.emulation import machine, run_emulated
from nanoloom.target import Target, by_name
from nanoloom.target.tail_forms import FORMS, VECTOR_LENGTH
from nanoloom_papers.reproduce.instruction_counts import build_plugin, of_one_run
from nanoloom_papers.reproduce.llvm_mca import Refused, newest, simulate
from nanoloom_papers.reproduce.scalable_example import of_form
from nanoloom_papers.reproduce.scalable_results import CYCLES, INSTRUCTIONS, Result
from nanoloom_papers.reproduce.scalable_rounds import loops_of, total

Array = np.ndarray
Say = Callable[[str], None]
HEAD = '<ir_version: 10, opset_import: ["": 21]>'
# Of each kernel for a size: ONNX's text, the shapes of its inputs, the right result.
# A row has a loop of its own, and what that leaves.
MODELS = {
    "elementwise": (
        "k (float[64, {n}] a, float[{n}] b) => (float[64, {n}] y) "
        "{{ s = Add(a, b) y = Mul(s, a) }}",
        ("64,{n}", "{n}"),
        lambda a, b: (a + b) * a,
    ),
    "sum": (
        "k (float[64, {n}] a) => (float[64] y) {{ x = Constant<value_ints = [1]>() "
        "s = Mul(a, a) y = ReduceSum<keepdims = 0>(s, x) }}",
        ("64,{n}",),
        lambda a: (a * a).sum(1),
    ),
    "product": (
        "k (float[64, 12] a, float[12, {n}] b) => (float[64, {n}] y) "
        "{{ y = MatMul(a, b) }}",
        ("64,12", "12,{n}"),
        lambda a, b: a @ b,
    ),
}
# What llvm-mca is given: a single row, whose loop is the only one.
LINE = (
    "k (float[4093] a, float[4093] b) => (float[4093] y) "
    "{ s = Add(a, b) y = Mul(s, a) }"
)
SIZES, QUICK_SIZES = (7, 64, 100, 257, 1024, 4093), (7, 257)
LENGTHS = {
    "sve": ("aarch64+sve", "sve", (128, 256, 512)),
    "rvv": ("riscv64+v", "vlen", (128, 256, 512)),
}
# Cores that llvm-mca has a model of: what is compiled, and bits of their vectors.
CORES = {
    "neoverse-v1": ("aarch64+sve", 256),
    "neoverse-v2": ("armv9-sve2", 128),
    "neoverse-n2": ("armv9-sve2", 128),
    "a64fx": ("aarch64+sve", 512),
    "sifive-x280": ("riscv64+v", 512),
    "sifive-p670": ("riscv64+v", 128),
    "spacemit-x60": ("riscv64+v", 256),
}
RUNS = 4  # the mean of them
TOLERANCE = 1e-4  # of the largest result: far more than rounding, less than a lost lane


def forms_of(target: Target) -> Sequence[str]:
    """Those that a target can have."""
    return [form for form in FORMS if form != VECTOR_LENGTH or target.arch == "riscv64"]


def inputs_of(kernel: str, size: int) -> list[Array]:
    """Seeded numbers, none of them 0."""
    random = np.random.default_rng(size)
    shapes = [each.format(n=size).split(",") for each in MODELS[kernel][1]]
    return [
        random.uniform(0.5, 1.5, [int(d) for d in shape]).astype(np.float32)
        for shape in shapes
    ]


def instructions(say: Say, *, quick: bool) -> Iterator[Result]:
    """What the forms execute, by kernels, sizes and lengths of vectors."""
    kernels = ("elementwise", "sum") if quick else tuple(MODELS)
    with tempfile.TemporaryDirectory(prefix="nanoloom-") as scratch:
        folder = Path(scratch)
        try:
            plugin = build_plugin(folder)
        except Error as error:
            yield Result(INSTRUCTIONS, "", 0, "", "", None, str(error))
            return
        for name in LENGTHS:
            for kernel in kernels:
                for size in QUICK_SIZES if quick else SIZES:
                    for form in forms_of(machine(LENGTHS[name][0]).target):
                        say(f"counting {kernel} of {size}, {form}, {name}")
                        yield from counts(name, kernel, size, form, plugin, folder)


def counts(
    name: str, kernel: str, size: int, form: str, plugin: Path, folder: Path
) -> Iterator[Result]:
    """An executable's instructions at every length; a note where something fails."""
    target, key, lengths = LENGTHS[name]
    given = inputs_of(kernel, size)
    files = [folder / f"input{n}.npy" for n in range(len(given))]
    for path, array in zip(files, given, strict=True):
        np.save(path, array)
    try:
        path = executable(machine(target).target, kernel, size, form, folder)
    except Error as error:
        yield Result(INSTRUCTIONS, kernel, size, name, form, None, str(error))
        return
    wanted = MODELS[kernel][2](*(array.astype(np.float64) for array in given))
    for bits in lengths:
        where = machine(f"{target}:{key}={bits}")
        told = f"{name} {bits}"
        try:
            kinds = {"y": np.dtype(np.float32)}
            got = run_emulated(where, path, given, kinds)["y"]
            if abs(got - wanted).max() > TOLERANCE * abs(wanted).max():
                raise Error("wrong result")
            count, note = of_one_run(plugin, where, path, files, RUNS).all, ""
        except Error as error:
            count, note = None, str(error)
        yield Result(INSTRUCTIONS, kernel, size, told, form, count, note)


def executable(target: Target, kernel: str, size: int, form: str, folder: Path) -> Path:
    model = parser.parse_model(f"{HEAD} {MODELS[kernel][0].format(n=size)}")
    options = CompileOptions(of_form(target, form))
    program = compile(model, threads=1, options=options)
    return program.save(folder / "model", form="executable")


def cycles(say: Say, *, quick: bool) -> Iterator[Result]:
    """What llvm-mca says of a row of the elementwise kernel, by cores and sizes."""
    mca = newest()
    if mca is None:
        missing = "llvm-mca is not installed (Debian: the package llvm-22)"
        yield Result(CYCLES, "elementwise", 0, "", "", None, missing)
        return
    for core, (name, bits) in CORES.items():
        say(f"simulating {core}")
        target = by_name(name)
        try:
            found = {f: rounds(target, core, f, mca) for f in forms_of(target)}
        except Refused as why:
            yield Result(CYCLES, "elementwise", 0, core, "", None, str(why))
            continue
        lanes = bits // 32 * min(target.vector.grouped, 4)
        for size in QUICK_SIZES if quick else SIZES:
            for form in found:
                value = total(form, found, size, lanes)
                yield Result(CYCLES, "elementwise", size, core, form, value)


def rounds(target: Target, core: str, form: str, mca: str) -> dict[str, float]:
    """Cycles of a round of each of a form's loops, by the kind of the loop.

    Raises Refused where llvm-mca does not know the core or an instruction.
    """
    model = parser.parse_model(f"{HEAD} {LINE}")
    texts: list[str] = []
    options = CompileOptions(of_form(target, form))
    emit_stage(load(model), "asm", options, lambda *x: texts.append(x[-1]))
    known = replace(target, cpu=core)
    return {
        kind: simulate(mca, loop, known)[2]
        for kind, loop in loops_of("\n".join(texts), target.arch).items()
    }
