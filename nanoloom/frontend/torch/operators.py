"""The operators of torch that are imported with their meaning, by name.

All overloads of a name are one function: arguments are told apart by the names that
the schema gives them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nanoloom.frontend.torch import (
    activations,
    bit_shifts,
    comparisons,
    creation,
    elementwise,
    grouped_products,
    indexing,
    masks,
    movement,
    normalizations,
    products,
    quantized,
    quotients,
    recurrences,
    reductions,
    resizing,
    slice_writes,
    special,
    strided,
    windows,
)
from nanoloom.frontend.torch.call import Call

Operator = Callable[[Call], Any]
FAMILIES = (
    elementwise, quotients, bit_shifts, comparisons, special, activations, movement,
    slice_writes, strided, indexing, masks, creation, reductions, products, windows,
    resizing, normalizations, recurrences,
)  # fmt: skip
OPERATORS: dict[str, Operator] = {
    name: function for family in FAMILIES for name, function in family.OPERATORS.items()
}
NAMESPACES = {
    "aten": OPERATORS, "quantized_decomposed": quantized.OPERATORS,
    "transformers": grouped_products.OPERATORS,
}  # fmt: skip


def operator_for(target: Any) -> Operator | None:
    """The function of an overload; None for one that is not known here."""
    namespace, _, name = getattr(target, "name", str)().partition("::")
    return NAMESPACES.get(namespace, {}).get(name.partition(".")[0])
