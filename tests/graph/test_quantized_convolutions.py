"""Quantized convolutions run in integers, and every step is that of real numbers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import nanoloom
from nanoloom.errors import ModelError
from nanoloom.graph.quantization import DOMAIN
from tests.graph.models import operators, optimized
from tests.linalg.bounds import sample

ONES, FEW = ",".join(["1"] * 108), ",".join(["1"] * 16)


@dataclass(frozen=True)
class Case:
    """x [n, c, ...] with filters [f, c / group, ...], padded by 1 on both sides."""

    x: tuple[int, ...] = (2, 5, 9, 11)
    w: tuple[int, ...] = (7, 5, 3, 3)
    left: str = "uint8"
    right: str = "int8"
    each: bool = True
    out: str = "uint8"
    relu: bool = False
    group: int = 1
    stride: int = 1
    dilation: int = 1

    @property
    def rank(self) -> int:
        return len(self.x) - 2


CASES = [
    Case(),
    Case(left="int8", right="uint8", each=False, out="int8"),
    Case(relu=True, stride=2, w=(33, 5, 3, 3)),
    Case(x=(1, 12, 8, 7), w=(12, 1, 3, 3), group=12),
    Case(x=(1, 12, 8, 7), w=(18, 4, 3, 3), group=3, dilation=2),
    Case(x=(1, 3, 17, 19), w=(16, 3, 7, 7), stride=2, out="int8"),
    Case(x=(1, 70, 5, 6), w=(40, 70, 1, 1)),
    Case(x=(2, 6, 21), w=(9, 6, 5)),
    Case(x=(1, 4, 5, 6, 7), w=(5, 4, 3, 2, 1), out=""),
]


def arrays(case: Case) -> dict[str, np.ndarray]:
    """Stored integers, scales and zero points, all of them odd numbers."""
    f, depth = case.w[0], float(np.prod(case.w[1:]))
    each = (f,) if case.each else ()
    x_scale, w_scale = (
        sample(s, d, "float32", 0.01, 0.03) for s, d in ((1, ()), (2, each))
    )
    return {
        "x": sample(3, case.x, case.left, -128, 255),
        "x_scale": x_scale,
        "x_zero": sample(4, (), case.left, -90, 200),
        "w": sample(5, case.w, case.right, -128, 255),
        "w_scale": w_scale,
        "w_zero": np.zeros(each, case.right),
        "b": sample(6, (f,), "int32", -3000, 3000),
        "b_scale": (x_scale * w_scale).astype(np.float32),
        "b_zero": np.zeros(each, np.int32),
        "y_scale": np.asarray(0.04 * depth**0.5, np.float32),
        "y_zero": sample(7, (), case.out or "uint8", -9, 99),
    }


def model(case: Case, t: dict[str, np.ndarray]) -> onnx.ModelProto:
    """As quantizers write it: all operands through DequantizeLinear."""
    window = {
        "group": case.group, "strides": [case.stride] * case.rank,
        "pads": [1] * 2 * case.rank, "dilations": [case.dilation] * case.rank,
    }  # fmt: skip
    scaled = [(n, {"axis": 0} if case.each and n != "x" else {}) for n in "xwb"]
    nodes = [
        helper.make_node(
            "DequantizeLinear", [n, f"{n}_scale", f"{n}_zero"], [f"{n}_real"], n, **how
        )
        for n, how in scaled
    ]
    reals = ["x_real", "w_real", "b_real"]
    last = "made"
    nodes.append(helper.make_node("Conv", reals, [last], "conv", **window))
    if case.relu:
        nodes.append(helper.make_node("Relu", [last], ["positive"], "relu"))
        last = "positive"
    if case.out:
        given = [last, "y_scale", "y_zero"]
        nodes.append(helper.make_node("QuantizeLinear", given, ["y"], "quantize"))
        last = "y"
    kind = helper.np_dtype_to_tensor_dtype(t["x"].dtype)
    graph = helper.make_graph(
        nodes, "convolution",
        [helper.make_tensor_value_info("x", kind, list(case.x))],
        [onnx.ValueInfoProto(name=last)],
        [numpy_helper.from_array(a, n) for n, a in t.items() if n != "x"],
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])


def exact(case: Case, t: dict[str, np.ndarray]) -> np.ndarray:
    """In integers, then float64."""
    x = t["x"].astype(np.int64) - t["x_zero"]
    w = t["w"].astype(np.int64)
    x = np.pad(x, [(0, 0), (0, 0), *[(1, 1)] * case.rank])
    spans = [(k - 1) * case.dilation + 1 for k in case.w[2:]]
    axes = tuple(range(2, 2 + case.rank))
    seen = np.lib.stride_tricks.sliding_window_view(x, spans, axes)
    seen = seen[(slice(None),) * 2 + (slice(None, None, case.stride),) * case.rank]
    seen = seen[(...,) + (slice(None, None, case.dilation),) * case.rank]
    part = case.w[1]
    made: list[np.ndarray] = []
    for f in range(case.w[0]):
        first = f // (case.w[0] // case.group) * part
        over = (1, *range(2 + case.rank, 2 + 2 * case.rank))
        mine = seen[:, first : first + part]
        lined = w[f].reshape(1, part, *(1,) * case.rank, *case.w[2:])
        made.append((mine * lined).sum(over))
    sums = np.stack(made, 1)

    def spread(array: np.ndarray) -> np.ndarray:
        return array.astype(np.float64).reshape(-1, *(1,) * case.rank)

    value = (sums + spread(t["b"])) * (spread(t["x_scale"]) * spread(t["w_scale"]))
    value = np.maximum(value, 0) if case.relu else value
    if not case.out:
        return value
    ends = np.iinfo(case.out)
    steps = np.rint(value / float(t["y_scale"])) + t["y_zero"]
    return np.clip(steps, ends.min, ends.max)


@pytest.mark.drawn(one_in=2)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_convolutions_are_exact(case: Case) -> None:
    t = arrays(case)
    proto = model(case, t)
    assert DOMAIN in [n.domain for n in optimized(proto) if n.op_type == "Convolution"]
    for threads in (1, 2):
        (got,) = nanoloom.compile(proto, threads=threads)({"x": t["x"]}).values()
        right = exact(case, t)
        if case.out:
            np.testing.assert_array_equal(got, right)
            assert len(np.unique(got)) > 20
        else:
            np.testing.assert_allclose(got, right, rtol=3e-7, atol=1e-5)
        changed = {**t, "x_zero": t["x_zero"] + t["x_zero"].dtype.type(1)}
        assert (abs(got - exact(case, changed)) > (0.5 if case.out else 1e-3)).any()


def test_a_scale_of_zero_stays_in_floats() -> None:
    t = arrays(CASES[0])
    t["w_scale"] = np.where(np.arange(len(t["w"])) == 3, np.float32(0), t["w_scale"])
    assert "Convolution" not in [n.op_type for n in optimized(model(CASES[0], t))]


def test_offsets_and_zero_points_are_one_addition() -> None:
    t = arrays(CASES[0])
    assert t["x_zero"] and t["b"].any()
    program = nanoloom.compile(model(CASES[0], t))
    (nest,) = (n for k, n in program.nests().items() if k.startswith("contraction"))
    assert [s.name for s in nest.stages if s.name.startswith("point")] == ["point"]


def test_bytes_lie_between_convolutions() -> None:
    """Turned to channels last once, and back once; pools of the bytes themselves."""
    graph = optimized(f"""g (uint8[1,3,9,9] x) => (uint8[1,4,4,4] y)
        <float s = {{0.5}}, uint8 z = {{3}}, int8[4,3,3,3] w = {{{ONES}}},
         int8[4,4,1,1] v = {{{FEW}}}> {{
            d = DequantizeLinear (x, s, z)
            e = DequantizeLinear (w, s)
            a = Conv (d, e)
            b = Relu (a)
            q = QuantizeLinear (b, s, z)
            r = DequantizeLinear (q, s, z)
            p = MaxPool <kernel_shape=[2,2], strides=[2,2], pads=[0,0,1,1]> (r)
            o = QuantizeLinear (p, s, z)
            f = DequantizeLinear (v, s)
            t = DequantizeLinear (o, s, z)
            c = Conv (t, f)
            y = QuantizeLinear (c, s, z)
        }}""")
    assert operators(graph) == [
        "Transpose", "Convolution", "MaxPool", "Convolution", "Transpose",
    ]  # fmt: skip
    assert {n.domain for n in graph if n.op_type == "Convolution"} == {DOMAIN}


def other(name: str, array: np.ndarray) -> Any:
    return lambda t: {**t, name: array}


@pytest.mark.parametrize(
    "change",
    [
        other("w_scale", np.full(5, 0.1, np.float32)),
        other("b", np.zeros(6, np.int32)),
        other("w", np.zeros((7, 4, 3, 3), np.int8)),
    ],
    ids=["scales", "bias", "channels"],
)
def test_what_does_not_fit_is_refused(change: Any) -> None:
    case = replace(Case(), each=True)
    with pytest.raises(ModelError):
        nanoloom.compile(model(case, change(arrays(case))))


def test_weights_that_are_inputs_stay_float() -> None:
    case = Case()
    t = arrays(case)
    proto = model(case, t)
    held = next(x for x in proto.graph.initializer if x.name == "w")
    proto.graph.initializer.remove(held)
    given = helper.make_tensor_value_info("w", held.data_type, list(case.w))
    proto.graph.input.append(given)
    assert not [n for n in optimized(proto) if n.domain == DOMAIN]
