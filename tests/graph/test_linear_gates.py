"""Gates of channels are factors of the filters that read the image."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import parser
from onnx_ir import serde

import nanoloom
from nanoloom.graph.stage import optimize
from nanoloom.linalg.operators import OPERATORS
from nanoloom.target import by_name

TEXT = """
<ir_version: 8, opset_import: ["" : 17]>
g (float[N, 6, 9, 7] x, float[N, 6, 1, 1] u, float[4, 6, 1, 1] v) =>
  (float[N, 4, 9, 7] y, float[N, 6, 9, 7] z)
<float[4, 6, 1, 1] w = WEIGHTS>
{
    g = Sigmoid(u)
    gated = Mul(ORDER)
    y = Conv(gated, FILTERS)
    z = Neg(OTHER)
}
"""
WEIGHTS = [((7 * i) % 11 - 5) / 8 for i in range(24)]


def written(batch: str, order: str, filters: str, other: str) -> str:
    weights = "{" + ", ".join(map(str, WEIGHTS)) + "}"
    text = TEXT.replace("WEIGHTS", weights).replace("ORDER", order)
    return (
        text.replace("FILTERS", filters)
        .replace("OTHER", other)
        .replace("[N", f"[{batch}")
    )


@pytest.mark.parametrize(
    ("batch", "order", "filters", "other", "moved"),
    [
        ("1", "x, g", "w", "x", True),
        ("1", "g, x", "w", "x", True),
        ("2", "x, g", "w", "x", False),  # a gate for each image of the batch
        ("1", "x, g", "v", "x", True),  # of filters that are computed, too
        ("1", "x, g", "w", "gated", False),  # somebody else reads it
    ],
)
def test_which_gates(
    batch: str, order: str, filters: str, other: str, moved: bool
) -> None:
    proto = parser.parse_model(written(batch, order, filters, other))
    model = serde.deserialize_model(proto)
    optimize(model, OPERATORS.keys(), by_name("x86-64-v3"))
    (product,) = (n for n in model.graph if n.op_type == "Conv")
    filter_maker = product.inputs[1]
    assert filter_maker is not None
    made = filter_maker.producer()
    assert (made is not None and made.op_type == "Mul") == moved


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("filters", ["w", "v"])
def test_numbers(filters: str, exact: bool) -> None:
    """Each product is rounded twice, and their sum six times: gamma of 8."""
    proto = parser.parse_model(written("1", "x, g", f"{filters}, b", "x").replace(
        "<float[4, 6, 1, 1] w", "<float[4] b = {1, 2, 3, 4}, float[4, 6, 1, 1] w"
    ))  # fmt: skip
    random = np.random.default_rng(3)
    x = random.standard_normal((1, 6, 9, 7), np.float32)
    u = random.standard_normal((1, 6, 1, 1), np.float32)
    v = np.reshape(np.array(WEIGHTS), (4, 6, 1, 1)).astype(np.float32)
    found = nanoloom.compile(proto, exact_conv=exact)({"x": x, "u": u, "v": v})["y"]
    w = np.reshape(np.array(WEIGHTS), (4, 6))
    gate = 1 / (1 + np.exp(-u.astype(float)))
    image = (x * gate)[0].reshape(6, -1)
    wanted = w @ image + np.arange(1, 5)[:, None]
    size = abs(w) @ abs(image) + np.arange(1, 5)[:, None]
    bound = 2**-23 * 12 * size  # of the sigmoid 4
    assert (abs(found[0].reshape(4, -1) - wanted) <= bound).all()
    assert abs(wanted).max() > 100 * bound.max(), "a wrong gate would be seen"
