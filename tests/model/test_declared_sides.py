"""What a program says of its inputs and outputs before it has run."""

from __future__ import annotations

from onnx import parser

import nanoloom
from nanoloom.cache import Cache

TEXT = """
<ir_version: 8, opset_import: ["": 17]>
g (float[?, n] x) => (float[?, 3, n] y, seq(float[?, n]) z) {
    y = Expand(x, s)
    z = SequenceConstruct(x, x)
    s = Constant<value = int64[3] {1, 3, 1}>()
}
"""


def test_sizes_without_a_name_are_called_after_their_axis() -> None:
    """They were all called None, as if they were one size."""
    program = nanoloom.compile(parser.parse_model(TEXT), cache=Cache.temporary())
    (x,), (y, z) = program.inputs, program.outputs
    assert (x.shape, y.shape) == (("x.0", "n"), ("y.0", 3, "n"))
    assert (z.holds, z.dtype.name) == ("list", "float32")
    assert "None" not in repr(program)
