"""A seeded share of torch's samples of operators: none is wrong, few are refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir
import onnxruntime
import pytest
import torch  # pyright: ignore[reportMissingImports]

import nanoloom
from nanoloom.errors import Unsupported
from nanoloom.frontend.torch.element_types import numpy_view
from nanoloom.torch.graph_program import import_graph
from tests.torch.operator_samples import Sample, samples

SEED = 11
SHARE, COMPILED = 0.3, 0.006  # of all samples: imported, and compiled as well
LEAST = 0.95  # of the samples
# Sums of at most a few hundred products of numbers up to 9, and functions of error
# below 4 units in the last place.
RELATIVE, ABSOLUTE = 64 * 2.0**-24, 512 * 81 * 2.0**-24 / 64
PEER_REFUSES = (
    onnxruntime.capi.onnxruntime_pybind11_state.NotImplemented,
    onnxruntime.capi.onnxruntime_pybind11_state.InvalidGraph,
    onnxruntime.capi.onnxruntime_pybind11_state.Fail,
    onnxruntime.capi.onnxruntime_pybind11_state.InvalidArgument,
)
Run = Callable[[Any, dict[str, Any]], dict[str, Any]]


def by_peer(model: Any, arrays: dict[str, Any]) -> dict[str, Any]:
    """ONNX Runtime, which has no kernels for some element types."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = (
        onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    )
    content = onnx_ir.to_proto(model).SerializeToString()
    session = onnxruntime.InferenceSession(
        content, options, providers=["CPUExecutionProvider"]
    )
    names = [x.name for x in session.get_outputs()]
    return dict(zip(names, session.run(names, arrays), strict=True))


def computed(sample: Sample, run: Run) -> list[Any]:
    imported = import_graph(sample.graph.graph, sample.graph, {})
    arrays = {
        name: np.asarray(numpy_view(sample.tensors[int(place)], name), order="C")
        for name, place in imported.inputs.items()
    }
    made = run(imported.model, arrays)
    return [
        what if kind == "constant"
        else numpy_view(sample.tensors[what], "") if kind == "argument" else made[what]
        for kind, what in imported.results
    ]  # fmt: skip


def is_right(sample: Sample, found: list[Any]) -> bool:
    """Shapes, types and numbers; the places of equal elements may be any of theirs."""
    for ours, wanted in zip(found, sample.wanted, strict=True):
        if not isinstance(wanted, torch.Tensor):
            if ours != wanted:
                return False
            continue
        theirs = numpy_view(wanted, "")
        if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
            return False
        if theirs.dtype.kind != "f":
            if not np.array_equal(ours, theirs):
                return False
            continue
        a, b = (x.astype(np.float64) for x in (ours, theirs))
        if not np.allclose(a, b, rtol=RELATIVE, atol=ABSOLUTE, equal_nan=True):
            return False
    return True


@pytest.mark.parametrize("share", [SHARE, COMPILED])
def test_samples_of_operators(
    share: float, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def by_us(model: Any, arrays: dict[str, Any]) -> dict[str, Any]:
        return nanoloom.compile(model, cache=tmp_path, threads=1)(arrays)

    right, refused, wrong = 0, list[str](), list[str]()
    for sample in samples(SEED, share):
        try:
            found = computed(sample, by_peer if share == SHARE else by_us)
        except Unsupported as error:
            refused.append(f"{sample.name}: {error}")
            continue
        except PEER_REFUSES:
            found = computed(sample, by_us)
        if is_right(sample, found):
            right += 1
        else:
            wrong.append(sample.name)
    count = right + len(refused) + len(wrong)
    with capsys.disabled():
        print(f"\n{right} of {count} samples right, {len(refused)} refused")
    assert not wrong
    assert right >= LEAST * count, refused


def test_a_wrong_result_is_seen() -> None:
    sample = next(s for s in samples(SEED, 1.0) if s.name == "abs")
    right = [numpy_view(x, "") for x in sample.wanted]
    assert is_right(sample, right)
    assert not is_right(sample, [x + 0.5 for x in right])
    assert not is_right(sample, [x.astype(np.float64) for x in right])
