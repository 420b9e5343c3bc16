"""LSTM, GRU and RNN over rows that data choose: one program, whatever they are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import nanoloom
from nanoloom.cache import Cache

HIDDEN, FEATURES = 3, 4
GATES = {"GRU": 3, "LSTM": 4, "RNN": 1}
WAYS = {"forward": 1, "reverse": 1, "bidirectional": 2}


def weights(op: str, ways: int) -> list[onnx.TensorProto]:
    random = np.random.default_rng(ways)
    return [
        numpy_helper.from_array(
            random.standard_normal((ways, GATES[op] * HIDDEN, n), np.float32), name
        )
        for name, n in (("w", FEATURES), ("r", HIDDEN))
    ]


def model(op: str, direction: str, chosen: bool) -> onnx.ModelProto:
    """A recurrence over the chosen rows of x, or over all of x."""
    ways = WAYS[direction]
    kind = onnx.TensorProto.FLOAT
    nodes = [
        helper.make_node("Compress", ["x", "where"], ["rows"], axis=0),
        helper.make_node(
            op, ["rows", "w", "r"], ["y", "last"], hidden_size=HIDDEN,
            direction=direction,
        ),
    ]  # fmt: skip
    given = [helper.make_tensor_value_info("x", kind, ["n", "b", FEATURES])]
    if chosen:
        truth = onnx.TensorProto.BOOL
        given.append(helper.make_tensor_value_info("where", truth, ["n"]))
    else:
        nodes = nodes[1:]
        nodes[0].input[0] = "x"
    made = [
        helper.make_tensor_value_info("y", kind, [None, ways, None, HIDDEN]),
        helper.make_tensor_value_info("last", kind, [ways, None, HIDDEN]),
    ]
    graph = helper.make_graph(nodes, "chosen", given, made, weights(op, ways))
    opsets = [helper.make_opsetid("", 20)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


@pytest.mark.drawn
@pytest.mark.parametrize("direction", WAYS)
@pytest.mark.parametrize("op", GATES)
def test_chosen_rows(tmp_path: Path, op: str, direction: str) -> None:
    cache, random = Cache(tmp_path), np.random.default_rng(len(op + direction))
    program, plain = (
        nanoloom.compile(model(op, direction, chosen), threads=1, cache=cache)
        for chosen in (True, False)
    )
    for n, b, share in ((7, 2, 0.5), (1, 1, 1.0), (20, 3, 0.3), (6, 1, 0.0)):
        x = random.standard_normal((n, b, FEATURES)).astype(np.float32)
        where = random.random(n) < share
        got = program({"x": x, "where": where})
        shapes = {"x": x.shape, "where": where.shape}
        assert program.open.bound(shapes, 1) is not None
        assert got["y"].shape == (where.sum(), WAYS[direction], b, HIDDEN)
        if not where.any():
            assert not got["last"].any()
            continue
        right = plain({"x": x[where]})
        for name in ("y", "last"):
            # The same numbers, in products of other shapes: sums in another order.
            bound = 32 * 2.0**-24 * n
            assert abs(got[name] - right[name]).max() <= bound
            assert abs(right[name]).max() > 2 * bound
