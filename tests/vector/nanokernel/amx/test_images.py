"""AMX: convolutions whose rows of pixels lie apart, alone in a tile and by twos."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from nanoloom.errors import Error
from nanoloom.ir.mlir import ir
from nanoloom.linalg.builder.builder import PARALLEL, REDUCTION, Map
from nanoloom.schedule.library import image_rows
from nanoloom.vector.nanokernel.amx import tile as amx_tile
from tests.vector.checks import check, passes
from tests.vector.kernel_harness import (
    Array,
    Make,
    backwards,
    program_of,
    run,
    stage_text,
)
from tests.vector.nanokernel.tile_products import (
    EACH,
    machine,
    numbers,
    script_of,
    sums_of,
)


@dataclass(frozen=True)
class Image:
    """A convolution of [high, wide, channels] (results) by features of taps x taps."""

    high: int
    wide: int
    channels: int
    features: int
    taps: int = 3
    stride: int = 1

    def operands(self, name: str) -> tuple[Array, Array]:
        high, wide = (self.stride * (n - 1) + self.taps for n in (self.high, self.wide))
        image = numbers(1, name, high, wide, self.channels)
        right = (self.features, self.taps, self.taps, self.channels)
        return image, numbers(2, name, *right)

    def make(self, filters: Array) -> Make:
        """The sum over taps and channels."""
        dtype, s = sums_of(filters), self.stride

        def make(b: Any, x: Any) -> Any:
            y, z, f, ky, kx, c = (ir.AffineDimExpr.get(n) for n in range(6))
            return b.generic(
                [
                    (x, Map.get(6, 0, [y * s + ky, z * s + kx, c])),
                    (b.constant(filters), Map.get(6, 0, [f, ky, kx, c])),
                ],
                [(
                    b.full((self.high, self.wide, self.features), 0, dtype),
                    Map.get(6, 0, [y, z, f]),
                )],
                [PARALLEL] * 3 + [REDUCTION] * 3,
                lambda one, w, total: total + one.cast(dtype) * w.cast(dtype),
            )[0]  # fmt: skip

        return make

    def in_rows(self, filters: Array) -> Make:
        """The same with rows of taps, whose channels lie side by side, as one sum."""
        dtype, s, count = sums_of(filters), self.stride, self.channels
        rows = filters.reshape(self.features, self.taps, -1)

        def make(b: Any, x: Any) -> Any:
            x = b.reshape(x, (x.shape[0], x.shape[1] * count))
            y, z, f, ky, t = (ir.AffineDimExpr.get(n) for n in range(5))
            return b.generic(
                [
                    (x, Map.get(5, 0, [y * s + ky, z * (s * count) + t])),
                    (b.constant(rows), Map.get(5, 0, [f, ky, t])),
                ],
                [(
                    b.full((self.high, self.wide, self.features), 0, dtype),
                    Map.get(5, 0, [y, z, f]),
                )],
                [PARALLEL] * 3 + [REDUCTION] * 2,
                lambda one, w, total: total + one.cast(dtype) * w.cast(dtype),
            )[0]  # fmt: skip

        return make

    def exact(self, image: Array, filters: Array) -> Array:
        """In float64, or the integers that sums wrap to."""
        kind = np.int64 if image.dtype.kind in "iu" else np.float64
        wide, taps = image.astype(kind), filters.astype(kind)
        windows = np.lib.stride_tricks.sliding_window_view(
            wide, (self.taps, self.taps), (0, 1)
        )[:: self.stride, :: self.stride]
        return np.einsum("yxcij,fijc->yxf", windows, taps)

    def compare(self, make: Make, operands: tuple[Array, Array], target: Any) -> None:
        """Within the bound of sums, and not those of other pixels."""
        got = run(make, operands[0], target=target, order=backwards)
        exact = self.exact(*operands)
        if got.dtype.kind == "i":
            exact = exact.astype(np.int32)
            assert (got == exact).all()
            assert not (got == np.roll(exact, 1, 0)).all()
            return
        magnitude = self.exact(*(abs(x) for x in operands))
        terms = self.taps**2 * self.channels + 1
        check(got, exact, terms, magnitude)
        assert not passes(got, np.roll(exact, 1, 0), terms, magnitude)


ANY = "!transform.any_op"
BY_TWOS = [  # a tile has two rows of pixels
    Image(7, 7, 64, 64), Image(2, 16, 64, 32), Image(5, 3, 128, 32, taps=2),
    Image(3, 14, 64, 64, stride=2), Image(4, 9, 64, 64, taps=1, stride=2),
]  # fmt: skip
ALONE = [  # wider than a register, columns or sums over an edge
    Image(4, 17, 64, 64), Image(6, 7, 64, 40), Image(5, 7, 20, 32),
    Image(4, 40, 33, 17, stride=2),
]  # fmt: skip


@pytest.mark.drawn(one_in=4)
@EACH
@pytest.mark.parametrize("name", ["bf16", "u8"])
@pytest.mark.parametrize("image", [*BY_TWOS, *ALONE], ids=str)
def test_rows_of_an_image_share_a_panel(
    variant: str, name: str, image: Image, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(image_rows, "stay", lambda *_: False)
    operands = image.operands(name)
    make, target = image.make(operands[1]), machine(variant, monkeypatch)
    script = script_of(make, target, operands[0])
    assert 'family = "amx-' in script
    assert ("tile_sizes [1, " in script) == (image in ALONE)
    image.compare(make, operands, target)


@pytest.mark.drawn
@EACH
@pytest.mark.parametrize("name", ["bf16", "u8", "s8"])
@pytest.mark.parametrize(
    "image",
    [Image(5, 40, 3, 64, 7, 2), Image(3, 17, 4, 33, 5, 3), Image(2, 33, 1, 32, 9)],
    ids=str,
)
def test_rows_of_taps(
    variant: str, name: str, image: Image, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sum that is no dimension of the left operand's: all of it is multiplied."""
    operands = image.operands(name)
    make, target = image.in_rows(operands[1]), machine(variant, monkeypatch)
    assert 'family = "amx-' in script_of(make, target, operands[0])
    image.compare(make, operands, target)


@EACH
def test_a_border_is_made_in_the_task(
    variant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once for all rows of the image that share a panel."""
    monkeypatch.setattr(image_rows, "stay", lambda *_: False)
    image = Image(7, 7, 64, 64, stride=2)
    whole, filters = image.operands("bf16")
    inside = whole[1:-1, 1:-1].copy()
    sums, target = image.make(filters), machine(variant, monkeypatch)

    def make(b: Any, x: Any) -> Any:
        return sums(b, b.pad(x, [1, 1, 0], [1, 1, 0]))

    script = script_of(make, target, inside)
    assert "nanoloom.store_at" in script and "tile_sizes [1, " not in script
    got = run(make, inside, target=target, order=backwards)
    bordered = np.pad(inside, ((1, 1), (1, 1), (0, 0)))
    exact, magnitude = (
        image.exact(*found)
        for found in ((bordered, filters), (abs(bordered), abs(filters)))
    )
    terms = image.taps**2 * image.channels + 1
    check(got, exact, terms, magnitude)
    assert not passes(got, image.exact(whole, filters), terms, magnitude)


@EACH
def test_a_register_of_another_row_fails(
    variant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both registers of a tile with the pixels of its first row."""
    image = Image(7, 7, 64, 64)
    target = replace(machine(variant, monkeypatch), name="wrong-rows")
    monkeypatch.setattr(image_rows, "stay", lambda *_: False)
    monkeypatch.setattr(amx_tile.Product, "apart", lambda *_: 0)
    operands = image.operands("u8")
    with pytest.raises(AssertionError):
        image.compare(image.make(operands[1]), operands, target)


def test_wide_rows_are_tiled_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of what reaches over a register's edge a tile has no two rows."""
    monkeypatch.setattr(image_rows, "stay", lambda *_: False)
    image = Image(4, 17, 64, 64)
    operands = image.operands("u8")
    given = image.make(operands[1]), machine("loops", monkeypatch)
    script = script_of(*given, operands[0])
    script = script.replace("tile_sizes [1, 17,", "tile_sizes [0, 17,")
    script = re.sub(r"(%loops\d+):2", r"\1", script)
    script = script.replace(f"({ANY}, {ANY}, {ANY})", f"({ANY}, {ANY})")
    program = program_of(given[0], operands[0])
    with pytest.raises(Error, match="have 16 pixels at most, 32 columns"):
        stage_text(program, "llvm", given[1], script=script)
