"""One program for every size beside onnxruntime: equal at any size and any threads."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx
import onnxruntime

import nanoloom
from nanoloom.cache import Cache
from nanoloom.compiler import Report

Arrays = Mapping[str, np.ndarray]
# Of two dimensions: 1, and what no tile or vector divides.
PAIRS = (
    (1, 1), (1, 7), (7, 1), (2, 3), (3, 17), (5, 9), (13, 4), (1, 300), (41, 33),
    (66, 5), (97, 130), (11, 211),
)  # fmt: skip
LENGTHS = (1, 2, 3, 5, 7, 13, 31, 64, 101, 129, 150, 211)


def session(model: onnx.ModelProto) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(model.SerializeToString(), options)


def compare(
    model: onnx.ModelProto,
    samples: Sequence[Mapping[str, int]],
    folder: Path,
    given: Callable[[onnx.ModelProto, Mapping[str, int]], Arrays],
    bound: float,
) -> list[dict[str, np.ndarray]]:
    """What the program gives for each of the sizes, compiled once for all of them.

    given: the inputs for sizes.  bound: of errors, in parts of a number or of 1.
    """
    report, cache, peer = Report(), Cache(folder), session(model)
    program = nanoloom.compile(model, threads=1, cache=cache, report=report)
    other = nanoloom.compile(model, threads=2, cache=cache)
    made: list[dict[str, np.ndarray]] = []
    kernels = None
    for dims in samples:
        x = given(model, dims)
        found, again = program(x), other(x)
        wanted = [np.asarray(y) for y in peer.run(None, dict(x))]
        for name, right in zip(found, wanted, strict=True):
            assert found[name].shape == right.shape, (name, dims)
            assert found[name].dtype == right.dtype, (name, dims)
            np.testing.assert_allclose(
                found[name], right, bound, bound, err_msg=str(dims)
            )
            np.testing.assert_array_equal(found[name], again[name], err_msg=str(dims))
        shapes = {name: array.shape for name, array in x.items()}
        assert program.open.bound(shapes, 1) is not None, (dims, program.open.reason)
        kernels = kernels or report.kernels
        made.append(dict(found))
    assert not program.open.reason
    assert report.kernels == kernels  # none behind the first call
    return made


def uniform(model: onnx.ModelProto, dims: Mapping[str, int]) -> Arrays:
    """Seeded floats from 0 to 1 for every input."""
    random = np.random.default_rng(sum(dims.values()))
    shapes = {
        x.name: [d.dim_value or dims[d.dim_param] for d in x.type.tensor_type.shape.dim]
        for x in model.graph.input
    }
    return {name: random.random(s, np.float32) for name, s in shapes.items()}
