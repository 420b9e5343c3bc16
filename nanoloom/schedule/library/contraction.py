"""Contractions: panels of columns and blocks of rows in parallel, register tiles."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from nanoloom.kernels.contraction import Contraction, analyse
from nanoloom.kernels.structure import Op, inputs, map_dims, maps
from nanoloom.mlir import ir
from nanoloom.schedule import register_tile
from nanoloom.schedule.families import (
    FAMILIES,
    FMA_FAMILY,
    TILE_ROWS,
    TILE_STEPS,
    Family,
)
from nanoloom.schedule.language import (
    Choice,
    Loops,
    Nanokernel,
    Parallel,
    Schedule,
    Tile,
)
from nanoloom.schedule.library.copies import pays_to_copy
from nanoloom.schedule.library.family import (
    column_sums,
    family_of,
    nanokernel_of,
    step_cost,
)
from nanoloom.schedule.library.row_block import (
    TILES,
    VECTORS,
    WOVEN,
    most_rows,
    row_block,
)
from nanoloom.schedule.library.sum_chunks import (
    in_chunks,
    in_parts,
    may_be_cut,
    sum_chunks,
)
from nanoloom.schedule.library.task_panel import task_panel
from nanoloom.schedule.packing import Packing
from nanoloom.schedule.step_cost import FMA
from nanoloom.target.facts import Target

AMX_COLUMNS = 32
# Bytes of a step in the first-level cache: two tiles of each operand, as much for sums.
STEP_BYTES = 3 * 2048


def contraction(module: ir.Module, root: Op, last: Op, target: Target) -> Choice | None:
    """Panels of columns (and blocks of rows) in parallel, register tiles inside."""
    shape = analyse(root)
    if shape is None or not suits(root, last, shape):
        return None
    packed = is_parameter(module, root, shape)
    family = family_of(root, shape, target, packed)
    if family is None:
        return None
    row = row_of(shape)
    m = 1 if row is None else shape.extents[row]
    if family.tiles:
        return matrix_tiles(module, root, last, shape, m, family, target)
    element = ir.RankedTensorType(root.operation.operands[2].type).element_type
    n = shape.extents[shape.column]
    width = element.width  # type: ignore[attr-defined]
    cost = step_cost(family, root, shape, target, packed)
    tile = register_tile.choose(m, n, width, target.vector, cost)
    copied = not packed and pays_to_copy(root, shape, family, m, tile, target)
    if copied and (family.flat_cost or family is FMA_FAMILY):  # the copy is of f32
        family = FMA_FAMILY
        cost = step_cost(family, root, shape, target, packed, copied)
        tile = register_tile.choose(m, n, width, target.vector, cost)
    lanes = target.vector.bits // width
    columns = tile.vectors * lanes
    sums = column_sums(family, root, shape, target)
    packings = (
        weight_packing(module, root, shape, columns, family, sums) if packed else ()
    )
    if not packings and not shape.contiguous:
        return None
    reason = f"register tile {tile}: {tile.cost:.2f} cycles a multiply-add, 1 at best"
    nanokernel = replace(
        nanokernel_of(tile, family), packed=bool(packings), copied=copied
    )
    if row is not None and family is FMA_FAMILY and may_be_cut(root, last):
        chunks = None
        if copied:
            chunks = task_panel(shape, row, nanokernel, width, target)
        elif packings and cost == FMA:
            chunks = sum_chunks(shape, row, nanokernel, width, target)
        if chunks is not None:
            why = f"{reason}{in_parts(root, last, shape, chunks)}"
            directives = in_chunks(shape, row, nanokernel, columns, chunks)
            return Choice(Schedule(directives, why), packings)
    return tiled(root, last, shape, nanokernel, columns, packings, reason, target)


def tiled(
    root: Op,
    last: Op,
    shape: Contraction,
    nanokernel: Nanokernel,
    columns: int,
    packings: tuple[Packing, ...],
    reason: str,
    target: Target,
) -> Choice:
    """Tasks of panels, register tiles inside them, then what is left as loops."""
    outer, inner = loop_sizes(root, last, shape, nanokernel, columns, target)
    directives = (
        Parallel(outer, ("all",)),
        *([Tile(inner, ("all",))] if any(inner) and not nanokernel.depth else []),
        nanokernel,
        Loops(),
    )
    return Choice(Schedule(directives, reason), packings)


def matrix_tiles(
    module: ir.Module,
    root: Op,
    last: Op,
    shape: Contraction,
    m: int,
    family: Family,
    target: Target,
) -> Choice | None:
    """Four tile registers of sums: 32 x 32 results (paper, Fig. 2c)."""
    packings = weight_packing(module, root, shape, AMX_COLUMNS, family)
    depth = chunk(shape, m, family, target)
    rows = min(m, TILE_ROWS)
    nanokernel = Nanokernel(rows, 2, bool(packings), family.name, depth=depth)
    twice = "each operand" if m > TILE_ROWS // 2 else "the left operand"
    reason = f"{rows} x 32 sums: tile registers of 16 x 16 at most, {twice} used twice"
    return tiled(root, last, shape, nanokernel, AMX_COLUMNS, packings, reason, target)


def chunk(shape: Contraction, m: int, family: Family, target: Target) -> int:
    """So much of a sum at a time that its panel stays in the first-level cache.

    0 for all of it: where the panel fits, or a single tile reads it.
    """
    depth = target.caches.l1d // STEP_BYTES * TILE_STEPS * family.group
    large = shape.extents[shape.reduced[-1]] > depth
    return depth if large and len(shape.reduced) == 1 and m > TILE_ROWS else 0


def is_parameter(module: ir.Module, root: Op, shape: Contraction) -> bool:
    value = inputs(root)[shape.right]
    if not isinstance(value.owner, ir.Block) or shape.other_columns:
        return False
    kernel = module.body.operations[0]
    number = list(kernel.operation.regions[0].blocks[0].arguments).index(value)
    attributes = kernel.operation.attributes["arg_attrs"][number]  # type: ignore[index]
    return "nanoloom.constant" in attributes and len(list(value.uses)) == 1


def suits(root: Op, last: Op, shape: Contraction) -> bool:
    """Whether the nanokernels take this form."""
    if 0 in shape.extents:
        return False
    if None in map_dims(maps(root)[shape.right]):
        return False
    return root == last or map_dims(maps(last)[-1]) == list(range(len(shape.result)))


def row_of(shape: Contraction) -> int | None:
    """The dimension along which a register tile has its rows."""
    long = [d for d in shape.rows if shape.extents[d] > 1]
    return long[-1] if long else None


def row_bytes(root: Op, shape: Contraction) -> int:
    """Bytes of a row of the left operand."""
    kind = ir.RankedTensorType(inputs(root)[shape.left].type).element_type
    depth = prod(shape.extents[d] for d in shape.reduced)
    return max(1, depth * kind.width // 8)  # type: ignore[attr-defined]


def loop_sizes(
    root: Op,
    last: Op,
    shape: Contraction,
    plan: Nanokernel,
    columns: int,
    target: Target,
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Tile sizes of the tasks, and of the register tile inside a task."""
    rows, tiles = plan.rows, FAMILIES[plan.family].tiles
    row = row_of(shape)
    outer: dict[int, int] = dict.fromkeys(shape.result, 1)
    outer[shape.column] = columns
    inner: dict[int, int] = {}
    if row is not None:
        panels = -(-shape.extents[shape.column] // columns)
        limits = (TILES if plan.packed else WOVEN) if tiles else VECTORS
        most = most_rows(row_bytes(root, shape), panels, limits, target)
        block = row_block(shape.extents[row], rows, most)
        outer[row] = 0 if block >= shape.extents[row] else block
        inner[row] = rows
    if root == last:
        count = len(shape.extents)
        return (
            tuple(outer.get(d, 0) for d in range(count)),
            tuple(inner.get(d, 0) for d in range(count)),
        )
    return (
        tuple(outer[d] for d in shape.result),
        tuple(inner.get(d, 0) for d in shape.result),
    )


def weight_packing(
    module: ir.Module,
    root: Op,
    shape: Contraction,
    columns: int,
    family: Family,
    sums: int = 0,
) -> tuple[Packing, ...]:
    """Pack the right operand if it is a parameter, and mark it in the IR."""
    if not is_parameter(module, root, shape):
        return ()
    kernel = module.body.operations[0]
    block = kernel.operation.regions[0].blocks[0]
    number = list(block.arguments).index(inputs(root)[shape.right])
    dims = [d for d in map_dims(maps(root)[shape.right]) if d is not None]
    packing = Packing(
        number,
        tuple(dims.index(d) for d in shape.shared),
        dims.index(shape.column),
        tuple(dims.index(d) for d in shape.reduced),
        columns,
        family.group,
        sums,
        family.steps,
    )
    use_packed(kernel, block, number, packing)
    return (packing,)


def use_packed(kernel: Op, block: ir.Block, number: int, packing: Packing) -> None:
    """The argument takes the packed type; a cast stands for the logical weight."""
    argument = block.arguments[number]
    logical = ir.RankedTensorType(argument.type)
    made = ir.RankedTensorType.get(
        packing.shape(tuple(logical.shape)), logical.element_type
    )
    with ir.InsertionPoint.at_block_begin(block), ir.Location.unknown():
        cast = ir.Operation.create(
            "builtin.unrealized_conversion_cast", [logical], [argument]
        )
    argument.replace_all_uses_with(cast.results[0])
    cast.operands[0] = argument
    argument.set_type(made)
    kinds = [a.type for a in block.arguments]
    results = list(kernel.operation.attributes["function_type"].value.results)  # type: ignore[attr-defined]
    kernel.operation.attributes["function_type"] = ir.TypeAttr.get(
        ir.FunctionType.get(kinds, results)
    )
