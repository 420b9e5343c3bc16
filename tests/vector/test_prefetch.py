"""The next panel comes while one is computed; what is read once, a little ahead."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nanoloom
from nanoloom.cache import Cache
from nanoloom.schedule.words.memory import AHEAD
from nanoloom.target import by_name
from tests.filecheck import check_text
from tests.linalg.single import model_of
from tests.vector.kernel_harness import program_of, stage_text

TARGET = by_name("sapphirerapids")
W = np.zeros((256, 96), np.float32)


def product(b: Any, x: Any) -> Any:
    return b.einsum("mk,kn->mn", x, b.constant(W))


def test_a_share_of_the_next_panel_comes_each_round() -> None:
    """12 tiles of 64 rounds; a panel of 256 x 48 numbers has 768 lines: one a round."""
    program = program_of(product, ((96, 256), "float32"))
    check_text(
        stage_text(program, "vector", TARGET),
        """
    CHECK: scf.for [[ROW:%.*]] = %c0 to %c96 step %c8
    CHECK: scf.for [[K:%.*]] = %c0 to %c256 step %c4
    CHECK: [[NEXT:%.*]] = arith.addi {{.*}}, %c1
    CHECK-COUNT-3: vector.transfer_read %arg1[
    CHECK: memref.prefetch %arg1{{\\[}}[[NEXT]], %c0, {{.*}}], read, locality<2>
    CHECK: llvm.inline_asm
    CHECK-NOT: memref.prefetch
    CHECK-COUNT-9: vector.transfer_read %arg1[
    """,
    )
    assert "prefetcht1" in stage_text(program, "asm", TARGET)


def test_a_single_tile_reads_a_panel_once() -> None:
    """Nobody would come back for the next panel: the lines further on are fetched."""
    program = program_of(product, ((2, 256), "float32"))
    text = stage_text(program, "vector", TARGET)
    assert f"arith.constant {AHEAD} : index" in text
    assert text.count("memref.prefetch") == text.count("vector.transfer_read %arg1[")


def test_a_single_row_is_nothing_but_loads() -> None:
    """The processor keeps as many of them under way as it can."""
    program = program_of(product, ((1, 256), "float32"))
    assert "prefetch" not in stage_text(program, "vector", TARGET)


def test_two_activations_are_not() -> None:
    """They were written just before: they lie in the cache."""

    def make(b: Any, x: Any, w: Any) -> Any:
        return b.einsum("mk,kn->mn", x, w)

    program = program_of(make, ((96, 256), "float32"), ((256, 96), "float32"))
    assert "prefetch" not in stage_text(program, "vector", TARGET)


@pytest.mark.parametrize("op", ["Conv", "ConvInteger"])
@pytest.mark.parametrize("shape", [(8, 17, 2), (8, 17, 3, 3)])
def test_weights_that_are_no_panels(
    op: str, shape: tuple[int, ...], tmp_path: Path
) -> None:
    """An input as it comes: all its dimensions but the last are summed over."""
    kind = np.float32 if op == "Conv" else np.uint8
    made = np.random.default_rng(3).integers(0, 9, (*shape, 2))
    w = made[..., 0].astype(kind)
    x = np.ones((1, 17, *[9] * (len(shape) - 2)), kind)
    model, feeds = model_of(op, [x, w], {})
    got = nanoloom.compile(model, cache=Cache(tmp_path))(feeds)["y0"]
    sums = w.astype(np.int64).sum(tuple(range(1, w.ndim)))
    assert (got[0].reshape(8, -1) == sums[:, None]).all()
