"""Arguments whose extents are known at run time: buffers of numbers of a kernel's own.

A kernel with sizes (dynamic/dynamic_kernel.py) has arguments memref<?x768xf32>.  LLVM's
functions take bare pointers, which say nothing of extents: they are read from the
sizes.

    func @kernel_0(%x: memref<?x768xf32>, %sizes: memref<2xi64>, ...)
 -> func @kernel_0(%x: memref<1xf32>, %sizes: memref<2xi64>, ...)
      %n = memref.load %sizes[%c0]
      %all = memref.reinterpret_cast %x to sizes: [%n, 768]
"""

from __future__ import annotations

from math import prod

from nanoloom.dynamic.dynamic_kernel import ARGUMENT, EXTENTS, MOST, NUMBER
from nanoloom.ir.access import constant_of, index, multiply
from nanoloom.ir.mlir import arith, ir, memref, sign

# What makes a buffer of extents that are operands.
SIZED = (
    "memref.alloc",
    "memref.expand_shape",
    "memref.reinterpret_cast",
    "memref.subview",
)
DYNAMIC = ir.ShapedType.get_dynamic_size()


def size_number(value: ir.Value, function: ir.Operation) -> int | None:
    """Which of a kernel's sizes an index is, None for others."""
    owner, words = value.owner, function.attributes
    if isinstance(owner, ir.Block) or ARGUMENT not in words:
        return None
    if owner.name == "memref.dim":
        place = constant_of(owner.operands[1])
        buffer = owner.operands[0]
        return None if place is None else size_of_argument(buffer, place, function)
    if owner.name != "arith.index_cast" or isinstance(
        owner.operands[0].owner, ir.Block
    ):
        return None
    load = owner.operands[0].owner
    sizes = function.regions[0].blocks[0].arguments[words[ARGUMENT].value]  # type: ignore[attr-defined] - MLIR's stubs know no kinds of attributes
    if load.name != "memref.load" or load.operands[0] != sizes:
        return None
    return constant_of(load.operands[1])


def size_of_argument(
    buffer: ir.Value, place: int, function: ir.Operation
) -> int | None:
    """Which of a kernel's sizes an extent of its argument is; None for others."""
    words = function.attributes
    if buffer.owner != function.regions[0].blocks[0] or ARGUMENT not in words:
        return None
    number = ir.BlockArgument(buffer).arg_number
    row = list(words[EXTENTS][number])  # type: ignore[index] - MLIR's stubs know no kinds of attributes
    return None if row[place] == NUMBER else row[place]


def given_extent(buffer: ir.Value, place: int) -> ir.Value | None:
    """The operand that says an extent where a buffer is made; None where none does."""
    owner, kind = buffer.owner, ir.MemRefType(buffer.type)
    if owner.name not in SIZED or not kind.is_dynamic_dim(place):
        return None
    before = sum(kind.is_dynamic_dim(p) for p in range(place))
    if owner.name == "memref.alloc":
        return owner.operands[before]
    if owner.name == "memref.expand_shape":
        return owner.operands[1 + before]
    segments = list(owner.attributes["operandSegmentSizes"])  # type: ignore[call-overload] - MLIR's stubs know no kinds of attributes
    return owner.operands[int(segments[0]) + int(segments[1]) + before]


def only_open_axis(collapse: ir.Operation, place: int) -> tuple[int, int] | None:
    """The axis that an extent of a collapsed shape is a multiple of, and how many
    times; None where several of those joined are open."""
    groups = collapse.attributes["reassociation"]
    shape = ir.MemRefType(collapse.operands[0].type).shape
    joined = [d.value for d in groups[place]]  # type: ignore[index] - MLIR's stubs know no kinds of attributes
    open_ = [d for d in joined if shape[d] == DYNAMIC]
    times = prod(shape[d] for d in joined if shape[d] != DYNAMIC)
    return (open_[0], times) if len(open_) == 1 else None


def most_size(value: ir.Value, function: ir.Operation) -> int | None:
    """What an index is at most that is one of a kernel's sizes, if that is known."""
    place = size_number(value, function)
    if place is None or MOST not in function.attributes:
        return None
    return list(function.attributes[MOST])[place]  # type: ignore[call-overload] - MLIR's stubs know no kinds of attributes


def read_extents(module: ir.Module) -> None:
    """Give each buffer argument with open extents those of the sizes."""
    for function in module.body.operations:
        if ARGUMENT in function.operation.attributes:
            DynamicArguments(function).open()


class DynamicArguments:
    """One function while its arguments get their extents."""

    def __init__(self, function: ir.OpView) -> None:
        self.function = function.operation
        self.block = self.function.regions[0].blocks[0]
        words = self.function.attributes
        self.extents = [list(row) for row in words[EXTENTS]]  # type: ignore[attr-defined] - MLIR's stubs know no kinds of attributes
        self.sizes = list(self.block.arguments)[words[ARGUMENT].value]  # type: ignore[attr-defined] - MLIR's stubs know no kinds of attributes

    def open(self) -> None:
        for argument, row in zip(self.block.arguments, self.extents, strict=False):
            if any(place != NUMBER for place in row):
                self.argument(argument, row)
        sign(self.function)

    def argument(self, argument: ir.Value, row: list[int]) -> None:
        """One buffer: its extents where they are asked for, itself as a pointer."""
        kind = ir.MemRefType(argument.type)
        with ir.InsertionPoint.at_block_begin(self.block), ir.Location.unknown():
            extents = [
                index(n) if place == NUMBER else self.size(place)
                for n, place in zip(kind.shape, row, strict=True)
            ]
            first = described(argument, kind, extents)
        whole = first.owner
        for use in list(argument.uses):
            op = use.owner.operation
            if op == whole:
                continue
            if op.name == "memref.dim":
                place = constant_of(op.operands[1])
                assert place is not None, str(op)
                op.results[0].replace_all_uses_with(extents[place])
                op.erase()
            else:
                op.operands[use.operand_number] = first
        argument.set_type(ir.MemRefType.get([1], kind.element_type))

    def size(self, place: int) -> ir.Value:
        word = memref.load(self.sizes, [index(place)])
        return arith.index_cast(ir.IndexType.get(), word)


def described(
    pointer: ir.Value, kind: ir.MemRefType, extents: list[ir.Value]
) -> ir.Value:
    """A buffer of these extents, row-major, where a pointer points to."""
    steps, known, values = [index(1)], [1], []
    for n, extent in reversed(list(zip(kind.shape[1:], extents[1:], strict=True))):
        open_ = n == DYNAMIC or known[0] == DYNAMIC
        known.insert(0, DYNAMIC if open_ else known[0] * n)
        steps.insert(0, multiply(steps[0], extent))
    values = [e for n, e in zip(kind.shape, extents, strict=True) if n == DYNAMIC]
    apart = [s for n, s in zip(known, steps, strict=True) if n == DYNAMIC]
    return memref.reinterpret_cast(
        kind, pointer, [], values, apart, [0], list(kind.shape), known
    )
