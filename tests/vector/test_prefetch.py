"""What a nanokernel streams is asked for eight steps ahead, and nothing else is."""

from __future__ import annotations

from typing import Any

import numpy as np

from nanoloom.target import by_name
from nanoloom.vector.prefetch import STEPS
from tests.filecheck import check_text
from tests.vector.kernel_harness import program_of, stage_text

TARGET = by_name("sapphirerapids")
W = np.zeros((256, 128), np.float32)


def test_panels_are_prefetched() -> None:
    def make(b: Any, x: Any) -> Any:
        return b.einsum("mk,kn->mn", x, b.constant(W))

    program = program_of(make, ((96, 256), "float32"))
    check_text(
        stage_text(program, "vector", TARGET),
        f"""
    CHECK: scf.for [[K:%.*]] = %c0 to %c256
    CHECK: [[AHEAD:%.*]] = arith.addi [[K]], %c{STEPS}
    CHECK: memref.prefetch %arg1[{{{{.*}}}}, [[AHEAD]], {{{{.*}}}}], read, locality<3>
    CHECK: vector.transfer_read %arg1[{{{{.*}}}}, [[K]], {{{{.*}}}}]
    """,
    )
    assert "prefetcht0" in stage_text(program, "asm", TARGET)


def test_two_activations_are_not() -> None:
    """They were written just before: they lie in the cache."""

    def make(b: Any, x: Any, w: Any) -> Any:
        return b.einsum("mk,kn->mn", x, w)

    program = program_of(make, ((96, 256), "float32"), ((256, 128), "float32"))
    assert "prefetch" not in stage_text(program, "vector", TARGET)
