"""All recipes by operator."""

from __future__ import annotations

import onnx

from tests.fuzz.recipes import (
    classical,
    elementwise,
    indexing,
    normalizing,
    products,
    reducing,
    sequences,
    shaping,
    windows,
)
from tests.fuzz.words import Recipe

RECIPES: dict[str, Recipe] = {
    **classical.RECIPES,
    **elementwise.RECIPES,
    **indexing.RECIPES,
    **normalizing.RECIPES,
    **products.RECIPES,
    **reducing.RECIPES,
    **sequences.RECIPES,
    **shaping.RECIPES,
    **windows.RECIPES,
}


def is_known(name: str, opset: int) -> bool:
    """Whether an operator set has the operator."""
    domain, _, op = name.rpartition(".")
    if domain:
        return True
    try:
        schema = onnx.defs.get_schema(op, opset)
    except onnx.defs.SchemaError:
        return False
    return not schema.deprecated
