"""What a sample of an operator gives by way of the import, and whether it is right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx_ir
import onnxruntime
import torch  # pyright: ignore[reportMissingImports]

from nanoloom.frontend.torch.element_types import numpy_view, torch_view
from nanoloom.torch.graph_program import import_graph
from tests.torch.operator_samples import Sample

# Sums of at most a few hundred products of numbers up to 9, and functions of error
# below 4 units in the last place.
RELATIVE, ABSOLUTE = 64 * 2.0**-24, 512 * 81 * 2.0**-24 / 64
DOUBLE = RELATIVE * 2.0**-18, ABSOLUTE * 2.0**-18  # sums of long products have more
# Of 8 and 11 bits: of operators that are several here each rounds, as of torch's own
# some do and some do not; sums have the error of their largest numbers.
NARROW = {torch.bfloat16: 2.0**-6, torch.float16: 2.0**-9}
PEER_REFUSES = (
    onnxruntime.capi.onnxruntime_pybind11_state.NotImplemented,
    onnxruntime.capi.onnxruntime_pybind11_state.InvalidGraph,
    onnxruntime.capi.onnxruntime_pybind11_state.Fail,
    onnxruntime.capi.onnxruntime_pybind11_state.InvalidArgument,
    onnxruntime.capi.onnxruntime_pybind11_state.RuntimeException,
    TypeError,  # it takes no arrays of bf16
    RuntimeError,
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
    given = {n: sample.tensors[int(place)] for n, place in imported.inputs.items()}
    arrays = {
        name: np.asarray(numpy_view(imported.given(name, x), name), order="C")
        for name, x in given.items()
    }
    made = run(imported.model, arrays)

    def result(kind: str, what: Any) -> Any:
        if kind == "constant":
            return what
        if kind == "argument":
            return numpy_view(sample.tensors[what], "")
        return numpy_view(imported.result(what, torch_view(made[what])), "")

    return [result(*each) for each in imported.results]


def is_right(sample: Sample, found: list[Any]) -> bool:
    """Shapes, types and numbers; the places of equal elements may be any of theirs."""
    pairs = list(zip(found, sample.wanted, strict=True))
    if sample.name in ("topk", "sort", "argsort"):
        x = numpy_view(sample.tensors[0], "")
        ends = len(pairs) - 1
        ours, wanted = pairs[ends]
        return all(is_close(*pair) for pair in pairs[:ends]) and same_elements(
            x, ours, numpy_view(wanted, "")
        )
    if sample.name == "kthvalue":
        x = numpy_view(sample.tensors[0], "")
        return is_close(*pairs[0]) and leads_to(x, *(np.asarray(y) for y in found))
    if all(is_close(ours, wanted) for ours, wanted in pairs):
        return True
    if not any(getattr(x, "dtype", None) in NARROW for x in sample.wanted):
        return False
    try:  # torch may have rounded more: places to read at, to 11 bits
        exact = sample.in_doubles()
    except RuntimeError:  # it names its type itself
        return False
    return all(is_close(*pair) for pair in zip(found, exact, strict=True))


def leads_to(x: Any, values: Any, places: Any) -> bool:
    """Whether the elements at places of some axis, one of each line, are the values."""
    each = range(x.ndim) if x.ndim else ()
    lines = [np.moveaxis(x, axis, 0).reshape(x.shape[axis], -1) for axis in each]
    at, wanted = places.reshape(1, -1), values.reshape(1, -1)
    fits = [y for y in lines if y.shape[1] == at.size and at.max(initial=0) < len(y)]
    found = [np.take_along_axis(y, at, 0) for y in fits]
    return any(np.array_equal(y, wanted, equal_nan=True) for y in found) or not each


def same_elements(x: Any, ours: Any, theirs: Any) -> bool:
    """Whether places along some axis are of equal elements."""
    if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
        return False
    if np.array_equal(ours, theirs):
        return True
    found = [
        [np.take_along_axis(x, places, axis) for places in (ours, theirs)]
        for axis in range(x.ndim)
        if x.shape[:axis] + x.shape[axis + 1 :]
        == theirs.shape[:axis] + theirs.shape[axis + 1 :]
        and max(ours.max(), theirs.max()) < x.shape[axis]
    ]
    return any(np.array_equal(one, other) for one, other in found)


def is_close(ours: Any, wanted: Any) -> bool:
    if not isinstance(wanted, torch.Tensor):
        return bool(ours == wanted)
    theirs = numpy_view(wanted, "")
    if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
        return False
    if wanted.is_complex():
        parts = torch.view_as_real(torch_view(ours))
        return is_close(
            numpy_view(parts, ""), torch.view_as_real(wanted.resolve_conj())
        )
    if not wanted.is_floating_point():
        return np.array_equal(ours, theirs)
    a, b = (x.astype(np.float64) for x in (ours, theirs))
    relative, absolute = RELATIVE, ABSOLUTE
    if wanted.dtype == torch.float64:
        relative, absolute = DOUBLE
    if wanted.dtype in NARROW:
        relative = NARROW[wanted.dtype]
        absolute = relative * float(np.abs(b[np.isfinite(b)]).max(initial=0.0))
    return np.allclose(a, b, rtol=relative, atol=absolute, equal_nan=True)
