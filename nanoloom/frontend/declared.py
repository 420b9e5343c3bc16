"""What a model declares of its values beside what their nodes make of them.

Element types are laws; shapes are hints: exporters write those of one example, or one
name for two sizes.  What is inferred counts, and what contradicts it is told once.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field

import onnx_ir as ir

from nanoloom.errors import ModelWarning

CONTRADICTIONS = "nanoloom.contradictions"  # of a model and all that is bound of it
AS_WRITTEN = "nanoloom.declared"  # of a value: its shape with the names in it
LISTED = 3  # in a warning


@dataclass
class Contradictions:
    """found: of each value with another shape than declared, the words for it."""

    found: dict[str, str] = field(default_factory=dict[str, str])
    told: bool = False

    def note(
        self, values: Sequence[ir.Value], declared: Sequence[ir.Shape | None]
    ) -> None:
        """Compare what values are by now with what was declared of them."""
        for value, given in zip(values, declared, strict=True):
            made = value.shape
            if given is None or not value.name or made is None or not made.is_static():
                continue
            written = value.meta.get(AS_WRITTEN) or given
            said = "[" + ", ".join(map(dimension, written)) + "]"
            if len(given) != len(made):
                words = f"{said}, it has {len(made)} dimensions"
            elif wrong := [
                str(axis)
                for axis, (d, size) in enumerate(zip(given, made, strict=True))
                if isinstance(d, int) and d != size
            ]:
                plural = "es" if len(wrong) > 1 else "is"
                words = f"{said}, it has another size on ax{plural} {', '.join(wrong)}"
            else:
                continue
            self.found.setdefault(value.name, words)

    def tell(self) -> None:
        """Warn of what was found, the first time that anything was."""
        if self.told or not self.found:
            return
        self.told = True
        first = list(self.found.items())[:LISTED]
        more = len(self.found) - len(first)
        words = "; ".join(f"{name} is declared as {said}" for name, said in first)
        rest = f"; and {more} more (nanoloom check lists them)" if more else ""
        text = f"shapes that the model declares are not what its nodes give: {words}"
        warnings.warn(text + rest, ModelWarning, stacklevel=2)


def dimension(d: int | ir.SymbolicDim) -> str:
    return str(d if isinstance(d, int) else d.value or "?")


def hold_weights(model: ir.Model) -> None:
    """Give weights their tensors' shapes, whatever is declared of them.

    They may be declared as outputs of the graph, or as inputs that they are the default
    of.
    """
    found = contradictions_of(model)
    for graph in model.graphs():
        for value in graph.initializers.values():
            if value.const_value is not None:
                declared = value.shape
                value.shape = ir.Shape(value.const_value.shape.numpy())
                found.note([value], [declared])


def contradictions_of(model: ir.Model) -> Contradictions:
    """Those of a model and of what is bound of it, kept with it."""
    return model.meta.setdefault(CONTRADICTIONS, Contradictions())
