"""Slices that are read in another shape: the outputs of a split, as heads.

    expand_shape(extract_slice(x))  ->  extract_slice(expand_shape(x))
    a slice without extents of 1  ->  extract_slice(collapse_shape(x))

A reader takes a slice's numbers where they are in its source; behind a shape it would
need a tensor of its own.  Slices of images of any size that begin where their source
does are left to the end (`first_slices`): one that is whole for a sample would go.
"""

from __future__ import annotations

from math import prod

from nanoloom.fusion.insert_in_place import reads_in_place
from nanoloom.ir.linalg_query import Op, are_in_place, maps
from nanoloom.ir.make_generic import set_maps
from nanoloom.ir.mlir import ir, made_by, named, run_pipeline, tensor
from nanoloom.ir.regrouped_axes import matched
from nanoloom.linalg.builder.tensor_slices import sliced

EXPAND, SLICE = "tensor.expand_shape", "tensor.extract_slice"


def shapes_before_slices(module: ir.Module, *, open_images: bool = False) -> None:
    """Take slices of tensors in their readers' shape, where such readers can."""
    for op in named(module, SLICE):
        if not (open_images and is_first(op)):
            with_all_axes(op)
    for op in named(module, EXPAND):
        cut = made_by(op.operation.operands[0], SLICE)
        if cut is None or not is_plain(cut.opview):
            continue
        (result,) = op.operation.results
        if all(map(reads_in_place, result.uses)):
            made = expanded(op, cut.opview)
            if made is not None:
                result.replace_all_uses_with(made)


def first_slices(module: ir.Module) -> None:
    """Give those that were left their source's axes; nothing may simplify them then."""
    for op in named(module, SLICE):
        with_all_axes(op)
    run_pipeline(module, ("cse",))


def is_first(cut: Op) -> bool:
    """Whether a slice drops axes of 1, and begins where its source does."""
    (source, *at), (result,) = cut.operation.operands, cut.operation.results
    ranks = [ir.RankedTensorType(value.type).rank for value in (source, result)]
    return not at and ranks[0] > ranks[1] and not any(static(cut, "offsets"))


def with_all_axes(cut: Op) -> None:
    """Give readers a slice that drops no axes; in its source, where it lies so."""
    (result,) = cut.operation.results
    if is_row(cut) and are_in_place(cut.operation.operands[0], result):
        read_with_all_axes(cut)
    elif (made := of_as_many_axes(cut)) is not None:
        result.replace_all_uses_with(made)


def is_row(cut: Op) -> bool:
    """Whether a slice drops an axis of its source, which has more places along it."""
    (source, *at) = cut.operation.operands
    whole = ir.RankedTensorType(source.type).shape
    plain = not at and set(static(cut, "strides")) <= {1}
    return plain and any(whole[d] > 1 for d in dropped(cut))


def dropped(cut: Op) -> list[int]:
    """The axes of its source that a slice has none for."""
    sizes = static(cut, "sizes")
    kept = matched(ir.RankedTensorType(cut.operation.results[0].type).shape, sizes)
    return [d for d in range(len(sizes)) if d not in kept]


def read_with_all_axes(cut: Op) -> None:
    """Let readers have the only place of an axis that a slice drops."""
    source, (result,) = cut.operation.operands[0], cut.operation.results
    sizes, alone = static(cut, "sizes"), dropped(cut)
    with ir.InsertionPoint(cut), cut.operation.location:
        begin, steps = static(cut, "offsets"), static(cut, "strides")
        made = sliced(source, begin, sizes, steps=steps)
    for use in list(result.uses):
        reader, number = use.owner.opview, use.operand_number
        ways = maps(reader)
        places = iter(ways[number].results)
        results = [
            ir.AffineConstantExpr.get(0) if d in alone else next(places)
            for d in range(len(sizes))
        ]
        ways[number] = ir.AffineMap.get(ways[number].n_dims, 0, results)
        reader.operation.operands[number] = made
        set_maps(reader, ways)


def of_as_many_axes(cut: Op) -> ir.Value | None:
    """A slice of its source without extents of 1 that it drops; None for others."""
    (source, *at), (result,) = cut.operation.operands, cut.operation.results
    kind, shape = (
        ir.RankedTensorType(source.type),
        ir.RankedTensorType(result.type).shape,
    )
    sizes = static(cut, "sizes")
    ones = [d for d, size in enumerate(kind.shape) if size == 1 and sizes[d] == 1]
    count = kind.rank - len(shape)
    if at or not count or not shape:
        return None
    for dropped in (ones[:count], ones[-count:]):
        kept = [d for d in range(kind.rank) if d not in dropped]
        if [sizes[d] for d in kept] == list(shape):
            break
    else:
        return None
    ends = [*kept[1:], kind.rank]
    groups = [list(range(d, end)) for d, end in zip([0, *kept[1:]], ends, strict=True)]
    narrow = ir.RankedTensorType.get([kind.shape[d] for d in kept], kind.element_type)
    words = ([static(cut, word)[d] for d in kept] for word in ("offsets", "strides"))
    offsets, strides = words
    with ir.InsertionPoint(cut), cut.operation.location:
        flat = tensor.CollapseShapeOp(narrow, source, groups)
        return sliced(flat.result, offsets, shape, steps=strides)


def is_plain(cut: Op) -> bool:
    """Whether a slice has numbers next to each other, at a place that is known."""
    (source, *at), (result,) = cut.operation.operands, cut.operation.results
    ranks = {ir.RankedTensorType(value.type).rank for value in (source, result)}
    return not at and len(ranks) == 1 and set(static(cut, "strides")) <= {1}


def expanded(op: Op, cut: Op) -> ir.Value | None:
    """The slice of the source in another shape; None if it ends within an extent."""
    source, (result,) = cut.operation.operands[0], op.operation.results
    kind, shape = (
        ir.RankedTensorType(source.type),
        ir.RankedTensorType(result.type).shape,
    )
    groups = [[d.value for d in g] for g in op.operation.attributes["reassociation"]]  # type: ignore[union-attr]
    extents: list[int] = []
    begins: list[int] = []
    cuts = zip(kind.shape, static(cut, "offsets"), groups, strict=True)
    for extent, begin, (first, *rest) in cuts:
        inner = prod(shape[d] for d in rest)
        if extent % inner or begin % inner:
            return None
        extents += [extent // inner, *(shape[d] for d in rest)]
        begins += [begin // inner, *(0 for _ in rest)]
        assert first == len(extents) - len(rest) - 1, "groups are in order"
    with ir.InsertionPoint(op), op.operation.location:
        wide = tensor.ExpandShapeOp(
            ir.RankedTensorType.get(extents, kind.element_type),
            source,
            op.operation.attributes["reassociation"],
            [],
            extents,
        )
        return sliced(wide.result, begins, shape)


def static(cut: Op, word: str) -> list[int]:
    """One of a slice's numbers for each dimension: offsets, sizes, strides."""
    return [int(n) for n in cut.operation.attributes[f"static_{word}"]]  # type: ignore[attr-defined]
