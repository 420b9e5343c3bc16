"""Transposes pass reshapes, where what is made one axis of lies side by side."""

from __future__ import annotations

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator

from nanoloom.graph.axis_groups import (
    CommuteTranspose,
    Regrouping,
    groups,
    regroup_axes,
)
from tests.graph.models import operators, optimized, proto
from tests.linalg.harness import evaluate


@pytest.mark.parametrize("seed", range(50))
def test_random_shapes(seed: int) -> None:
    """Of axes that are joined at random: exact where it says how."""
    random = np.random.default_rng(seed)
    found = 0
    for _ in range(40):
        shape = [int(n) for n in random.choice([1, 2, 3, 4], random.integers(1, 6))]
        order = [int(d) for d in random.permutation(len(shape))]
        x = np.arange(np.prod(shape)).reshape(shape)
        turned = x.transpose(order)
        wanted = cut(turned.shape, random)
        made = regroup_axes(shape, order, wanted)
        if made is not None:
            found += 1
            got = x.reshape(made.shape).transpose(made.order)
            assert np.array_equal(got, turned.reshape(wanted))
    assert found


def cut(shape: tuple[int, ...], random: np.random.Generator) -> list[int]:
    """Axes side by side as one, some of them split, some of extent 1 between."""
    made: list[int] = []
    rest = list(shape)
    while rest:
        count = int(random.integers(1, 3))
        taken, rest = int(np.prod(rest[:count])), rest[count:]
        half = 2 if taken % 2 == 0 and random.random() < 0.3 else 1
        made += [half, taken // half]
    return made


def test_what_lies_apart_is_not_joined() -> None:
    """Heads and their columns, from [batch, heads, rows, columns]."""
    assert regroup_axes((2, 3, 4, 5), (0, 2, 1, 3), (2, 4, 15)) is None
    assert regroup_axes((2, 3, 4, 5), (0, 1, 3, 2), (2, 3, 20)) is None
    assert regroup_axes((2, 3), (1, 0), (6,)) is None


def test_what_lies_side_by_side_is() -> None:
    found = regroup_axes((2, 3, 4, 5), (0, 3, 1, 2), (2, 5, 12))
    assert found == CommuteTranspose((2, 12, 5), (0, 2, 1))
    assert regroup_axes((2, 1, 3), (2, 1, 0), (3, 2)) == CommuteTranspose(
        (2, 3), (1, 0)
    )


def test_groups() -> None:
    assert groups((2, 6), (2, 3, 2)) == [([0], [0]), ([1], [1, 2])]
    assert groups((2, 6), (3, 4)) == [([0, 1], [0, 1])]
    assert groups((0, 6), (0,)) is None


IMAGE = ",".join(["0.5", "-1", "2"] * 4)
PATCHES = f"""g (float[1,3,4,4] x) => (float[1,16,4] y)
    <float[4,3,1,1] w = {{{IMAGE}}}, int64[3] s = {{1, 4, 16}}, float c = {{0.5}}>
    {{ a = Conv(x, w) r = Reshape(a, s) m = Mul(r, c)
       t = Transpose<perm = [0, 2, 1]>(m) y = Neg(t) }}"""


def test_patches_of_an_image_are_rows_at_once() -> None:
    """A vision transformer's first layer: nothing turns what the convolution makes."""
    graph = optimized(PATCHES)
    assert operators(graph) == ["Transpose", "Conv", "Mul", "Neg", "Reshape"]
    x = np.arange(48, dtype=np.float32).reshape(1, 3, 4, 4) - 20
    got = evaluate(proto(PATCHES), {"x": x})[0]
    (right,) = ReferenceEvaluator(proto(PATCHES)).run(None, {"x": x})
    assert np.array_equal(got, np.asarray(right))  # halves of whole numbers
    assert not np.array_equal(got + 1, np.asarray(right))


def test_no_transpose_to_meet() -> None:
    """Nothing is moved for nothing."""
    text = PATCHES.replace("t = Transpose<perm = [0, 2, 1]>(m)", "t = Abs(m)")
    graph = optimized(text.replace("float[1,16,4] y", "float[1,4,16] y"))
    names = operators(graph)
    assert names.index("Transpose", 1) < names.index("Reshape")


@pytest.mark.parametrize("seed", range(30))
def test_operands_of_any_shape(seed: int) -> None:
    """What an operation makes of operands in other shapes is in another shape, too."""
    random = np.random.default_rng(seed)
    found = 0
    for _ in range(40):
        before = tuple(
            int(n) for n in random.choice([1, 2, 3, 4], random.integers(1, 5))
        )
        after = tuple(cut(before, random))
        operand = tuple(int(random.choice([1, n])) for n in before)
        operand = operand[random.integers(0, len(operand)) :]
        x = random.integers(0, 99, before)
        y = random.integers(0, 99, operand)
        made = Regrouping(before, after).of(operand)
        if made is not None:
            found += 1
            got = x.reshape(after) * 100 + y.reshape(made)
            assert np.array_equal(got, (x * 100 + y).reshape(after))
    assert found


@pytest.mark.parametrize(
    ("before", "after", "operand", "made"),
    [
        ((6, 5), (2, 3, 5), (6, 1), (2, 3, 1)),
        ((6, 5), (2, 3, 5), (5,), (5,)),
        ((6, 5), (2, 3, 5), (1, 5), (1, 1, 5)),
        ((2, 3, 5), (6, 5), (3, 1), None),  # a part of what is joined
        ((2, 3, 5), (6, 5), (1, 1, 1), (1, 1)),
        ((2, 3), (6,), (1, 1), (1,)),
        ((0, 8, 6), (0, 8, 2, 3), (), ()),
        ((0, 8, 6), (0, 8, 2, 3), (0, 8, 6), (0, 8, 2, 3)),
        ((0, 8, 6), (0, 8, 2, 3), (6,), None),  # nothing says which axes they are
    ],
)
def test_which_shapes_operands_get(
    before: tuple[int, ...],
    after: tuple[int, ...],
    operand: tuple[int, ...],
    made: tuple[int, ...] | None,
) -> None:
    assert Regrouping(before, after).of(operand) == made
