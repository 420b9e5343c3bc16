"""Padding and concatenation without copies: producers write their part in place."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nanoloom.fusion.insert_in_place import Insertion
from tests.kernels.random_programs import Array
from tests.linalg.bounds import sample
from tests.vector.kernel_harness import backwards, program_of, run

SHAPE = (5, 7, 9)


def roots(make: Any, *inputs: Any) -> list[str]:
    program = program_of(make, *inputs)
    return [call.kernel.rpartition("_")[0] for call in program.calls]


def twice(b: Any, x: Any) -> Any:
    return b.elementwise(lambda s: s + s, x)


def padded(b: Any, x: Any) -> Any:
    return b.pad(x, [1, 2, 0], [3, 0, 1], 4)


@pytest.mark.parametrize("seed", range(6))
def test_what_blocks_leave_of_a_tensor(seed: int) -> None:
    """Every element once: those of the blocks, and those of the rest."""
    r, shape = np.random.default_rng([71, seed]), (4, 5, 6)
    found, rest = np.zeros(shape, int), [Insertion((0, 0, 0), shape)]
    for _ in range(1 + seed % 3):
        begin = tuple(r.integers(0, shape).tolist())
        size = tuple(r.integers(1, np.array(shape) - begin + 1).tolist())
        part = Insertion(begin, size)
        if not found[places(part)].any():
            found[places(part)] += 1
            rest = [left for block in rest for left in block.without(part)]
    assert found.any()
    for block in rest:
        found[places(block)] += 1
    assert (found == 1).all()


def places(block: Insertion) -> tuple[slice, ...]:
    pairs = zip(block.offsets, block.sizes, strict=True)
    return tuple(slice(o, o + s) for o, s in pairs)


def test_what_several_parts_leave_is_filled_alone() -> None:
    """Two parts of a padded tensor, beside each other: what is around both."""

    def make(b: Any, x: Any, y: Any) -> Any:
        whole = b.full((6, 9), 7, x.dtype)
        return b.insert(twice(b, y), b.insert(twice(b, x), whole, (1, 0)), (1, 4))

    program = program_of(make, ((3, 4), "float32"), ((3, 5), "float32"))
    (kernel,) = (k for k in program.kernels.values() if "opaque_border" in k.name)
    assert kernel.text.count("linalg.generic") == 2  # rows above and below
    x, y = sample(1, (3, 4), "float32"), sample(2, (3, 5), "float32")
    right = np.full((6, 9), 7, np.float32)
    right[1:4] = np.concatenate([2 * x, 2 * y], 1)
    assert (run(make, x, y) == right).all()


def test_blocks_that_meet() -> None:
    one = Insertion((0, 0), (2, 3))
    assert one.meets(Insertion((1, 2), (1, 1)))
    assert not one.meets(Insertion((0, 3), (2, 1)))
    assert not one.meets(Insertion((2, 0), (1, 3)))


def test_a_producer_writes_into_the_padded_tensor() -> None:
    kernels = roots(lambda b, x: padded(b, twice(b, x)), (SHAPE, "float32"))
    assert len(kernels) == 2 and kernels[0].startswith("opaque_border")
    assert kernels[1].startswith("elementwise")


@pytest.mark.parametrize("wide", [32, 9])
def test_what_others_read_is_written_twice_at_most(wide: int) -> None:
    """By one kernel, where a product cannot read it between the padding."""
    weight = np.ones((wide, 3), np.float32)

    def make(b: Any, x: Any) -> Any:
        s = twice(b, x)
        return [padded(b, s), b.einsum("abk,kn->abn", s, b.constant(weight))]

    x = np.rint(4 * sample(1, (5, 7, wide), "float32"))
    kernels = [kernel.split("_")[0] for kernel in roots(make, x)]
    assert kernels == ["opaque", "elementwise", "contraction"]
    pad, product = run(make, x)
    assert (pad == pads(x + x)).all() and (product == (x + x) @ weight).all()


def joined(b: Any, x: Any, y: Any) -> Any:
    return b.concat([twice(b, x), b.elementwise(lambda s: -s, y)], 1)


def test_parts_of_a_concatenation_are_written_in_place() -> None:
    kernels = roots(joined, (SHAPE, "float32"), (SHAPE, "float32"))
    assert [kernel.split("_")[0] for kernel in kernels] == ["elementwise"] * 2


WIDE = (5, 7, 32)


def test_each_two_parts_are_compared_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 40, not at each of them: 1,100 took minutes."""
    asked: list[Insertion] = []
    meets = Insertion.meets

    def counted(self: Insertion, other: Insertion) -> bool:
        asked.append(other)
        return meets(self, other)

    monkeypatch.setattr(Insertion, "meets", counted)
    parts = [lambda s, i=i: s + float(i) for i in range(40)]
    roots(
        lambda b, x: b.concat([b.elementwise(part, x) for part in parts], 0),
        (SHAPE, "float32"),
    )
    assert 40 * 39 // 2 <= len(asked) <= 40 * 39


def grown(b: Any, x: Any) -> Any:
    """A dense block: each layer reads all before it, and adds some numbers."""
    whole = twice(b, x)
    for _ in range(3):
        more = b.reduce(lambda a, s: a + s, whole, [2], 0)
        more = b.elementwise(lambda s, t: s + t, x, more)
        whole = b.concat([whole, more], 2)
    return b.elementwise(lambda s: -s, whole)


def grows(x: Array) -> Array:
    whole = x + x
    for _ in range(3):
        whole = np.concatenate([whole, x + whole.sum(2, keepdims=True)], 2)
    return -whole


def test_what_grows_lies_in_one_tensor() -> None:
    program = program_of(grown, (WIDE, "float32"))
    calls = [call.arguments for call in program.calls[:-1]]
    counts = [len(program.kernels[c.kernel].nest.results) for c in program.calls]
    written = [p for c, n in zip(calls, counts, strict=False) for p in c[-n:]]
    assert len({place.index for place in written}) == 1, "no copies"
    assert [place.offset for place in written] == [0, 128, 256, 384]


def side_by_side(b: Any, x: Any, y: Any) -> Any:
    return b.concat([twice(b, x), twice(b, y)], 1)


def test_what_is_written_side_by_side_is_written_by_one_kernel() -> None:
    program = program_of(side_by_side, (SHAPE, "float32"), (SHAPE, "float32"))
    assert len(program.calls) == 2 and len(program.kernels) == 1


CASES: dict[str, tuple[Any, Any, int]] = {
    "padded input": (padded, lambda x: pads(x), 1),
    "padded result": (lambda b, x: padded(b, twice(b, x)), lambda x: pads(x + x), 1),
    "read twice": (
        lambda b, x: [padded(b, (y := twice(b, x))), y],
        lambda x: [pads(x + x), x + x],
        1,
    ),
    "pads alike": (
        lambda b, x: [padded(b, twice(b, x)), padded(b, x)],
        lambda x: [pads(x + x), pads(x)],
        1,
    ),
    "joined": (joined, lambda x, y: np.concatenate([x + x, -y], 1), 2),
    "joined with itself": (
        lambda b, x: b.concat([x, x], 0),
        lambda x: np.concatenate([x, x], 0),
        1,
    ),
    "over each other": (
        lambda b, x, y: b.insert(
            twice(b, y), b.pad(twice(b, x), [0] * 3, [1] * 3), [0] * 3
        ),
        lambda x, y: over(x, y),
        2,
    ),
    "joined and padded": (
        lambda b, x, y: padded(b, joined(b, x, y)),
        lambda x, y: pads(np.concatenate([x + x, -y], 1)),
        2,
    ),
    "grown": (grown, grows, 1),
    "side by side": (
        side_by_side,
        lambda x, y: np.concatenate([x + x, y + y], 1),
        2,
    ),
    "in two": (
        lambda b, x: [
            b.concat([(y := twice(b, x)), x], 1),
            b.concat([x, y], 1),
            b.elementwise(lambda s: -s, y),
        ],
        lambda x: [
            np.concatenate([x + x, x], 1),
            np.concatenate([x, x + x], 1),
            -(x + x),
        ],
        1,
    ),
    "padded, then joined": (
        lambda b, x: b.concat([padded(b, twice(b, x)), padded(b, x)], 2),
        lambda x: np.concatenate([pads(x + x), pads(x)], 2),
        1,
    ),
    "padded and summed": (
        lambda b, x: b.reduce(lambda a, s: a + s, padded(b, twice(b, x)), [1], 0),
        lambda x: pads(x + x).sum(1, keepdims=True),
        1,
    ),
}  # fmt: skip


def pads(x: Array) -> Array:
    return np.pad(x, [(1, 3), (2, 0), (0, 1)], constant_values=4)


def over(x: Array, y: Array) -> Array:
    made = np.pad(x + x, [(0, 1)] * 3)
    made[: y.shape[0], : y.shape[1], : y.shape[2]] = y + y
    return made


@pytest.mark.parametrize("name", CASES)
def test_numbers(name: str) -> None:
    make, exact, count = CASES[name]
    shape = WIDE if make is grown else SHAPE
    given = [np.rint(4 * sample(i, shape, "float32")) for i in range(count)]
    got, right = run(make, *given, order=backwards), exact(*given)
    several = isinstance(right, list)
    pairs = zip(got, right, strict=True) if several else [(got, right)]
    for made, wanted in pairs:
        assert made.shape == wanted.shape and (made == wanted).all()
