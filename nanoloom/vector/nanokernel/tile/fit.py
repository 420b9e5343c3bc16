"""Whether a tile fits its nanokernel: a script that people write may ask for anything.

A nanokernel computes rows x columns results of one contraction.  A larger tile would be
left undone in part, another panel would be read wrongly: both without any other sign.
"""

from __future__ import annotations

from nanoloom.dynamic.dynamic_kernel import ARGUMENT
from nanoloom.errors import Error
from nanoloom.ir.access import function_around
from nanoloom.ir.contraction import analyse, elements
from nanoloom.ir.linalg_query import (
    Op,
    inputs,
    is_contraction,
    is_generic,
    map_dims,
    maps,
)
from nanoloom.ir.mlir import ir
from nanoloom.nest.contraction import Contraction
from nanoloom.schedule.families import (
    BIT_PAIRS,
    FAMILIES,
    INT8_INNER,
    SME,
    TILE_ROWS,
    TILE_STEPS,
    has_family,
)
from nanoloom.schedule.language import Nanokernel
from nanoloom.target.facts import Target
from nanoloom.target.instructions.choose import dot_for
from nanoloom.vector.index_multiples import is_multiple
from nanoloom.vector.nanokernel.sme.product import (
    panel_width,
    require_outer_products,
)
from nanoloom.vector.nanokernel.tile.epilogue import consumers
from nanoloom.vector.nanokernel.tile.extents import extent_is_not_one, most_results
from nanoloom.vector.nanokernel.tile.require_directives import (
    require_lanes,
    require_nothing_noted,
    require_numbers,
)
from nanoloom.vector.nanokernel.tile.tile import (
    is_packed,
    origin,
    packed_argument,
)

MOST = 256  # accumulators; there are no more than 32 registers


def require_contraction(op: ir.OpView) -> Contraction:
    """The roles of its dimensions; Error if an operation is no contraction."""
    if not is_generic(op) or not is_contraction(op):
        name = op.operation.name
        raise Error(f"a nanokernel needs a contraction, not this {name}")
    shape = analyse(op)
    if shape is None or None in map_dims(maps(op)[shape.right]):
        raise Error("no nanokernel is known for this form of contraction")
    return shape


def require_fit(op: Op, shape: Contraction, plan: Nanokernel, target: Target) -> None:
    """Raise Error, in one sentence, unless the nanokernel computes all of the tile."""
    require_nothing_noted(op)
    require_plan(op, shape, plan)
    require_instructions(op, shape, plan, target)
    left, _, result = elements(op, shape)
    require_numbers(plan, widens=FAMILIES[plan.family].widens and left != result)
    require_lanes(plan, result, target)
    if plan.family == SME.name:
        require_outer(op, shape, plan, target)
        return
    tiles = FAMILIES[plan.family].tiles
    columns = plan.vectors * plan.lanes.count
    *others, row = [None, *(d for d in shape.rows if extent_is_not_one(op, d))]
    high = others[-1] if others else None
    room = {shape.column: columns}
    if row is not None and not tiles:
        room[row] = plan.rows
    for dim in shape.result:
        any_number = tiles and dim in (row, high)
        require_room(op, dim, room.get(dim, 1), any_number=any_number)
    if tiles and high is not None:
        require_image_rows(op, shape, plan, (high, row))
    counted = ARGUMENT in function_around(op).attributes
    counted = counted and plan.family == "fma" and not plan.copy_rhs
    for dim in shape.reduced:
        if shape.extents[dim] < 0 and not counted:
            raise Error("a nanokernel runs the whole sum: do not tile its dimensions")
    require_panels(op, shape, plan, columns, target)
    if not tiles:
        require_epilogue(op)


def require_outer(op: Op, shape: Contraction, plan: Nanokernel, target: Target) -> None:
    """The same of outer products, whose function goes through a task's tiles."""
    require_outer_products(op, shape, plan)
    columns = panel_width(op, shape) if plan.packed else 0
    require_panels(op, shape, plan, columns, target)
    if plan.packed:
        require_room(op, shape.column, columns, any_number=False)


def require_plan(op: Op, shape: Contraction, plan: Nanokernel) -> None:
    """The family is known, multiplies these numbers, and the tile is one."""
    if plan.family not in FAMILIES:
        known = ", ".join(FAMILIES)
        raise Error(f"there is no family {plan.family!r} of nanokernels, only {known}")
    if plan.rows < 1 or plan.vectors < 1 or plan.rows * plan.vectors > MOST:
        raise Error(f"{plan.rows} rows of {plan.vectors} vectors are no register tile")
    family, given = FAMILIES[plan.family], elements(op, shape)
    if family.tiles:
        if plan.vectors != 2 or plan.rows > TILE_ROWS:
            name = plan.family
            raise Error(f"{name} wants vectors = 2 and at most {TILE_ROWS} rows")
        if not plan.packed and len(shape.reduced) > 1:
            raise Error("AMX wants packed = 1 for a sum over several dimensions")
    if given not in family.elements:
        left, right, result = given
        raise Error(f"family {plan.family} does not sum {left} by {right} in {result}")


def require_instructions(
    op: Op, shape: Contraction, plan: Nanokernel, target: Target
) -> None:
    """The target has what the family is made of."""
    left, right, _ = elements(op, shape)
    if not has_family(target, FAMILIES[plan.family], left, right, plan.packed):
        raise Error(
            f"{target} has no instruction for family {plan.family} of {left} by {right}"
        )


def require_room(op: Op, dim: int, most: int, *, any_number: bool) -> None:
    """any_number: a matrix unit goes through all rows of a task by itself."""
    extent = most_results(op, dim)
    if extent is None:
        raise Error(f"how far dimension {dim} of the tile reaches is not known")
    if extent > most and not any_number:
        raise Error(
            f"a tile has {extent} results along dimension {dim}, the nanokernel {most}",
            hint="tile the kernel's last operation to that size, then clean up",
        )


def require_image_rows(
    op: Op, shape: Contraction, plan: Nanokernel, rows: tuple[int | None, ...]
) -> None:
    """Rows of an image fill tile registers of their own, and nothing reaches over."""
    kind = ir.RankedTensorType(op.operation.operands[2].type)
    places = map_dims(maps(op)[2])
    high, wide, columns = (kind.shape[places.index(d)] for d in (*rows, shape.column))
    together = TILE_STEPS * FAMILIES[plan.family].group
    whole = shape.extents[shape.reduced[-1]] % together == 0 and not plan.depth
    known = high > 0 and 0 < wide <= TILE_STEPS and columns == 2 * TILE_STEPS
    if not (known and whole and plan.packed):
        raise Error(
            "rows of an image that share a panel of AMX have 16 pixels at most, 32 "
            f"columns, and sums of whole steps of {together}",
            hint="tile the rows of the image by 1",
        )


def require_panels(
    op: Op, shape: Contraction, plan: Nanokernel, columns: int, target: Target
) -> None:
    """The right operand is packed as the nanokernel reads it, or not at all."""
    logical, offsets = origin(inputs(op)[shape.right])
    if is_packed(logical) != plan.packed:
        state = "packed" if is_packed(logical) else "not packed"
        raise Error(f"the right operand is {state}, the nanokernel says otherwise")
    if not plan.packed:
        if not shape.contiguous:
            raise Error("the right operand's innermost dimension is not the result's")
        if FAMILIES[plan.family].flat_cost is not None:
            require_pairs(op, shape, plan, columns)
        return
    use = dot_for(target, *elements(op, shape)[:2])
    flipped = plan.family == "int8-dot" and use is not None and use.flipped
    sums = flipped or plan.family in (BIT_PAIRS.name, INT8_INNER.name)
    dims = map_dims(maps(op)[shape.right])
    depth = ir.RankedTensorType(logical.type).shape[dims.index(shape.reduced[-1])]
    require_panel(shape, plan, logical, columns, depth, int(sums))
    place = dims.index(shape.column)
    if not is_multiple(offsets[place], columns):
        raise Error(f"a tile may begin within a panel of {columns} columns")


def require_pairs(op: Op, shape: Contraction, plan: Nanokernel, columns: int) -> None:
    """Pairs of vectors can be read from one operand, or from the task's copy of it."""
    operand, _ = origin(inputs(op)[shape.right])
    place = map_dims(maps(op)[shape.right]).index(shape.column)
    extent = ir.RankedTensorType(operand.type).shape[place]  # below 0: not known
    if plan.vectors % 2 or (extent < columns and not plan.copy_rhs):
        raise Error(
            f"family {plan.family} wants packed = 1, or pairs of vectors and no more "
            "columns than the right operand has"
        )


def require_panel(
    shape: Contraction,
    plan: Nanokernel,
    logical: ir.Value,
    columns: int,
    depth: int,
    sums: int,
) -> None:
    """Panels are as wide and as deep as the family reads them; depth: of the weight."""
    rows, width = ir.RankedTensorType(packed_argument(logical).type).shape[-2:]
    family = FAMILIES[plan.family]
    if rows != family.groups(depth) + sums:
        raise Error(f"the weight is not packed for family {plan.family}")
    if depth != shape.extents[shape.reduced[-1]] and plan.family != "fma":
        raise Error(f"family {plan.family} runs the whole sum: do not tile it")
    if width != columns * family.group:
        raise Error(
            f"the weight is packed in panels of {width // family.group} columns, "
            f"the nanokernel reads {columns}"
        )


def require_epilogue(op: Op) -> None:
    """What follows in the same block is computed on the tile, all of it."""
    chain = consumers(op)
    inside = [op.operation.results[0]] + [c.operation.results[0] for c in chain]
    users = {use.owner for value in inside[:-1] for use in value.uses}
    if not users <= {c.operation for c in chain}:
        raise Error("a result within the tile is needed outside of it")


__all__ = ["require_contraction", "require_fit"]
