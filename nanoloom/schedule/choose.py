"""The default schedule of a kernel: what is known to be fast for its root."""

from __future__ import annotations

from dataclasses import dataclass

from nanoloom.kernels.program import Kernel
from nanoloom.kernels.structure import (
    Kind,
    Op,
    extents,
    inputs,
    is_contraction,
    is_copy,
    is_fill,
    is_generic,
    iterators,
    map_dims,
    maps,
)
from nanoloom.mlir import ir, named
from nanoloom.schedule import register_tile
from nanoloom.kernels.contraction import Contraction, analyse
from nanoloom.schedule.language import Loops, Nanokernel, Parallel, Schedule, Tile
from nanoloom.schedule.packing import Packing
from nanoloom.target.facts import Target

TASK_ELEMENTS = 8192  # an elementwise task does about so much: a few microseconds


@dataclass(frozen=True)
class Choice:
    """A kernel's schedule, its module with marks, and how its weights are packed."""

    schedule: Schedule
    packings: tuple[Packing, ...] = ()


def choose(kernel: Kernel, module: ir.Module, target: Target) -> Choice:
    """Choose and mark; `module` is the kernel's, parsed."""
    last = last_operation(module)
    if last is None:
        return Choice(Schedule((Loops(),), "no generic at its end"))
    mark(last, "last")
    root = next((op for op in named(module, "linalg.generic") if is_contraction(op)), None)
    if kernel.root == Kind.CONTRACTION.value and root is not None:
        mark(root, "root")
        choice = contraction(module, root, last, target)
        if choice is not None:
            return choice
    return Choice(by_rows(kernel, last))


def mark(op: Op, name: str) -> None:
    op.operation.attributes[f"nanoloom.{name}"] = ir.UnitAttr.get()


def last_operation(module: ir.Module) -> Op | None:
    """The generic whose result the kernel returns."""
    block = module.body.operations[0].operation.regions[0].blocks[0]
    returned = list(block.operations)[-1].operation.operands[0]
    owner = returned.owner
    if isinstance(owner, ir.Block) or not is_generic(owner.opview):
        return None
    return owner.opview


# ---- everything without a nanokernel ---------------------------------------------------


def by_rows(kernel: Kernel, last: Op) -> Schedule:
    """Rows in parallel, all producers computed inside, then vector loops."""
    sizes = extents(last)
    kinds = iterators(last)
    rows = min(kernel.rows, len(sizes))
    if kernel.root == Kind.ELEMENTWISE.value:
        rows = max(rows - 1, 1 if len(sizes) == 1 else 0)
    parallel = [d for d in range(rows) if kinds[d] == "parallel"]
    if not parallel or 0 in sizes:
        return Schedule((Loops(),), "no rows to share")
    tiles = task_sizes(sizes, parallel)
    reason = "rows are independent: one task a few of them, producers fused"
    inner: tuple[Tile, ...] = ()
    if kernel.root == Kind.REDUCTION.value and any(tiles[d] > 1 for d in parallel):
        ones = tuple(1 if d in parallel else 0 for d in range(len(sizes)))
        inner = (Tile(ones, ("all",)),)  # a row's temporaries stay in L1
    return Schedule((Parallel(tiles, ("all",)), *inner, Loops()), reason)


def task_sizes(sizes: list[int], parallel: list[int]) -> tuple[int, ...]:
    """Tile sizes such that a task has about TASK_ELEMENTS elements."""
    tiles = [0] * len(sizes)
    inner = 1
    for d, size in enumerate(sizes):
        if d not in parallel:
            inner *= size
    for d in reversed(parallel):
        take = max(1, min(sizes[d], TASK_ELEMENTS // max(inner, 1)))
        if take < sizes[d] and sizes[d] % take:
            divisors = [t for t in range(take, 0, -1) if sizes[d] % t == 0]
            take = divisors[0] if divisors[0] * 2 >= take else take
        tiles[d] = take
        inner *= take
    return tuple(tiles)


# ---- contractions ------------------------------------------------------------------------


def contraction(
    module: ir.Module, root: Op, last: Op, target: Target
) -> Choice | None:
    """Panels of columns (and blocks of rows) in parallel, register tiles inside."""
    shape = analyse(root)
    if shape is None or not suits(root, last, shape):
        return None
    element = ir.RankedTensorType(root.operation.operands[0].type).element_type
    m = shape.extents[row_of(shape)] if row_of(shape) is not None else 1  # type: ignore[index]
    n = shape.extents[shape.column]
    tile = register_tile.choose(m, n, element.width, target.vector)  # type: ignore[attr-defined]
    lanes = target.vector.bits // element.width  # type: ignore[attr-defined]
    columns = tile.vectors * lanes
    packings = weight_packing(module, root, shape, columns)
    marks = ("all",)
    if not packings and not shape.contiguous:
        return None
    outer, inner = loop_sizes(root, last, shape, tile.rows, columns)
    directives = (
        Parallel(outer, marks, slowest=None),
        *([Tile(inner, marks)] if any(inner) else []),
        Nanokernel(tile.rows, tile.vectors, bool(packings)),
        Loops(),
    )
    reason = f"register tile {tile}: {tile.cost:.2f} cycles a multiply-add at best 1"
    return Choice(Schedule(directives, reason), packings)


def suits(root: Op, last: Op, shape: Contraction) -> bool:
    """Whether the nanokernels take this element type and form."""
    kinds = {
        str(ir.RankedTensorType(v.type).element_type)
        for v in root.operation.operands
    }
    if kinds not in ({"f32"}, {"f64"}) or 0 in shape.extents:
        return False
    if None in map_dims(maps(root)[shape.right]):
        return False
    return root == last or map_dims(maps(last)[-1]) == list(range(len(shape.result)))


def row_of(shape: Contraction) -> int | None:
    """The dimension along which a register tile has its rows."""
    long = [d for d in shape.rows if shape.extents[d] > 1]
    return long[-1] if long else None


def loop_sizes(
    root: Op, last: Op, shape: Contraction, rows: int, columns: int
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Tile sizes of the tasks, and of the register tile inside a task."""
    row = row_of(shape)
    outer: dict[int, int] = {d: 1 for d in shape.result}
    outer[shape.column] = columns
    inner: dict[int, int] = {}
    if row is not None:
        block = row_block(shape.extents[row], rows)
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


def row_block(extent: int, rows: int) -> int:
    """Rows of a task: about 128, whole register tiles."""
    if extent <= 192:
        return extent
    return max(1, 128 // rows) * rows


def weight_packing(
    module: ir.Module, root: Op, shape: Contraction, columns: int
) -> tuple[Packing, ...]:
    """Pack the right operand if it is a parameter, and mark it in the IR."""
    value = inputs(root)[shape.right]
    if not isinstance(value.owner, ir.Block) or len(list(value.uses)) != 1:
        return ()
    kernel = module.body.operations[0]
    block = kernel.operation.regions[0].blocks[0]
    number = list(block.arguments).index(value)
    attributes = kernel.operation.attributes["arg_attrs"][number]  # type: ignore[index]
    if "nanoloom.constant" not in attributes or shape.other_columns:
        return ()
    dims = [d for d in map_dims(maps(root)[shape.right]) if d is not None]
    packing = Packing(
        number,
        tuple(dims.index(d) for d in shape.shared),
        dims.index(shape.column),
        tuple(dims.index(d) for d in shape.reduced),
        columns,
    )
    use_packed(kernel, block, number, packing)
    return (packing,)


def use_packed(
    kernel: Op, block: ir.Block, number: int, packing: Packing
) -> None:
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


__all__ = ["Choice", "choose", "is_copy", "is_fill"]
