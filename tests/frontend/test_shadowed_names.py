"""A body's input may have the name of a value around it, as other runtimes allow."""

from __future__ import annotations

import numpy as np
import onnx.parser

import nanoloom
from tests.vector.kernel_harness import shared_cache


def test_inputs_of_a_body_may_hide_outer_values() -> None:
    """The inner one is read inside, in its own bodies too, the outer one outside."""
    model = onnx.parser.parse_model("""<ir_version: 10, opset_import: ["": 21]>
    g (float[2] b, float[2] c, bool k) => (float[2] y, float[n, 2] s, float[2] d) {
      trips = Constant<value_int = 3>()
      y, s = Loop(trips, k, b) < body = step (int64 i, bool k, float[2] b)
        => (bool m, float[2] h, float[2] b)
        { m = Identity(k)
          h = If(k) <
            then_branch = t () => (float[2] u) { u = Add(b, c) },
            else_branch = e () => (float[2] v) { v = Identity(b) }> }>
      d = Sub(y, b) }""")
    b, c = np.array([1, 2], np.float32), np.array([3, -1], np.float32)
    for go in (True, False):
        feeds = {"b": b, "c": c, "k": np.array(go)}
        made = nanoloom.compile(model, cache=shared_cache())(feeds)
        trips = 3 if go else 0
        assert (made["y"] == b + trips * c).all() and (made["d"] == trips * c).all()
        rows = [(b + i * c).tolist() for i in range(trips)]
        assert made["s"].tolist() == rows and made["s"].shape == (trips, 2)
