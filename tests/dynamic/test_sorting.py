"""Sorting of rows whose length is known at run time: one program for all of them."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

import nanoloom

HEAD = '<ir_version: 9, opset_import: ["" : 18]>\n'
CASES = [
    f"m (float[b, n] x) => (float[b, {k}] v, int64[b, {k}] i)\n"
    f"<int64[1] k = {{{k}}}> {{ v, i = TopK(x, k) }}"
    for k in (3, 100)
]
WHOLE = """m (float[n] x) => (float[k] v, int64[k] i, float[u] y, int64[u] f) {
    s = Shape(x) v, i = TopK(x, s) y, f = Unique(x) }"""


@pytest.mark.parametrize("text", CASES)
def test_the_first_ones(text: str) -> None:
    """Taken one after the other, or collected where they are many of a row."""
    program = nanoloom.compile(onnx.parser.parse_model(HEAD + text))
    random = np.random.default_rng(1)
    for batch, extent in ((1, 100), (4, 128), (3, 20_011), (2, 463)):
        x = np.round(random.standard_normal((batch, extent)) * 99).astype(np.float32)
        found = program({"x": x})
        count = found["i"].shape[1]
        right = np.argsort(-x, kind="stable")[:, :count]
        np.testing.assert_array_equal(found["i"], right)
        np.testing.assert_array_equal(found["v"], np.take_along_axis(x, right, 1))
    assert program.open is not None
    assert not program.open.reason


def test_all() -> None:
    program = nanoloom.compile(onnx.parser.parse_model(HEAD + WHOLE))
    random = np.random.default_rng(2)
    for extent in (1, 2, 63, 65, 300, 50_021):
        x = np.round(random.standard_normal(extent) * 50).astype(np.float32)
        found = program({"x": x})
        values, first = np.unique(x, return_index=True)
        np.testing.assert_array_equal(found["i"], np.argsort(-x, kind="stable"))
        np.testing.assert_array_equal(found["y"], values)
        np.testing.assert_array_equal(found["f"], first)
    assert program.open is not None
    assert not program.open.reason
