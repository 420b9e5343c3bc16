"""Elementwise bodies: what they read, and how often."""

from __future__ import annotations

import numpy as np
from onnx import parser

import nanoloom


def test_doubled_again_and_again() -> None:
    """x + x reads x once: as two operands, each doubling would double the code."""
    doubled = "".join(f"x{i + 1} = Add(x{i}, x{i})\n" for i in range(24))
    text = f"""<ir_version: 8, opset_import: ["": 17]>
    g (float[2, 3] x0) => (float[2, 3] x24) {{ {doubled} }}"""
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    program = nanoloom.compile(parser.parse_model(text), threads=1)
    assert np.array_equal(program({"x0": x})["x24"], x * 2**24)
