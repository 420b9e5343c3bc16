"""Layers of images of any size read them where they lie, without their border."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from onnx.reference import ReferenceEvaluator

import nanoloom
from nanoloom import compile_open
from nanoloom.cache import Cache
from nanoloom.options import CompileOptions
from nanoloom.target import Target
from tests.guarded import Guarded, Side
from tests.vector.kernel_harness import targets

Words = dict[str, list[int]]
SAME = {"pads": [1, 1, 1, 1]}
STEM = {"pads": [3, 3, 3, 3], "strides": [2, 2]}
UNEVEN = {"pads": [0, 2, 3, 1], "strides": [1, 3], "dilations": [2, 1]}
BEHIND = {"pads": [0, 0, 1, 1], "strides": [2, 2]}
HIGH = [(33, 47), (64, 96), (1, 1), (2, 70), (70, 2)]
LONG = [(400,), (31,), (2,), (1,)]
CASES: list[tuple[list[str | int], tuple[int, ...], Words, list[tuple[int, ...]]]] = [
    (["h", "w"], (33, 3, 3, 3), SAME, HIGH),
    (["h", "w"], (64, 3, 7, 7), STEM, [(61, 85), *HIGH]),
    (["h", "w"], (20, 2, 3, 4), UNEVEN, [*HIGH[:2], (2, 70), (70, 1)]),
    (["h", "w"], (16, 3, 3, 3), BEHIND, [*HIGH[:2], (2, 70), (70, 2)]),
    (["h", 41], (20, 3, 3, 3), SAME, [(7, 41), (1, 41)]),  # tiles, and rows less
    ([9, "w"], (20, 3, 3, 3), SAME, [(9, 41), (9, 1)]),
    (["n"], (64, 3, 5), {"pads": [2, 2]}, LONG),
    (["n"], (24, 1, 9), {"pads": [0, 8]}, LONG),  # of what was before
    (["h", "w"], (16, 2, 1, 3), {"pads": [0, 90, 0, 0]}, HIGH),  # tiles of border
]


def layer(
    sizes: list[str | int], shape: tuple[int, ...], words: Words
) -> onnx.ModelProto:
    weights = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    kind, dims = onnx.TensorProto.FLOAT, [1, shape[1], *sizes]
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("Conv", ["x", "w"], ["y"], **words)],
        "layer",
        [onnx.helper.make_tensor_value_info("x", kind, dims)],
        [onnx.helper.make_tensor_value_info("y", kind, None)],
        [numpy_helper.from_array(weights, "w")],
    )
    return onnx.helper.make_model(
        graph, ir_version=10, opset_imports=[onnx.helper.make_opsetid("", 20)]
    )


@pytest.mark.drawn(one_in=4)
@pytest.mark.parametrize("target", targets(), ids=str)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_numbers(
    case: Any, target: Target, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At sizes that divide nothing, with nothing beside the image that can be read."""
    (sizes, shape, words, images), kernels = case, called(monkeypatch)
    made = layer(sizes, shape, words)
    options = CompileOptions(target, exact_conv=True)
    program = nanoloom.compile(made, threads=1, options=options, cache=Cache(tmp_path))
    random, reference = np.random.default_rng(2), ReferenceEvaluator(made)
    taps = int(np.prod(shape[1:]))
    for image in images:
        x = random.standard_normal((1, shape[1], *image)).astype(np.float32)
        (right,) = reference.run(None, {"x": x})
        for side in Side:
            y = program({"x": Guarded.of(x, side).array})["y"]
            # Sums of so many products of numbers of about 1.
            assert np.abs(y - right).max() <= taps * 1e-6 < np.abs(right).max()
        assert program.open.bound({"x": x.shape}, 1) is not None
    assert [name.split("_")[0] for name in kernels] == ["contraction", "elementwise"]


def called(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The kernels of the program that is compiled next, as it calls them."""
    found: list[str] = []
    compiled = compile_open.compile_sized

    def spy(program: Any, *given: Any) -> Any:
        found.extend(call.kernel for call in program.calls)
        return compiled(program, *given)

    monkeypatch.setattr(compile_open, "compile_sized", spy)
    return found
