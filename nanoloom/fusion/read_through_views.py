"""What reads a product in another shape reads it as it is, with other loops.

    y[i, f] = max of collapse(t)[2 i + r, f]   ->  collapse of y[a, b, f] =
                                                   max of t[a, 2 b + r, f]
    y[n, f] = sum of expand(t)[n, p, f]        ->  y[n, f] = sum of t[49 n + p, f]
    y[f, i] = collapse(t)[i, f]                ->  collapse of y[f, a, b] = t[a, b, f]

A loop that goes over several axes becomes one for each.  Then a task can make what is
read (fuse_by_footprint.py).  Where a step would cross from one axis to the next, all
stays as it is.  What follows a product at the same places: follow_products.py.
"""

from __future__ import annotations

from collections.abc import Iterable

from nanoloom.fusion.follow_products import (
    COLLAPSE,
    EXPAND,
    Split,
    ends_product,
    joined,
    shape_of,
)
from nanoloom.fusion.group import users
from nanoloom.fusion.split_loops import Loops, Term, over_axes, stepped
from nanoloom.ir.linalg_query import (
    Kind,
    Op,
    body,
    filled_with,
    inputs,
    is_copy,
    is_fill,
    is_generic,
    iterators,
    kind,
    map_dims,
    maps,
    outputs,
)
from nanoloom.ir.loop_nest import alone, index_of
from nanoloom.ir.make_generic import compose, remade
from nanoloom.ir.mlir import arith, ir, made_by, named, operations, tensor
from nanoloom.linalg.builder.pointwise import pointwise
from nanoloom.nest.panel_parts import is_transpose


def read_through_views(module: ir.Module, *, rows: bool) -> None:
    """Rewrite such readers, in place.

    rows: permutations, and sums over rows, too: not only windows within tiles.
    """
    for view in [*named(module, COLLAPSE), *named(module, EXPAND)]:
        readers = users(view.operation.results[0])
        if len(readers) != 1 or not is_made_alone(view.operation.operands[0]):
            continue
        (op,) = readers
        if rows or (is_reduction(op) and view.operation.name == COLLAPSE):
            read_source(op, view)
    if rows:
        for op in operations(module, is_reduction):
            if inputs(op) and is_made_alone(inputs(op)[0]):
                reduce_last(op)


def is_made_alone(value: ir.Value) -> bool:
    """Whether a product, or what follows it, makes a value of f32 for one reader."""
    owner = value.owner
    if isinstance(owner, ir.Block) or len(users(value)) != 1:
        return False
    element = str(ir.RankedTensorType(value.type).element_type)
    return element == "f32" and ends_product(owner.opview)


def reduce_last(op: Op) -> None:
    """Let the loops of an operation that reduce stand behind the others."""
    names = [str(n) for n in range(len(iterators(op)))]
    read = [index_of(expr, names) for expr in maps(op)[0].results]
    loops = Loops.of(op)
    if loops.order != names and all(index.axis is not None for index in read):
        plain = [list(index.terms) for index in read]
        if others_stay(op, loops):
            replace(op, inputs(op)[0], plain, loops)


def is_reduction(op: Op) -> bool:
    """A reduction of what it reads first, which begins with a number."""
    if not is_generic(op) or kind(op) is not Kind.REDUCTION:
        return False
    owner = made_by(outputs(op)[0])
    one = len(op.operation.results) == 1
    return one and owner is not None and is_fill(owner.opview)


def is_permutation(op: Op) -> bool:
    """Whether an operation writes what it reads in another order, and nothing else."""
    return is_copy(op) and is_transpose(alone(op))


def read_source(op: Op, view: Op) -> None:
    """Let an operation read what a view shows, if its loops can be those of that."""
    if not is_reduction(op) and not is_permutation(op):
        return
    shown, loops, shape = view.operation.results[0], Loops.of(op), shape_of(view)
    numbers = [n for n, value in enumerate(inputs(op)) if value == shown]
    names = [str(n) for n in range(len(loops.kinds))]
    read = [index_of(expr, names) for expr in maps(op)[0].results]
    if numbers != [0] or any(index.other or index.offset for index in read):
        return
    terms = [list(index.terms) for index in read]
    found: list[list[Term]] | None
    if isinstance(shape, Split):
        found = [stepped(group, shape.sizes, terms, loops) for group in shape.groups]
    else:
        parts = zip(shape.groups, terms, strict=True)
        sized = ((each, [shape.flat[d] for d in group]) for group, each in parts)
        found = over_axes(sized, loops)
    plain = found is not None and all(len(each) == 1 for each in found)
    if found is not None and others_stay(op, loops) and (plain or is_reduction(op)):
        replace(op, view.operation.operands[0], found, loops)


def others_stay(op: Op, loops: Loops) -> bool:
    """Whether all other operands are read along loops that are as they were, and the
    result is written at axes of its own."""
    changed = {int(old) for old, found in loops.parts.items() if found != [old]}
    read = {d for m in maps(op)[1:-1] for d in dims_in(m)}
    return None not in map_dims(maps(op)[-1]) and not changed & read


def dims_in(indexing: ir.AffineMap) -> set[int]:
    names = [str(n) for n in range(indexing.n_dims)]
    found = (index_of(expr, names).axes for expr in indexing.results)
    return {int(axis) for axes in found for axis in axes}


def replace(op: Op, source: ir.Value, read: list[list[Term]], loops: Loops) -> None:
    """The same operation of another operand, its result shown as it was."""
    order = loops.order
    dims = {name: ir.AffineDimExpr.get(n) for n, name in enumerate(order)}

    def indexing(axes: Iterable[Iterable[Term]]) -> ir.AffineMap:
        made: list[ir.AffineExpr] = []
        for terms in axes:
            first, *others = (dims[name] * factor for name, factor in terms)
            made.append(sum(others, start=first))
        return ir.AffineMap.get(len(order), 0, made)

    moved = [
        dims[found[0]] if found else dims[order[0]] for found in loops.parts.values()
    ]
    old = ir.AffineMap.get(len(order), 0, moved)
    ways = [compose(m, old) for m in maps(op)[1:-1]]
    written = [loops.parts[str(d)] for d in map_dims(maps(op)[-1])]
    flat = [name for names in written for name in names]
    sizes = [loops.extents[name] for name in flat]
    element = ir.RankedTensorType(op.operation.results[0].type).element_type
    known = {name for terms in read if len(terms) == 1 for name, _ in terms} | {*flat}
    known |= {order[d] for m in ways for d in dims_in(m)}
    window = [name for name in order if name not in known]
    groups = list[list[int]]()
    for names in written:
        first = sum(map(len, groups))
        groups.append([*range(first, first + len(names))])
    with ir.InsertionPoint(op), op.operation.location:
        shapes = [tensor.empty([loops.extents[n] for n in window], element)] * bool(
            window
        )
        begin = begun(op, sizes, element)
        operands = [source, *inputs(op)[1:], *shapes, begin]
        ways = [indexing(read), *ways]
        ways += [indexing([[(n, 1)] for n in window])] if window else []
        ways.append(indexing([[(name, 1)] for name in flat]))
        kinds = ["reduction" if loops.is_summed(n) else "parallel" for n in order]
        made = remade(op, operands, ways, kinds)
        if window:
            ignore_last(made, len(operands) - 1)
        shown = joined(made, groups)
    op.operation.results[0].replace_all_uses_with(shown)
    op.operation.erase()


def begun(op: Op, sizes: list[int], element: ir.Type) -> ir.Value:
    """What an operation begins with, in another shape: nothing, or its number."""
    owner, empty = outputs(op)[0].owner, tensor.empty(sizes, element)
    if isinstance(owner, ir.Block) or not is_fill(owner.opview):
        return empty
    value = filled_with(owner.opview).attributes["value"]
    return pointwise([], empty, lambda: arith.constant(element, value))


def ignore_last(made: ir.Value, count: int) -> None:
    """Give an operation one more operand in front of its result's, whose extents say
    those of its loops: its numbers are not read."""
    op = made.owner
    assert not isinstance(op, ir.Block), "it was made just now"
    op.attributes["operandSegmentSizes"] = ir.DenseI32ArrayAttr.get([count, 1])
    block = body(op.opview)
    so_far = block.arguments[count - 1]
    block.add_argument(so_far.type, ir.Location.current)
    so_far.replace_all_uses_with(block.arguments[count])
