"""How an operator set writes a node that newer ones write otherwise.

Much that was an attribute became an input (axes, pads, k, split ...), and attributes
were added.  Recipes write nodes as the newest set does; what an older set can say of
that is the same node in its words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx

Array = np.ndarray[Any, np.dtype[Any]]
# Inputs that were attributes of another name, by operator and formal name.
RENAMED = {("Pad", "constant_value"): "value", ("TopK", "K"): "k"}


class Unspoken(Exception):
    """What the operator set has no words for."""


def spelled(
    op: str,
    opset: int,
    inputs: Sequence[str],
    attributes: Mapping[str, Any],
    values: Mapping[str, Array],
) -> tuple[list[str], dict[str, Any]]:
    """The inputs and attributes in the words of an operator set of ONNX.

    values: of the inputs, which become attributes where the set has these.  Attributes
    that the set lacks are left out: the node is then another one, and as good.  Raises
    Unspoken for inputs that it has no place for.
    """
    own, newest = onnx.defs.get_schema(op, opset), onnx.defs.get_schema(op)
    known = {k: v for k, v in attributes.items() if k in own.attributes}
    formals = [x.name for x in newest.inputs]
    if own.since_version == newest.since_version or is_variadic(newest):
        return list(inputs), known
    places = [x.name for x in own.inputs]
    made = [""] * len(places)
    single = onnx.defs.OpSchema.FormalParameterOption.Single
    for name, formal in zip(inputs, formals, strict=False):
        attribute = RENAMED.get((op, formal), formal)
        if not name:
            continue
        if formal in places:
            made[places.index(formal)] = name
        elif attribute in own.attributes:
            known[attribute] = values[name].tolist()
            if values[name].ndim and is_single(own.attributes[attribute]):
                (known[attribute],) = known[attribute]
        elif (at := formals.index(formal)) < len(places) and places[at] not in formals:
            made[at] = name
        else:
            raise Unspoken(f"{op}: {formal} in operator set {opset}")
    for name, own_formal in zip(made, own.inputs, strict=True):
        if not name and own_formal.option == single:
            raise Unspoken(f"{op} without {own_formal.name} in operator set {opset}")
    return made, known


def is_variadic(schema: onnx.defs.OpSchema) -> bool:
    variadic = onnx.defs.OpSchema.FormalParameterOption.Variadic
    return bool(schema.inputs) and schema.inputs[-1].option == variadic


def is_single(attribute: onnx.defs.OpSchema.Attribute) -> bool:
    kinds = onnx.defs.OpSchema.AttrType
    return attribute.type in (kinds.INT, kinds.FLOAT)
