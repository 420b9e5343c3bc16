"""The binary layers' benchmark: what its models are, and its arithmetic."""

from __future__ import annotations

import onnx

from benchmarks.binary import BINARY, BYTES, Record, binary_layers, byte_layers, sheet
from nanoloom.graph.binary_products import DOMAIN as BITS
from nanoloom.graph.quantization import DOMAIN as INTEGER
from tests.graph.models import optimized


def test_all_layers_are_of_bits_or_of_bytes() -> None:
    binary, bytes_ = binary_layers(16, 5, 3), byte_layers(16, 5, 3)
    for model in (binary, bytes_):
        onnx.checker.check_model(model, full_check=True)
    made = [(n.domain, n.op_type) for n in optimized(binary)]
    assert made.count((BITS, "BitConvolution")) == 3
    assert "Conv" not in [op for _, op in made]
    made = [(n.domain, n.op_type) for n in optimized(bytes_)]
    assert made.count((INTEGER, "Convolution")) == 3


def test_a_layer_of_half_the_time_is_twice_as_fast() -> None:
    record = Record(64, 56, {BINARY: 0.001, BYTES: 0.002})
    assert record.ratio == 2
    assert record.products == 64 * 64 * 9 * 56 * 56
    (row,) = sheet([record], 1).rows
    assert row == ("64 x 56 x 56", "1.000", "2.000", "116", "2.00")
