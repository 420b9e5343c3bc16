"""The stage as a whole: what is left of a kernel are loops, vectors and numbers."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from nanoloom.errors import Error
from nanoloom.ir import mlir
from nanoloom.ir.mlir import ir
from nanoloom.linalg.builder.scalar import BFLOAT16
from nanoloom.schedule.choose import choose
from nanoloom.schedule.emit import script
from nanoloom.target import by_name
from nanoloom.vector.stage import vectorize
from tests.linalg.bounds import sample, wide
from tests.vector.checks import check
from tests.vector.kernel_harness import (
    Make,
    backwards,
    program_of,
    run,
    stage_text,
)
from tests.vector.test_reductions import softmax

TARGET = by_name("sapphirerapids")
W = sample(1, (33, 70), "float32")
LEFT = ("linalg.", "tensor.", "bufferization.", "scf.forall", "memref.copy")


def gelu(b: Any, x: Any) -> Any:
    s = b.einsum("mk,kn->mn", x, b.constant(W))
    return b.elementwise(lambda s: s * ((s * 0.7).math("erf") + 1.0) * 0.5, s)


KERNELS: dict[str, tuple[Make, tuple[int, ...]]] = {
    "gelu": (gelu, (31, 33)),
    "softmax": (softmax, (200, 130)),
    "transpose": (lambda b, x: b.transpose(x, [1, 0]), (67, 131)),
    "sum": (lambda b, x: b.reduce(lambda a, s: a + s, x, [0], 0), (67, 131)),
    "square": (lambda b, x: b.elementwise(lambda s: s * s, x), (67, 131)),
}


@pytest.mark.parametrize("name", KERNELS)
def test_what_is_left(name: str) -> None:
    """No allocation, copy, tensor or structured operation in a kernel."""
    make, shape = KERNELS[name]
    text = stage_text(program_of(make, (shape, "float32")), "vector", TARGET)
    assert [word for word in LEFT if word in text] == []
    assert re.findall(r"memref\.alloc\(", text) == []
    assert re.search(r"vector<\d+x?f32>|vector<16xf32>", text)
    assert not re.search(r"llvm\.call\b", text)  # of a function


def test_phases_and_tasks() -> None:
    program = program_of(softmax, ((200, 130), "float32"))
    (kernel,) = program.kernels.values()
    with mlir.context():
        module = ir.Module.parse(kernel.text)
        text = script(choose(kernel.nest, TARGET), kernel.nest)
        ((name, tasks),) = vectorize(module, text, TARGET).phases
        assert module.operation.verify()
    assert name == "kernel_0"
    assert 1 < tasks <= 200


def test_a_long_row_gives_the_right_numbers() -> None:
    x = sample(2, (2, 150017), "float32")
    power = np.exp(wide(x) - wide(x).max(-1, keepdims=True))
    exact = power / power.sum(-1, keepdims=True)
    # Chains of 16 lanes x 4: no sum is longer than the length over 64.
    steps = x.shape[-1] / 64 + 64 + 30
    check(run(softmax, x, order=backwards), exact, steps)


def test_a_script_that_is_none() -> None:
    program = program_of(softmax, ((2, 3), "float32"))
    (kernel,) = program.kernels.values()
    with mlir.context():
        module = ir.Module.parse(kernel.text)
        with pytest.raises(Error, match="the script has no"):
            vectorize(module, "", TARGET)


@pytest.mark.parametrize("target", ["x86-64-v3", "skylake-avx512", "sapphirerapids"])
def test_rounding_to_bf16_calls_nothing(target: str) -> None:
    """Where no instruction does it, shifts and additions do."""

    def rounded(b: Any, x: Any) -> Any:
        return b.cast(x, BFLOAT16)

    text = stage_text(program_of(rounded, ((5, 37), "float32")), "asm", by_name(target))
    assert "truncsfbf2" not in text
    assert ("vcvtneps2bf16" in text) == (target == "sapphirerapids")
