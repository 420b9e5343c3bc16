"""Attributes that name one of a few ways: one that ONNX does not know is refused.

What stands here would otherwise be taken for another of the ways in silence, or make
ONNX's inference give up on the node.
"""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from nanoloom.errors import ModelError

PADDING = ("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID")
DIRECTION = ("forward", "reverse", "bidirectional")
WORDS: dict[str, dict[str, tuple[str, ...]]] = {
    "BitShift": {"direction": ("LEFT", "RIGHT")},
    "ConvTranspose": {"auto_pad": PADDING},
    "DepthToSpace": {"mode": ("DCR", "CRD")},
    "GRU": {"direction": DIRECTION},
    "LSTM": {"direction": DIRECTION},
    "RNN": {"direction": DIRECTION},
    "RoiAlign": {
        "coordinate_transformation_mode": ("half_pixel", "output_half_pixel"),
        "mode": ("avg", "max"),
    },
    "TensorScatter": {"mode": ("linear", "circular")},
}
# What is 0 or 1; other numbers are read otherwise here than in ONNX's inference.
FLAGS = (
    "ceil_mode", "keepdims", "layout", "noop_with_empty_axes", "onesided", "periodic",
)  # fmt: skip
# Places of dimensions, of which ONNX's inference sees the lower 32 bits.
AXES = ("axes", "axis", "batch_axis", "batch_dims", "perm", "time_axis")
MOST = 2**31


def require_known(node: ir.Node) -> None:
    """Raise ModelError for an attribute that is none of the ways it may name."""
    if node.domain not in ("", "ai.onnx"):
        return
    for name, known in WORDS.get(node.op_type, {}).items():
        given = node.attributes.get(name)
        if given is not None and given.as_string() not in known:
            raise invalid(node, name, repr(given.as_string()), " or ".join(known))
    for name, given in node.attributes.items():
        if name in FLAGS and given.as_int() not in (0, 1):
            raise invalid(node, name, str(given.as_int()), "0 or 1")
        for number in numbers(given) if name in AXES else ():
            if not -MOST <= number < MOST:
                raise invalid(node, name, str(number), "places of dimensions")


def numbers(given: ir.Attr) -> Sequence[int]:
    """What an attribute holds, one integer or several."""
    return (given.as_int(),) if given.type == ir.AttributeType.INT else given.as_ints()


def invalid(node: ir.Node, name: str, given: str, expected: str) -> ModelError:
    return ModelError(
        f"its {name} is {given}, expected {expected}",
        where=f"node {node.name} ({node.op_type})",
    )
