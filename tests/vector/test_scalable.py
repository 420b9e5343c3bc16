"""Vectors whose width the machine tells: the types, from the schedule to assembly.

tests/runtime/test_emulation.py has the numbers.
"""

from __future__ import annotations

import re

import pytest
from onnx import parser

from benchmarks.assembly import count, inner_loops
from nanoloom.emit import emit_stage
from nanoloom.errors import Error
from nanoloom.frontend.onnx import load
from nanoloom.nest.extent import Lanes
from nanoloom.notation import Buffer, Computation, axes, computation, exp, maximum, tanh
from nanoloom.options import CompileOptions
from nanoloom.schedule.choose import choose
from nanoloom.schedule.language import (
    ALL,
    ComputeAt,
    Directive,
    Nanokernel,
    Parallel,
    Schedule,
    Stack,
    TransposeInRegisters,
    UnrollAndJam,
    Vectorize,
)
from nanoloom.schedule.library.vectors import GROUPED
from nanoloom.target import Target, by_name
from tests.filecheck import check_text
from tests.notation.programs import kernels
from tests.vector.kernel_harness import stage_text

# Lanes of f32 for each unit of the width, a load, a sum across, a multiply-add.
TARGETS = pytest.mark.parametrize(
    ("name", "lanes", "load", "across", "product"),
    [
        ("rv64gcv", 2, "vle32.v", "vfredusum.vs", "vfmacc.v"),
        ("armv9-sve2", 4, "ld1w", "faddv", "fmla"),
    ],
)
M, K, N = 33, 70, 517


def softmax() -> Computation:
    i, j = axes("i j")
    x, largest, power = Buffer("x", (M, N)), Buffer("m", (M,)), Buffer("e", (M, N))
    total, y = Buffer("s", (M,)), Buffer("y")
    largest[i] = maximum(largest[i], x[i, j])
    power[i, j] = exp(x[i, j] - largest[i])
    total[i] += power[i, j]
    y[i, j] = power[i, j] / total[i]
    return computation(y)


def chain() -> Computation:
    i, j = axes("i j")
    x, b, y = Buffer("x", (M, N)), Buffer("b", (N,)), Buffer("y")
    y[i, j] = tanh(x[i, j] * b[j]) + maximum(x[i, j], 0)
    return computation(y)


def two_at_a_tile() -> Computation:
    i, j = axes("i j")
    x, b = Buffer("x", (M, N)), Buffer("b", (N,))
    s, y = Buffer("s", (M, N)), Buffer("y")
    s[i, j] = x[i, j] + b[j]
    y[i, j] = s[i, j] * s[i, j]
    return computation(y)


def product() -> Computation:
    i, j, k = axes("i j k")
    a, b, y = Buffer("a", (M, K)), Buffer("b", (K, N)), Buffer("y", (M, N))
    y[i, j] += a[i, k] * b[k, j]
    return computation(y)


def chain_of_product() -> Computation:
    i, j, k = axes("i j k")
    a, b, s, y = Buffer("a", (M, K)), Buffer("b", (K, N)), Buffer("s"), Buffer("y")
    s[i, j] += a[i, k] * b[k, j]
    y[i, j] = tanh(s[i, j])
    return computation(y)


def turned() -> Computation:
    i, j = axes("i j")
    x, y = Buffer("x", (N, M)), Buffer("y", (M, N))
    y[i, j] = x[j, i] + 1
    return computation(y)


def shown(model: str, stage: str, target: Target) -> str:
    """The kernels of a model at a stage, one behind the other."""
    made = parser.parse_model(f'<ir_version: 10, opset_import: ["": 21]> {model}')
    texts: list[str] = []
    emit_stage(
        load(made), stage, CompileOptions(target), lambda *x: texts.append(x[-1])
    )
    return "\n".join(texts)


def tiles(lanes: Lanes) -> tuple[Directive, ...]:
    return (
        Parallel("y", (11, 0, 0), ALL),
        Vectorize("y", "j", lanes),
        UnrollAndJam("y", "i", 5),
        UnrollAndJam("y", "j", 2),
        Vectorize("fill", "d1", lanes),
    )


@TARGETS
def test_a_softmax(name: str, lanes: int, load: str, across: str, product: str) -> None:
    del product
    program, target = kernels(softmax()), by_name(name)
    lanes *= min(GROUPED, target.vector.grouped)
    check_text(
        stage_text(program, "vector", target),
        f"""
    CHECK: vector.vscale
    CHECK: vector.maskedload {{{{.*}}}} vector<[{lanes}]xf32>
    CHECK: vector.reduction <{{{{maximumf|maxnumf}}}}>, {{{{.*}}}} vector<[{lanes}]xf32>
    CHECK: vector.reduction <add>, {{{{.*}}}} : vector<[{lanes}]xf32> into f32
    """,
    )
    text = stage_text(program, "asm", target)
    assert load in text and across in text
    assert not re.search(r"\b(exp|expf|fmod)f?@", text)


@TARGETS
def test_a_chain(name: str, lanes: int, load: str, across: str, product: str) -> None:
    del across, product
    program, target = kernels(chain()), by_name(name)
    lanes *= min(GROUPED, target.vector.grouped)
    text = stage_text(program, "vector", target)
    assert f"vector<[{lanes}]xf32>" in text
    assert not re.search(r"vector<\d+xf32>", text)
    code = stage_text(program, "asm", target)
    assert load in code


def test_stages_in_one_loop_take_groups_of_registers() -> None:
    """As each of them does alone."""
    (kernel,) = kernels(two_at_a_tile()).kernels.values()
    for name, lanes in (("rv64gcv", 2 * GROUPED), ("armv9-sve2", 4)):
        words = choose(kernel.nest, by_name(name)).directives
        found = {word.lanes for word in words if isinstance(word, Vectorize)}
        assert found == {Lanes(lanes, scalable=True)}


@TARGETS
def test_a_product_by_words(
    name: str, lanes: int, load: str, across: str, product: str
) -> None:
    """A tile of 5 rows and 2 vectors, of whatever width: ten multiply-adds."""
    del across
    made = kernels(globals()["product"]())
    schedule = Schedule(tiles(Lanes(lanes, scalable=True)))
    target = by_name(name)
    text = stage_text(made, "vector", target, script=schedule)
    assert len(re.findall(rf"vector.fma .*vector<\[{lanes}\]xf32>", text)) >= 10
    code = stage_text(made, "asm", target, script=schedule)
    assert code.count(product) >= 10
    assert load in code


def test_one_number_decides_about_tiles_and_vectors() -> None:
    """Each tile's sums are in memory: as long as the widest machine's vectors."""
    made, target = kernels(chain_of_product()), by_name("armv9-sve2")
    (kernel,) = made.kernels.values()
    words = (
        Vectorize("y", "j", Lanes(4, scalable=True)),
        ComputeAt("s", "y", "j"),
        ComputeAt("fill", "y", "j"),
        Stack(16384),
    )
    script = Schedule(words).to_transform(kernel.nest)
    for lanes in (4, 8):
        text = stage_text(
            made,
            "vector",
            target,
            script=script.replace("constant 4", f"constant {lanes}"),
        )
        check_text(
            text,
            f"""
    CHECK: memref.alloca() {{{{.*}}}}memref<{lanes * 16 * 4}xi8>
    CHECK: scf.for {{{{.*}}}} to %c517 step %c{lanes}_vscale
    CHECK: vector<[{lanes}]xf32>
    """,
        )


@pytest.mark.parametrize(
    ("name", "product", "products"),
    [("rv64gcv", "vfmacc.vf", 12), ("armv9-sve2", "fm", 48)],
)
def test_full_tiles_of_a_product_stay_in_registers(
    name: str, product: str, products: int
) -> None:
    """Its inner loop is loads, products and pointers: no masks, no stack."""
    made, target = kernels(globals()["product"]()), by_name(name)
    (kernel,) = made.kernels.values()
    words = choose(kernel.nest, target).directives
    assert all(x.lanes.scalable for x in words if isinstance(x, Vectorize))
    assert not [x for x in words if isinstance(x, Nanokernel)]
    loops = inner_loops(stage_text(made, "asm", target))
    loop = max(loops, key=lambda lines: count(lines, product))
    assert count(loop, product) == products
    assert not [x for x in loop if "sp" in re.findall(r"\w+", x) or "v0.t" in x]
    assert not [x for x in loop if x.startswith(("vs", "st")) and "vset" not in x]
    assert len(loop) <= 2 * products + 8


@pytest.mark.parametrize(
    ("kind", "across"), [("float64", "vfredusum.vs"), ("int64", "vredsum.vs")]
)
def test_scalable_vectors_have_two_lanes_at_least(kind: str, across: str) -> None:
    """MLIR takes vector<[1]xf64> for one element, whose sum is itself."""
    i, j = axes("i j")
    x, y = Buffer("x", (M, N), kind), Buffer("y", (M,), kind)
    y[i] += x[i, j]
    made, target = kernels(computation(y)), by_name("rv64gcv")
    text = stage_text(made, "vector", target)
    assert f"vector<[{GROUPED}]x{kind[0]}64>" in text and "vector<[1]x" not in text
    assert across in stage_text(made, "asm", target)
    with pytest.raises(Error, match=r"lanes = \[1\]: a scalable vector has two"):
        (kernel,) = made.kernels.values()
        Vectorize("y", "j", Lanes(1, scalable=True)).apply(kernel.nest)


def test_what_lies_at_a_distance_is_loaded_by_one_instruction() -> None:
    text = stage_text(kernels(turned()), "asm", by_name("rv64gcv"))
    loads = [x for x in inner_loops(text) if count(x, "vlse32.v")]
    assert loads and not any(count(x, "flw") for x in loads)
    assert "vlse32.v" not in stage_text(kernels(chain()), "asm", by_name("rv64gcv"))


def test_pieces_of_what_lies_across_are_gathered_and_exchanged() -> None:
    """Two columns are two gathers of 64 bits, two exchanges and two stores."""
    (kernel,) = kernels(turned()).kernels.values()
    words = choose(kernel.nest, by_name("armv9-sve2")).directives
    assert TransposeInRegisters("y", 64, 1) in words
    text = stage_text(kernels(turned()), "asm", by_name("armv9-sve2"))
    loops = [x for x in inner_loops(text) if count(x, "trn1")]
    assert loops and not any(re.match(r"ldr\s+[sq]", y) for x in loops for y in x)
    for loop in loops:
        gathers = [x for x in loop if re.search(r"ld1d.*\[x\d+, z\d+\.d\]", x)]
        assert len(gathers) == count(loop, "trn1") + count(loop, "trn2") == 4
        assert len(loop) <= 28


@TARGETS
def test_rows_that_are_looked_up_are_vectors(
    name: str, lanes: int, load: str, across: str, product: str
) -> None:
    """As wide as the machine's: rows of a table, then single numbers of it."""
    del across, product
    target = by_name(name)
    whole = r"vl\dre32\.v" if lanes == 2 else load
    apart = r"vluxei64\.v" if lanes == 2 else r"ld1w.*z\d+\.d, lsl #2\]"
    for axis, rows, found in ((0, "31, 133", whole), (1, "83, 31", apart)):
        model = f"g (float[83, 133] x, int64[31] i) => (float[{rows}] y) "
        model += f"{{ y = Gather<axis = {axis}>(x, i) }}"
        text = shown(model, "vector", target)
        assert re.search(r"vector<\[\d+\]xf32>", text)
        assert not re.search(r"vector<\d+x", text)
        loops = inner_loops(shown(model, "asm", target))
        assert any(re.search(found, line) for loop in loops for line in loop)


def test_other_targets_have_numbers_of_lanes() -> None:
    (kernel,) = kernels(chain()).kernels.values()
    for name in ("x86-64-v4", "x86-64-v3"):
        words = choose(kernel.nest, by_name(name)).directives
        assert any(isinstance(word, Vectorize) for word in words)
        for word in words:
            assert not isinstance(word, Vectorize) or not word.lanes.scalable
