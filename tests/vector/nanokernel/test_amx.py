"""AMX: bf16 and bytes in tile registers, weights packed and activations woven.

The numbers come twice: "loops" has definitions in place of tile instructions
(tile_loops.py), for any machine; "tiles" are the instructions, where there are any.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from nanoloom.linalg.builder import PARALLEL, REDUCTION, Map
from nanoloom.mlir import ir
from nanoloom.schedule.library import family
from nanoloom.target import Target, by_name
from nanoloom.target.host import host
from nanoloom.vector.nanokernel import amx, amx_instructions
from tests.linalg.bounds import dtype_of, sample
from tests.vector.checks import check, contracted, passes
from tests.vector.kernel_harness import (
    Array,
    Make,
    Shaped,
    backwards,
    program_of,
    run,
    stage_text,
)
from tests.vector.nanokernel.tile_loops import in_loops

TARGET = by_name("sapphirerapids")
NATIVE = host().matrix is not None and host().has("amx-bf16", "amx-int8")
VARIANTS = ("loops", "tiles") if NATIVE else ("loops",)
EACH = pytest.mark.parametrize("variant", VARIANTS)
TYPES = {"bf16": "bfloat16", "s8": "int8", "u8": "uint8"}
SIGNS = [("s8", "s8"), ("s8", "u8"), ("u8", "s8"), ("u8", "u8")]
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
    (1, 63, 65), (33, 65, 20), (65, 600, 40), (100, 1603, 33),
]  # fmt: skip


def machine(variant: str, monkeypatch: pytest.MonkeyPatch) -> Target:
    """A target with AMX whose code runs here, and takes it for any sum."""
    here = host()
    monkeypatch.setattr(family, "GROUPS_FOR_TILES", 0)
    if variant == "tiles":
        return replace(here, name="amx-for-all")
    in_loops(monkeypatch)
    return replace(
        TARGET,
        name="amx-in-loops",
        triple=here.triple,
        cpu=here.cpu,
        features=here.features,
        abi=here.abi,
        code_model=here.code_model,
    )


def numbers(seed: int, name: str, *shape: int) -> Array:
    """Seeded; of bytes all of the type's range, its ends among them."""
    if name == "bf16":
        return sample(seed, shape, TYPES[name])
    made = sample(seed, shape, TYPES[name], -128, 255)
    limits = np.iinfo(made.dtype)
    made.reshape(-1)[: made.size // 5] = limits.min
    made.reshape(-1)[-(made.size // 5) :] = limits.max
    return made


def sums_of(array: Array) -> np.dtype:
    return np.dtype(np.int32 if array.dtype.kind in "iu" else np.float32)


def product(equation: str, right: Array, *, packed: bool) -> Make:
    dtype = sums_of(right)
    if packed:
        return lambda b, x: b.einsum(equation, x, b.constant(right), dtype=dtype)
    return lambda b, x, w: b.einsum(equation, x, w, dtype=dtype)


def zeros(name: str, *shape: int) -> Array:
    return np.zeros(shape, dtype_of(TYPES[name]))


def script_of(make: Make, target: Target, *given: Shaped) -> str:
    """The Transform script of the only kernel, without the kernel itself."""
    text = stage_text(program_of(make, *given), "schedule", target)
    return text[: text.index("\n}\n") + 3]


def compare(
    equation: str, left: Array, right: Array, target: Target, *, packed: bool
) -> None:
    """The numbers, those of other columns not, and the family that made them."""
    make = product(equation, right, packed=packed)
    given = (left,) if packed else (left, right)
    assert 'family = "amx-' in script_of(make, target, *given)
    got = run(make, *given, target=target, order=backwards)
    exact, magnitude, terms = contracted(equation, left, right)
    if got.dtype.kind == "i":
        exact = exact.astype(np.int64).astype(np.int32)
    check(got, exact, terms + 1, magnitude)  # products are exact, sums round
    assert not passes(got, np.roll(exact, 1, -1), terms + 1, magnitude)


# ---- numbers -------------------------------------------------------------------------


@EACH
@pytest.mark.parametrize("m, k, n", BF16_SIZES)
def test_bf16_weights(
    variant: str, m: int, k: int, n: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    left, right = numbers(m, "bf16", m, k), numbers(n, "bf16", k, n)
    compare("mk,kn->mn", left, right, machine(variant, monkeypatch), packed=True)


@EACH
@pytest.mark.parametrize("m, k, n", [size for size in BF16_SIZES if size[0] > 16])
def test_bf16_activations(
    variant: str, m: int, k: int, n: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both operands come as they are: the right one is woven by every task."""
    left, right = numbers(m, "bf16", m, k), numbers(n, "bf16", k, n)
    compare("mk,kn->mn", left, right, machine(variant, monkeypatch), packed=False)


@EACH
@pytest.mark.parametrize("signs", SIGNS, ids=" by ".join)
@pytest.mark.parametrize("m, k, n", [size for size in BYTE_SIZES if size[0] > 16])
def test_activations_of_bytes(
    variant: str,
    signs: tuple[str, str],
    m: int,
    k: int,
    n: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    left, right = numbers(m, signs[0], m, k), numbers(n, signs[1], k, n)
    compare("mk,kn->mn", left, right, machine(variant, monkeypatch), packed=False)


@EACH
@pytest.mark.parametrize("signs", SIGNS, ids=" by ".join)
@pytest.mark.parametrize("m, k, n", BYTE_SIZES)
def test_bytes(
    variant: str,
    signs: tuple[str, str],
    m: int,
    k: int,
    n: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    left, right = numbers(m, signs[0], m, k), numbers(n, signs[1], k, n)
    compare("mk,kn->mn", left, right, machine(variant, monkeypatch), packed=True)


@EACH
@pytest.mark.parametrize("name", ["bf16", "s8"])
@pytest.mark.parametrize(
    ("equation", "left", "right", "packed"),
    [
        ("mjk,jkn->mn", (37, 3, 36), (3, 36, 19), True),
        ("mjk,jkn->mn", (50, 5, 67), (5, 67, 40), True),
        ("bmk,bkn->bmn", (2, 17, 64), (2, 64, 33), True),
        ("mk,nk->mn", (13, 68), (31, 68), True),
        ("k,kn->n", (100,), (100, 33), True),
        ("bhmk,bhkn->bhmn", (2, 3, 19, 12), (2, 3, 12, 33), False),
        ("bmk,bkn->bmn", (2, 40, 197), (2, 197, 33), False),
    ],
)
def test_forms(
    variant: str,
    name: str,
    equation: str,
    left: tuple[int, ...],
    right: tuple[int, ...],
    packed: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one, other = numbers(1, name, *left), numbers(2, name, *right)
    compare(equation, one, other, machine(variant, monkeypatch), packed=packed)


@EACH
def test_sums_of_bytes_wrap(variant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """70000 products of 255 * 255 do not fit in 32 bits."""
    left, right = np.full((1, 70000), 255, np.uint8), np.full((70000, 3), 255, np.uint8)
    make = product("mk,kn->mn", right, packed=True)
    got = run(make, left, target=machine(variant, monkeypatch))
    assert (got == np.int64(255 * 255 * 70000).astype(np.int32)).all()


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
        monkeypatch.setattr(amx, "lower", lambda op: op.operation.erase())
    else:
        wrong = dict.fromkeys(PRODUCTS, "tdpbsud")
        monkeypatch.setattr(amx_instructions, "PRODUCTS", wrong)
    left, right = numbers(1, name, 33, 64), numbers(2, name, 64, 17)
    with pytest.raises(AssertionError):
        compare("mk,kn->mn", left, right, target, packed=True)
