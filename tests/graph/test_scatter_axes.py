"""ScatterND between transposes writes along the axes that its indices are of."""

from __future__ import annotations

import json
import random

import numpy as np
import onnx_ir as ir
import pytest
from onnx.parser import parse_model
from onnx.reference import ReferenceEvaluator

import nanoloom
from nanoloom.graph.stage import optimize
from nanoloom.linalg.operators import OPERATORS

SHAPE = (3, 4, 5, 2)


def drawn(seed: int, *, back: bool = True) -> tuple[str, dict[str, np.ndarray]]:
    """A scatter along axes in any order, of indices that may be [n, k] or [m, n, k].

    back: whether the transpose behind it is the inverse of the one in front.
    """
    draw, r = random.Random(seed), np.random.default_rng(seed)
    order = draw.sample(range(4), 4)
    depth, outer = draw.randint(1, 3), draw.choice([(2,), (1,), (2, 3)])
    turned = [SHAPE[d] for d in order]
    behind = [order.index(d) for d in range(4)]
    if not back:
        behind = behind[::-1]
    how = draw.choice(["none", "add", "max"])
    limits = np.array(turned[:depth])
    feeds = {
        "x": r.integers(-9, 9, SHAPE).astype(np.float32),
        "i": r.integers(-limits, limits, (*outer, depth)),
        "u": r.integers(-9, 9, (*outer, *turned[depth:])).astype(np.float32),
    }
    kinds = {n: f"[{','.join(map(str, a.shape))}]" for n, a in feeds.items()}
    made = [turned[d] for d in behind]
    text = f"""<ir_version: 10, opset_import: ["" : 20]>
    g (float{kinds["x"]} x, int64{kinds["i"]} i, float{kinds["u"]} u)
      => (float[{",".join(map(str, made))}] y)
    {{
      t = Transpose<perm = {order}>(x)
      s = ScatterND<reduction = "{how}">(t, i, u)
      y = Transpose<perm = {behind}>(s)
    }}"""
    return text, feeds


def operators(text: str) -> list[str]:
    model = optimize(ir.from_proto(parse_model(text)), OPERATORS.keys())
    return [node.op_type for node in model.graph]


@pytest.mark.parametrize("seed", range(6))
def test_drawn_axes(seed: int) -> None:
    text, feeds = drawn(seed)
    assert "ScatterND" in (found := operators(text))
    order = json.loads(text.split("perm = ")[1].split(">")[0])
    assert found.count("Transpose") <= (order != sorted(order))  # of the updates
    model = parse_model(text)
    (wanted,) = ReferenceEvaluator(model).run(None, feeds)
    np.testing.assert_array_equal(nanoloom.compile(model)(feeds)["y"], wanted)


def test_another_transpose_behind_stays() -> None:
    text, _ = drawn(1, back=False)
    assert operators(text).count("Transpose") == 2
