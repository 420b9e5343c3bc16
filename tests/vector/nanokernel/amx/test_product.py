"""AMX: what tile instructions compute of bf16 and bytes."""

from __future__ import annotations

from dataclasses import replace
from itertools import cycle
from typing import Any

import numpy as np
import pytest

from nanoloom.ir.mlir import ir
from nanoloom.linalg.builder.builder import PARALLEL, REDUCTION, Map
from nanoloom.vector.nanokernel.amx import instructions
from nanoloom.vector.nanokernel.amx import product as rows
from tests.linalg.bounds import sample
from tests.vector.checks import check, contracted, passes
from tests.vector.kernel_harness import Array, Make, backwards, run
from tests.vector.nanokernel.tile_products import (
    EACH,
    SIGNS,
    compare,
    machine,
    numbers,
    product,
    script_of,
    sums_of,
)

PRODUCTS = {
    ("bf16", "bf16"): "tdpbf16ps",
    ("s8", "s8"): "tdpbssd",
    ("s8", "u8"): "tdpbsud",
    ("u8", "s8"): "tdpbusd",
    ("u8", "u8"): "tdpbuud",
}
BF16_SIZES = [  # rows, depth, columns
    (1, 2, 17), (5, 34, 100), (17, 64, 32), (33, 130, 17), (65, 34, 100),
    (197, 64, 32), (65, 128, 17), (16, 2, 33), (33, 3, 31), (17, 17, 100), (1, 31, 70),
    (128, 31, 5), (33, 33, 65), (128, 197, 64), (5, 197, 33),
    (65, 300, 40), (197, 801, 33), (290, 545, 64),  # sums in chunks, blocks of rows
]  # fmt: skip
BYTE_SIZES = [
    (1, 36, 17), (5, 64, 100), (17, 100, 32), (33, 132, 17), (65, 128, 100),
    (197, 64, 32), (16, 2, 33), (5, 2, 17), (33, 3, 100), (17, 4, 31), (128, 5, 33),
    (1, 63, 65), (33, 65, 20), (65, 600, 40), (100, 835, 33),
]  # fmt: skip


# ---- numbers -------------------------------------------------------------------------


@pytest.mark.drawn(one_in=3)
@EACH
@pytest.mark.parametrize("m, k, n", BF16_SIZES)
def test_bf16(
    variant: str, m: int, k: int, n: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    left, right = numbers(m, "bf16", m, k), numbers(n, "bf16", k, n)
    compare("mk,kn->mn", left, right, machine(variant, monkeypatch), packed=True)


# Signs are another instruction, sizes other tiles: all of both at some sizes.
SIGNS_AT_SIZES = [
    *((signs, size) for size in BYTE_SIZES[-4:-1] for signs in SIGNS),
    *zip(cycle(SIGNS), (*BYTE_SIZES[:-4], BYTE_SIZES[-1]), strict=False),
]


@pytest.mark.drawn(one_in=8)
@EACH
@pytest.mark.parametrize(("signs", "size"), SIGNS_AT_SIZES, ids=str)
def test_bytes(
    variant: str,
    signs: tuple[str, str],
    size: tuple[int, int, int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    m, k, n = size
    left, right = numbers(m, signs[0], m, k), numbers(n, signs[1], k, n)
    compare("mk,kn->mn", left, right, machine(variant, monkeypatch), packed=True)


@pytest.mark.drawn
@EACH
@pytest.mark.parametrize("name", ["bf16", "s8"])
@pytest.mark.parametrize(
    ("equation", "left", "right"),
    [
        ("mjk,jkn->mn", (37, 3, 36), (3, 36, 19)),
        ("mjk,jkn->mn", (50, 5, 67), (5, 67, 40)),
        ("bmk,bkn->bmn", (2, 17, 64), (2, 64, 33)),
        ("mk,nk->mn", (13, 68), (31, 68)),
        ("k,kn->n", (100,), (100, 33)),
    ],
)
def test_forms(
    variant: str,
    name: str,
    equation: str,
    left: tuple[int, ...],
    right: tuple[int, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one, other = numbers(1, name, *left), numbers(2, name, *right)
    compare(equation, one, other, machine(variant, monkeypatch), packed=True)


@pytest.mark.drawn
@EACH
@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("n", [21, 32, 53])
def test_an_epilogue(
    variant: str, packed: bool, n: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes what is inside the result, of tiles that are narrower than 32, too."""
    left, right = numbers(1, "bf16", 128, 84), numbers(2, "bf16", 84, n)
    bias = sample(3, (n,), "float32", -9, 9)
    sums = product("mk,kn->mn", right, packed=packed)

    def make(b: Any, x: Any, *others: Any) -> Any:
        *w, added = others
        return b.elementwise(lambda s, t: s + t, sums(b, x, *w), added)

    given = (left, bias) if packed else (left, right, bias)
    target = machine(variant, monkeypatch)
    assert 'family = "amx-' in script_of(make, target, *given)
    got = run(make, *given, target=target, order=backwards)
    exact, magnitude, terms = contracted("mk,kn->mn", left, right)
    check(got, exact + bias, terms + 2, magnitude + abs(bias))
    assert not passes(got, exact, terms + 2, magnitude + abs(bias))


@EACH
def test_sums_of_bytes_wrap(variant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """70000 products of 255 * 255 do not fit in 32 bits."""
    left, right = np.full((1, 70000), 255, np.uint8), np.full((70000, 3), 255, np.uint8)
    make = product("mk,kn->mn", right, packed=True)
    got = run(make, left, target=machine(variant, monkeypatch))
    assert (got == np.int64(255 * 255 * 70000).astype(np.int32)).all()


@pytest.mark.drawn
@EACH
@pytest.mark.parametrize("m, k, n", [(70, 33, 40), (40, 197, 33), (17, 7, 64)])
@pytest.mark.parametrize("packed", [True, False])
def test_what_lies_behind_a_row_is_not_read(
    variant: str, packed: bool, m: int, k: int, n: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next row, of NaN: zeros times that are no zeros."""
    left, right = numbers(m, "bf16", m, k), numbers(n, "bf16", k, n)
    poisoned = np.arange(m) % 3 == 1
    left[poisoned] = np.nan
    make = product("mk,kn->mn", right, packed=packed)
    given = (left,) if packed else (left, right)
    got = run(make, *given, target=machine(variant, monkeypatch), order=backwards)
    assert np.isnan(got[poisoned]).all()
    exact, magnitude, terms = contracted("mk,kn->mn", left[~poisoned], right)
    check(got[~poisoned], exact, terms + 1, magnitude)


def onwards(m: int, k: int, n: int, right: Array, start: int | None) -> Make:
    """start + x @ right, summed from the start on: a number, or one more input."""
    dtype = sums_of(right)

    def dims(*places: int) -> Map:
        return Map.get(3, 0, [ir.AffineDimExpr.get(place) for place in places])

    def make(b: Any, x: Any, *begun: Any) -> Any:
        sums = begun[0] if start is None else b.full((m, n), start, dtype)
        return b.generic(
            [(x, dims(0, 2)), (b.constant(right), dims(2, 1))],
            [(sums, dims(0, 1))],
            [PARALLEL, PARALLEL, REDUCTION],
            lambda s, t, u: u + s.cast(dtype) * t.cast(dtype),
        )[0]

    return make


@pytest.mark.drawn
@EACH
@pytest.mark.parametrize("name", ["bf16", "u8"])
@pytest.mark.parametrize(
    ("m", "k", "n", "start"),
    [(64, 64, 64, 3), (33, 64, 17, -5), (65, 101, 100, 7), (5, 37, 100, None)],
)
def test_sums_go_on(
    variant: str,
    name: str,
    m: int,
    k: int,
    n: int,
    start: int | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """From what the result holds, and nothing beyond it is read."""
    left, right = numbers(m, name, m, k), numbers(n, name, k, n)
    begun = sample(3, (m, n), sums_of(right).name, -9, 9)
    make, target = onwards(m, k, n, right, start), machine(variant, monkeypatch)
    given = (left,) if start is not None else (left, begun)
    assert 'family = "amx-' in script_of(make, target, *given)
    got = run(make, *given, target=target, order=backwards)
    first = begun if start is None else np.full((m, n), start)
    exact, magnitude, terms = contracted("mk,kn->mn", left, right)
    check(got, exact + first, terms + 1, magnitude + abs(first))
    assert not passes(got, exact, terms + 1, magnitude + abs(first))


@EACH
@pytest.mark.parametrize("name", ["bf16", "s8"])
def test_a_wrong_kernel_fails(
    variant: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bytes taken with other signs, products that are left out."""
    target = replace(machine(variant, monkeypatch), name=f"wrong-{name}")
    if name == "bf16":
        monkeypatch.setattr(rows, "lower", lambda op, _: op.operation.erase())
    else:
        wrong = dict.fromkeys(PRODUCTS, "tdpbsud")
        monkeypatch.setattr(instructions, "PRODUCTS", wrong)
    left, right = numbers(1, name, 33, 64), numbers(2, name, 64, 17)
    with pytest.raises(AssertionError):
        compare("mk,kn->mn", left, right, target, packed=True)
