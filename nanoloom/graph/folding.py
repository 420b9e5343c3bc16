"""Operators that ONNX's reference computes as nanoloom's own code does: it folds them.

A constant gives what the same numbers give as an input.  The reference is wrong for
some operators, types and attributes, and elsewhere rounds otherwise; a node that does
not fold by its row in `operator_specs.py` is computed by its own code (own_code.py).
"""

from __future__ import annotations

import ml_dtypes
import numpy as np
import onnx_ir as ir

from nanoloom.graph.operator_spec import EVERY
from nanoloom.graph.operator_specs import SPECS, named
from nanoloom.graph.own_evaluation import is_own

# The same numbers (a zero may have another sign): moved, compared, computed in
# integers, or rounded once.
EXACT = named(lambda spec: spec.folds == EVERY)
# The same up to the roundings that `verify` allows: weights that a model computes from
# weights, and tables of positions.  By element types of the first input.
ROUNDED = {x: SPECS[x].folds for x in named(lambda spec: bool(spec.folds)) - EXACT}


def agrees(node: ir.Node, opset: int) -> bool:
    """Whether a node of ONNX's domain, known from outside, may be computed.

    By the reference, or by what stands in `own_evaluation.py` in its place.  opset: of
    the model.
    """
    spec = SPECS.get(node.op_type)
    if spec is not None and (node.version or opset) < spec.folds_since:
        return False
    if node.op_type in EXACT or is_own(node):
        return True
    first = node.inputs[0] if node.inputs else None
    if first is None or first.dtype is None:
        return False
    return first.dtype.numpy().name in ROUNDED.get(node.op_type, ())


def is_defined(node: ir.Node) -> bool:
    """Whether ONNX says what a node gives for its constants.

    It does not for the conversion of a float that lies beyond the integers.
    """
    x, y = node.inputs[0] if node.inputs else None, node.outputs[0].dtype
    if node.op_type not in ("Cast", "CastLike") or y is None:
        return True
    if x is None or x.const_value is None or not y.is_integer():
        return True
    if not x.const_value.dtype.is_floating_point():
        return True
    limits = ml_dtypes.iinfo(y.numpy())
    whole = np.trunc(x.const_value.numpy().astype(np.float64))
    inside = (whole >= float(limits.min)) & (whole < float(limits.max) + 1)
    return bool(inside.all())
