"""Operations whose numbers become operands, as sizes that are known at run time are."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from nanoloom.dynamic.polynomial import Size
from nanoloom.ir.mlir import ir, tensor

DYNAMIC = ir.ShapedType.get_dynamic_size()
# Attributes of numbers that may be sizes.
ARRAYS = ("static_output_shape", "static_offsets", "static_sizes", "static_strides")
EMPTY = "static_sizes"  # for tensor.empty, which has none: its shape
Value = Callable[[Size], ir.Value]


def remade(
    op: ir.Operation, kind: ir.Type, arrays: Mapping[str, tuple[Size, ...]], of: Value
) -> None:
    """Put an operation with sizes as operands in the place of one with numbers.

    kind: of its result.  arrays: its ARRAYS.  of: the value of a size.
    """
    head = {"tensor.empty": 0, "tensor.insert_slice": 2}.get(op.name, 1)
    rest = iter(list(op.operands)[head:])
    values: list[list[ir.Value]] = []
    numbers: list[list[int]] = []
    for sizes in arrays.values():
        mixed = [next(rest) if s.number == DYNAMIC else value_of(s, of) for s in sizes]
        values.append([v for v in mixed if isinstance(v, ir.Value)])
        numbers.append([DYNAMIC if isinstance(v, ir.Value) else v for v in mixed])
    sources = list(op.operands)[:head]
    with ir.InsertionPoint(op), op.location:
        match op.name:
            case "tensor.empty":
                shape = [of(s) if s.number is None else s.number for s in arrays[EMPTY]]
                element = ir.RankedTensorType(kind).element_type
                made: ir.Value = tensor.empty(shape, element)
            case "tensor.expand_shape":
                pairs = op.attributes["reassociation"]
                made = tensor.expand_shape(
                    kind, sources[0], pairs, values[0], numbers[0]
                )
            case "tensor.extract_slice":
                made = tensor.extract_slice(kind, *sources, *values, *numbers)
            case _:
                made = tensor.insert_slice(*sources, *values, *numbers)
    op.results[0].replace_all_uses_with(made)
    op.erase()


def value_of(size: Size, of: Value) -> ir.Value | int:
    return of(size) if size.number is None else size.number
