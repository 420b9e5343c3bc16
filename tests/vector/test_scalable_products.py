"""Products of narrow numbers on vectors whose width the machine tells: their loops.

tests/runtime/test_emulated_bytes.py has the numbers.
"""

from __future__ import annotations

import re

import pytest

from nanoloom.nest.extent import Lanes
from nanoloom.notation import Buffer, Computation, axes, cast, computation
from nanoloom.schedule.choose import choose
from nanoloom.schedule.language import (
    CopyOperand,
    Nanokernel,
    Unroll,
    UnrollAndJam,
    Vectorize,
)
from nanoloom.target import by_name
from tests.notation.programs import kernels
from tests.vector.assembly import count, loop_with, touches_stack
from tests.vector.kernel_harness import stage_text

M, K, N = 70, 131, 517


def product(left: str, right: str, sums: str, depth: int = K) -> Computation:
    i, j, k = axes("i j k")
    a, b = Buffer("a", (M, depth), left), Buffer("b", (depth, N), right)
    y = Buffer("y", (M, N), sums)
    y[i, j] += cast(a[i, k], sums) * cast(b[k, j], sums)
    return computation(y)


@pytest.mark.parametrize("left", ["uint8", "int8"])
def test_riscv_multiplies_16_bits_and_adds_to_32(left: str) -> None:
    """A row's number is loaded, and multiplies a vector: no more, and no stack."""
    made = product(left, "int8", "int32")
    (kernel,) = kernels(made).kernels.values()
    words = choose(kernel.nest, by_name("rv64gcv")).directives
    assert not [x for x in words if isinstance(x, Nanokernel)]
    rows, *_ = (x.count for x in words if isinstance(x, UnrollAndJam))
    loop = loop_with(stage_text(kernels(made), "asm", by_name("rv64gcv")), "vwmacc")
    products = count(loop, "vwmacc")
    assert products % (2 * rows) == 0
    assert not touches_stack(loop) and not [x for x in loop if "v0.t" in x]
    widened = count(loop, "vsext.vf2")
    assert products == rows * widened
    assert count(loop, "lb") == 2 * rows
    assert len(loop) <= products + 2 * rows + 5 * widened + 8


@pytest.mark.drawn
@pytest.mark.parametrize(
    ("target", "left", "right", "dot", "more"),
    [
        ("armv9-sve2", "int8", "int8", "sdot", 0),
        ("armv9-sve2", "uint8", "uint8", "udot", 0),
        ("aarch64+sve", "uint8", "int8", "sdot", 1),
        ("aarch64+sve", "int8", "uint8", "udot", 1),
        ("aarch64+sve+i8mm", "uint8", "int8", "usdot", 0),
        ("aarch64+sve+i8mm", "int8", "uint8", "usdot", 0),
    ],
)
def test_sve_multiplies_groups_of_four(
    target: str, left: str, right: str, dot: str, more: int
) -> None:
    """Four rows are woven once for all; inverted signs have a row of ones more."""
    made = product(left, right, "int32")
    (kernel,) = kernels(made).kernels.values()
    words = choose(kernel.nest, by_name(target)).directives
    assert Vectorize("y", "j", Lanes(16, scalable=True)) in words
    assert Unroll("y", "k", 4) in words
    rows, *_ = (x.count for x in words if isinstance(x, UnrollAndJam))
    loop = loop_with(stage_text(kernels(made), "asm", by_name(target)), dot)
    assert count(loop, dot) == 4 * (rows + more)
    assert count(loop, "zip1") + count(loop, "zip2") == 8
    assert len([x for x in loop if re.match(r"ld1b|ldr\s+z", x)]) == 4
    assert not touches_stack(loop)
    assert not [x for x in loop if re.match(r"(sel|st1)", x)]
    assert len(loop) <= 4 * (rows + more) + 12 + 4 * rows + 16


def test_sve_multiplies_pairs_of_bf16() -> None:
    """Of an activation, whose two rows are woven in registers."""
    made, target = product("bfloat16", "bfloat16", "float32"), "aarch64+sve+bf16"
    (kernel,) = kernels(made).kernels.values()
    words = choose(kernel.nest, by_name(target)).directives
    assert not [x for x in words if isinstance(x, CopyOperand) and x.wide]
    loop = loop_with(stage_text(kernels(made), "asm", by_name(target)), "bfdot")
    assert not touches_stack(loop) and not count(loop, "fmla")
    woven = count(loop, "zip1") + count(loop, "zip2")
    assert woven == len([x for x in loop if re.match(r"ld1h|ldr\s+z", x)])
    assert count(loop, "bfdot") >= 4 * woven


@pytest.mark.drawn
@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", ["rv64gcv", "rv64gcv+zvfhmin", "armv9-sve2"])
def test_products_of_halves_are_those_of_f32(kind: str, name: str) -> None:
    """Widened once for a task: the inner loop converts nothing."""
    made = product(kind, kind, "float32")
    (kernel,) = kernels(made).kernels.values()
    words = choose(kernel.nest, by_name(name)).directives
    copies = [x for x in words if isinstance(x, CopyOperand)]
    assert {x.operand for x in copies if x.wide} == {0, 1}
    assert all(x.lanes.scalable for x in words if isinstance(x, Vectorize))
    text = stage_text(kernels(made), "asm", by_name(name))
    loop = loop_with(text, "vfmacc.vf" if name.startswith("rv") else "fmla")
    converted = r"vf[nw]?cvt|vzext|vsll|fcvt|lsl\s+z|ushll|ld1h|vle16"
    assert not [x for x in loop if re.match(converted, x)]
    assert not touches_stack(loop)


@pytest.mark.parametrize(
    ("kind", "name", "word"),
    [
        ("float16", "rv64gcv+zvfh", "vfwmacc.vf"),
        ("bfloat16", "rv64gcv+zvfbfwma", "vfwmaccbf16.vf"),
    ],
)
def test_products_of_halves_are_added_to_f32(kind: str, name: str, word: str) -> None:
    """By one instruction each: nothing is widened, neither once nor in a loop."""
    made = product(kind, kind, "float32")
    (kernel,) = kernels(made).kernels.values()
    words = choose(kernel.nest, by_name(name)).directives
    assert not [x for x in words if isinstance(x, CopyOperand) and x.wide]
    (rows, *_) = (x.count for x in words if isinstance(x, UnrollAndJam))
    loop = loop_with(stage_text(kernels(made), "asm", by_name(name)), word)
    steps = len([x for x in loop if re.match(r"vl\d*r?e16", x)])
    assert count(loop, word) == rows * steps and count(loop, "flh") == rows * steps
    assert not [x for x in loop if re.match(r"vf[nw]cvt|fcvt|vzext|vsll", x)]
    assert not touches_stack(loop)


def test_a_sum_that_is_no_group_is_multiplied_by_steps() -> None:
    made = product("int8", "int8", "int32", depth=3)
    (kernel,) = kernels(made).kernels.values()
    words = choose(kernel.nest, by_name("armv9-sve2")).directives
    assert Lanes(4, scalable=True) in [
        x.lanes for x in words if isinstance(x, Vectorize)
    ]
    text = stage_text(kernels(made), "asm", by_name("armv9-sve2"))
    assert "sdot" not in text and re.search(r"\bmla\b|\bmad\b", text)


@pytest.mark.parametrize("name", ["x86-64-v4", "aarch64", "apple-m1", "neoverse-v1"])
def test_other_targets_have_nanokernels(name: str) -> None:
    (kernel,) = kernels(product("uint8", "int8", "int32")).kernels.values()
    words = choose(kernel.nest, by_name(name)).directives
    assert [x for x in words if isinstance(x, Nanokernel)]
