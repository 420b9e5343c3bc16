"""A kernel's argument that comes packed: what "nanoloom.pack" does."""

from __future__ import annotations

from nanoloom.dynamic.dynamic_kernel import EXTENTS, NUMBER
from nanoloom.errors import Error
from nanoloom.ir.linalg_query import Op
from nanoloom.ir.mlir import ir, named, sign
from nanoloom.schedule.packing import Pack
from nanoloom.vector.dialect import PACKED, make
from nanoloom.weights.panels import WORD

WIDE = 16  # bits
PAIR = 2  # groups, of so many numbers each


def use_packed_argument(kernel: Op, packing: Pack) -> None:
    """The argument takes the packed type; `packed` stands for the logical weight."""
    block = kernel.operation.regions[0].blocks[0]
    argument = packable(kernel, block, packing)
    logical = ir.RankedTensorType(argument.type)
    element = logical.element_type
    if packing.bits:
        element = ir.IntegerType.get_signless(packing.bits)
    made = ir.RankedTensorType.get(packing.panels.shape(tuple(logical.shape)), element)
    keep_extents(kernel, packing)
    with ir.InsertionPoint.at_block_begin(block), ir.Location.unknown():
        (stands_for,) = make(PACKED, [logical], [argument])
    argument.replace_all_uses_with(stands_for)
    stands_for.owner.operands[0] = argument
    argument.set_type(made)
    sign(kernel)


def keep_extents(kernel: Op, packing: Pack) -> None:
    """Panels of a sum whose length only a run knows are as deep as the weight.

    Error for panels of groups, or of columns whose number is open.
    """
    words = kernel.operation.attributes
    if EXTENTS not in words:
        return
    rows = [list(row) for row in words[EXTENTS]]  # type: ignore[attr-defined] - MLIR's stubs know no kinds of attributes
    row = rows[packing.argument]
    is_open = any(place != NUMBER for place in row)
    grouped = (packing.group, packing.sums, packing.steps) != (1, 0, 1)
    if is_open and (row[packing.column] != NUMBER or grouped):
        reason = f"argument {packing.argument} has sizes that only a run knows"
        raise Error(f"{reason}: panels of groups are as deep as is known before")
    shared, reduced = ([row[d] for d in x] for x in (packing.shared, packing.reduced))
    rows[packing.argument] = [*shared, NUMBER, *reduced, NUMBER]
    words[EXTENTS] = ir.ArrayAttr.get([ir.DenseI64ArrayAttr.get(x) for x in rows])


def packable(kernel: Op, block: ir.Block, packing: Pack) -> ir.Value:
    """The argument; Error unless it is a weight that can be packed so."""
    words = kernel.operation.attributes["arg_attrs"]
    number = packing.argument
    if not 0 <= number < len(block.arguments):
        raise Error(f"the kernel has no argument {number}")
    argument = block.arguments[number]
    if "nanoloom.constant" not in words[number]:  # type: ignore[index]
        raise Error(f"argument {number} is no weight: its numbers are not known yet")
    if any(use.owner.name == PACKED for use in argument.uses):
        raise Error(f"argument {number} is packed twice")
    roles = (*packing.shared, packing.column, *packing.reduced)
    rank = ir.RankedTensorType(argument.type).rank
    if sorted(roles) != list(range(rank)) or not packing.reduced:
        raise Error(
            f"argument {number} has dimensions 0 to {rank - 1}: each is shared, column "
            "or reduced, and one at least is reduced"
        )
    if min(packing.columns, packing.group, packing.steps) < 1:
        raise Error("a panel has one column, group and step at least")
    element = ir.RankedTensorType(argument.type).element_type
    if packing.bits and not is_byte(element):
        raise Error(f"only bytes become wider in panels, not {element}")
    if packing.bits not in (0, WIDE) or (packing.bits and not is_wide(packing)):
        raise Error(
            f"bytes become {WIDE} bits in panels, without sums, or in groups of 2 with "
            "steps = 2 and sums = -1"
        )
    paired = packing.group == 2 * WORD and packing.sums != 0
    of_bits = packing.sums == -1 and is_byte(element)
    if packing.differences != paired or (paired and not of_bits):
        raise Error(
            "panels of two words of bits are bytes in groups of 8, with sums = -1 and "
            "differences = 1"
        )
    return argument


def is_wide(packing: Pack) -> bool:
    """Whether panels of wide numbers hold no sums, or those of their products."""
    sums, groups = packing.sums, (packing.group, packing.steps)
    return not sums or (sums == -1 and groups == (PAIR, PAIR))


def is_byte(element: ir.Type) -> bool:
    return isinstance(element, ir.IntegerType) and element.width == 8


def require_packed_reads(module: ir.Module) -> None:
    """Error if anything but a nanokernel reads a packed weight."""
    for op in named(module, PACKED):
        width = ir.RankedTensorType(op.operation.operands[0].type).shape[-1]
        raise Error(
            f"a weight is packed in panels of {width}, and no nanokernel reads it",
            hint='the script needs "nanoloom.nanokernel" with packed = 1',
        )
