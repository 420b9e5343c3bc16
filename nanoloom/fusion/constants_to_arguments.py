"""Numbers in which alike kernels differ become arguments, and the kernels one.

    x * 0.03, x * 0.07   ->   kernel(x, numbers): x * numbers[0]

The layers of a quantized model are alike but for their scales and zero points.  What
an operation computes stays the same; a number that all of them share stays in the text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nanoloom.ir.linalg_query import Kind, is_lanewise, kind
from nanoloom.ir.mlir import arith, ir, named, tensor

DTYPES = {"f32": np.float32, "f64": np.float64, "i32": np.int32}

# Operations that cost the same beside a variable.  Divisions of integers do not, nor do
# powers; integers wider than these count places.
READERS = frozenset(
    [f"arith.{name}f" for name in ("add", "sub", "mul", "div", "cmp")]
    + [f"arith.{name}i" for name in ("add", "sub", "mul")]
    + ["arith.maxsi", "arith.minsi", "arith.select", "math.fma"]
)


def constants_of(module: ir.Module) -> list[ir.Operation]:
    """The constants of an outlined kernel that may become arguments, in order."""
    return [
        op.operation
        for op in named(module, "arith.constant")
        if str(op.operation.results[0].type) in DTYPES
        and all(is_reader(use.owner.operation) for use in op.operation.results[0].uses)
    ]


def is_reader(op: ir.Operation) -> bool:
    """Whether an operation of an elementwise body reads a variable as well."""
    parent = op.parent
    if op.name not in READERS or parent is None:
        return False
    around = parent.operation.opview
    return kind(around) is Kind.ELEMENTWISE and is_lanewise(around)


def values_of(numbers: Sequence[ir.Operation]) -> tuple[ir.Attribute, ...]:
    return tuple(op.attributes["value"] for op in numbers)


def erase_values(numbers: Sequence[ir.Operation]) -> None:
    """What is left of alike kernels is equal."""
    for op in numbers:
        element = op.results[0].type
        whole = isinstance(element, ir.IntegerType)
        zero = ir.IntegerAttr.get(element, 0) if whole else ir.FloatAttr.get(element, 0)
        op.attributes["value"] = zero


def set_values(numbers: Sequence[ir.Operation], values: Sequence[ir.Attribute]) -> None:
    """What `erase_values` erased, again."""
    for op, value in zip(numbers, values, strict=True):
        op.attributes["value"] = value


@dataclass(frozen=True)
class Arguments:
    """Which numbers of alike kernels are arguments: their places in one of a type.

    places: of each of the kernel's numbers, None if it stays in the text.
    columns: for each argument the numbers it holds, each by one of its places.
    """

    places: tuple[tuple[int, int] | None, ...]
    columns: tuple[tuple[int, ...], ...]
    types: tuple[str, ...]

    @classmethod
    def of(cls, rows: Sequence[tuple[ir.Attribute, ...]]) -> Arguments:
        """rows: the numbers of each kernel.  Equal columns are one."""
        places: list[tuple[int, int] | None] = []
        columns: dict[str, list[int]] = {}
        known: dict[tuple[ir.Attribute, ...], tuple[int, int]] = {}
        for number, column in enumerate(zip(*rows, strict=True)):
            if len(set(column)) == 1:
                places.append(None)
                continue
            if column not in known:
                held = columns.setdefault(str(column[0].type), [])
                known[column] = list(columns).index(str(column[0].type)), len(held)
                held.append(number)
            places.append(known[column])
        return cls(tuple(places), tuple(map(tuple, columns.values())), tuple(columns))

    def kinds(self) -> list[ir.Type]:
        """The arguments' types."""
        return [
            ir.RankedTensorType.get([len(column)], ir.Type.parse(element))
            for column, element in zip(self.columns, self.types, strict=True)
        ]

    def arrays(self, row: Sequence[ir.Attribute]) -> list[np.ndarray]:
        """What one of the kernels is called with."""
        return [
            np.array([row[i].value for i in column], DTYPES[element])
            for column, element in zip(self.columns, self.types, strict=True)
        ]


NONE = Arguments((), (), ())


def constants_to_arguments(
    module: ir.Module, arguments: Arguments, values: Sequence[ir.Value]
) -> None:
    """Let an outlined kernel read its numbers from arguments, once, at its beginning.

    values: the arguments.
    """
    block = values[0].owner
    assert isinstance(block, ir.Block)
    read: dict[tuple[int, int], ir.Value] = {}
    for op, place in zip(constants_of(module), arguments.places, strict=True):
        if place is None:
            continue
        if place not in read:
            with ir.InsertionPoint.at_block_begin(block), ir.Location.unknown():
                at = arith.constant(ir.IndexType.get(), place[1])
                read[place] = tensor.extract(values[place[0]], [at])
        op.results[0].replace_all_uses_with(read[place])
        op.erase()
