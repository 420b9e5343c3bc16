"""What a model says of its inputs and outputs, as JSON takes it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from nanoloom.interface.size_conditions import KEY, require_conditions

if TYPE_CHECKING:  # a second to import, and a compiled model runs without it
    import onnx_ir as ir

    from nanoloom.frontend.inputs import InputSpec

TEXT = "string"  # in place of an element type
Row: TypeAlias = "tuple[str, Sequence[int | str], str]"  # name, shape, element type
# Of the code's inputs, of outputs; then the model's strings, what steps before the code
# take, the steps, and conditions on sizes.
Side: TypeAlias = "Sequence[Row]"
Sides: TypeAlias = "tuple[Side, Side, Sequence[str], Side, Sequence[Any], str]"


def spec_row(x: InputSpec, is_text: bool) -> Row:
    return x.name, list(x.shape), TEXT if is_text else x.dtype.name


def describe(model: ir.Model) -> Sides:
    """Inputs and outputs as JSON takes them, and the model's strings if it has any."""
    from nanoloom.frontend.inputs import input_specs
    from nanoloom.frontend.list_inputs import holds, row_of
    from nanoloom.frontend.string_encoding import TEXTS
    from nanoloom.frontend.symbolic_dims import name_of
    from nanoloom.frontend.text_steps.take_apart import STEPS

    texts = {
        x.name for x in (*model.graph.inputs, *model.graph.outputs) if TEXTS in x.meta
    }
    lists = {x.name: row for x in model.graph.inputs if (row := row_of(x))}
    specs = {x.name: x for x in input_specs(model, but=lists)}
    inputs = [
        lists.get(x.name) or spec_row(specs[str(x.name)], x.name in texts)
        for x in model.graph.inputs
    ]
    outputs = [
        (
            value.name or "",
            [
                d if isinstance(d, int) else name_of(d) or f"{value.name}.{axis}"
                for axis, d in enumerate(value.shape or ())
            ],
            f"{holds(value)} {element(value, texts)}".lstrip(),
        )
        for value in model.graph.outputs
    ]
    stepped: Mapping[str, Any] = model.meta.get(STEPS, {})
    own = stepped.get("declared", ()), stepped.get("steps", ())
    if conditions := model.metadata_props.get(KEY, ""):
        require_conditions(conditions, {name: len(shape) for name, shape, _ in inputs})
    return inputs, outputs, model.meta.get(TEXTS, ()), *own, conditions


def element(value: ir.Value, texts: Collection[str | None]) -> str:
    """The element type of an output, or of the arrays in it."""
    if value.name in texts:
        return TEXT
    return np.dtype(value.dtype.numpy()).name if value.dtype else "float32"
