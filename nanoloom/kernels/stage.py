"""The kernels stage: one function on tensors becomes kernels, calls and buffers.

In:  @main of the linalg stage.
Out: a `Program`: equal kernels are made once, buffers have their place in the arena.
"""

from __future__ import annotations

from functools import partial

from nanoloom.fusion.fold_copies import (
    Stays,
    fold_copies,
    none_stays,
    pack_right_operands,
)
from nanoloom.fusion.follow_products import follow_products
from nanoloom.fusion.fuse_by_footprint import Footprints
from nanoloom.fusion.fuse_into_reader import fuse_into_readers
from nanoloom.fusion.fuse_producer import fuse_producers, inline_producers
from nanoloom.fusion.fuse_product_chain import fuse_product_chains
from nanoloom.fusion.group import Group, form_groups, is_movable
from nanoloom.fusion.group_values import settle
from nanoloom.fusion.guarded_reads import (
    guard_reads,
    is_made_by_windows,
    needs_no_border,
)
from nanoloom.fusion.insert_in_place import mark_parts
from nanoloom.fusion.layouts.cost import is_faster_turned
from nanoloom.fusion.layouts.layout import layout_named
from nanoloom.fusion.layouts.products import product_of
from nanoloom.fusion.layouts.stage import plan_layouts
from nanoloom.fusion.multi_output_fusion import fuse_multiple_outputs
from nanoloom.fusion.pair_losses import Losses
from nanoloom.fusion.read_through_views import read_through_views
from nanoloom.fusion.recompute_in_readers import recompute_in_readers
from nanoloom.fusion.slices import first_slices, shapes_before_slices
from nanoloom.fusion.unfused import explain_unfused
from nanoloom.graph.shared_decisions import SharedDecisions
from nanoloom.ir.linalg_query import Op, base, element_bytes, is_contraction
from nanoloom.ir.mlir import ir, run_pipeline, tensor
from nanoloom.kernels.in_place import Pairs, plan_reuse
from nanoloom.kernels.partition import Partition
from nanoloom.kernels.program import Program
from nanoloom.kernels.repeats.calls import is_state, separate_repeats
from nanoloom.linalg.builder.pointwise import itself, pointwise
from nanoloom.linalg.stage import LinalgModule
from nanoloom.target.facts import Target
from nanoloom.target.masked_access import reads_rows_in_part

SIMPLIFY = (
    "canonicalize",
    "cse",
    "linalg-fold-unit-extent-dims",  # [1, 128, 768] is a matrix: fewer loops
    "canonicalize",  # removes the pairs of reshapes that the line above leaves
    "cse",
)


def partition(
    lowered: LinalgModule,
    target: Target,
    layout: str = "auto",
    *,
    fuses_transposes: bool = True,
    planes: bool = True,
    alike: SharedDecisions | None = None,
    in_place: Pairs | None = (),
) -> Program:
    """Cut a linalg module into kernels (the module is changed in place).

    target: on which tensors get the layouts that are the fastest, or this one, and in
    whose caches is what tasks share.  fuses_transposes: K-contiguous right operands are
    transposed first, by kernels of their own.  planes: those of depthwise layers may be
    apart.  alike: the samples that the module is one of.  in_place: inputs, and
    outputs in their memory; None for bodies of repetitions, which are cut before.
    """
    cut = partial(partition, target=target, layout=layout, planes=planes)
    cut = partial(cut, fuses_transposes=fuses_transposes)
    bodies = {n: cut(x.body, in_place=None) for n, x in lowered.repeats.items()}
    run_pipeline(lowered.module, SIMPLIFY)
    known = alike is None
    wanted = layout_named(layout)
    plan_layouts(lowered, target, wanted, alike, planes=planes).apply()
    turned = turned_for(lowered, target) if known else none_stays
    fold_copies(lowered.module, turned)
    if fuses_transposes:
        pack_right_operands(lowered.module, len(lowered.inputs))
    open_images = alike is not None and alike.images
    shapes_before_slices(lowered.module, open_images=open_images)
    in_rows = known and pools_in_tiles(target)
    tiles = not open_images and pools_in_tiles(target)
    follow_all(lowered.module, tiles=tiles, in_rows=in_rows)
    recompute_in_readers(lowered.module)
    run_pipeline(lowered.module, ("canonicalize", "cse"))
    mark(lowered.module, target, open_images=open_images, known=known)
    block = lowered.module.body.operations[0].operation.regions[0].blocks[0]
    separate_outputs(block, lowered)
    separate_repeats(block, lowered)
    flat = known and target.vector.any_length
    weights = list(block.arguments)[len(lowered.inputs) :]
    groups = settle(joined(block, weights, Losses(target, in_rows, open_images)))
    explain_unfused(groups, known=known)
    reuse = plan_reuse(block, groups, lowered, in_place)
    joins = not open_images
    cutting = Partition(
        lowered, block, bodies, reuse, joins=joins, flat=flat, known_sizes=known
    )
    return cutting.program(groups)


def turned_for(lowered: LinalgModule, target: Target) -> Stays:
    """Which products read an image that a copy turns, not one of channels first."""
    block = lowered.module.body.operations[0].operation.regions[0].blocks[0]
    weights = set(list(block.arguments)[len(lowered.inputs) :])

    def stays(reader: Op, number: int) -> bool:
        made = product_of(reader, weights) if is_contraction(reader) else None
        its = made is not None and made.operand == number
        return made is not None and its and is_faster_turned(made, target)

    return stays


def mark(module: ir.Module, target: Target, *, open_images: bool, known: bool) -> None:
    """Say what lies in what: slices and parts; nothing may simplify then."""
    if open_images:
        first_slices(module)

    def stays(insertion: Op) -> bool:
        size = element_bytes(insertion.operation.results[0].type)
        if not reads_rows_in_part(target, size) or not needs_no_border(insertion):
            return False
        return not (known and is_made_by_windows(insertion))

    # canonicalize would drop its copies
    line = target.caches.line
    mark_parts(module, tiles=not open_images, line=line, stays=stays)


def follow_all(module: ir.Module, *, tiles: bool, in_rows: bool) -> None:
    """Let what follows products have the shape that it has there.

    tiles: pools of windows, too.  in_rows: and sums of rows, and permutations.
    """
    follow_products(module)
    if tiles:
        read_through_views(module, rows=in_rows)


def joined(block: ir.Block, weights: list[ir.Value], losses: Losses) -> list[Group]:
    """The groups of a block that become kernels, before places are given.

    weights: the arguments that are parameters.  losses: of sizes that are known, tasks
    have whole rows of images.
    """
    target, in_rows = losses.target, losses.known
    footprints = Footprints(weights, losses)
    groups = fuse_into_readers(form_groups(block))
    groups = fuse_product_chains(groups, weights, target.caches)
    groups = inline_producers(footprints.fuse(groups))
    groups = footprints.fuse(groups, rows=True) if in_rows else groups
    groups = fuse_multiple_outputs(block, groups, target.caches)
    groups = guard_reads(groups, weights, masks=reads_rows_in_part(target))
    if not in_rows:
        return groups
    groups = fuse_producers(groups, weights, target)
    return footprints.fuse(groups, permutes=True)


def pools_in_tiles(target: Target) -> bool:
    """Whether what reads a product at other places is made with it, panel by panel.

    Not by vectors of any width, which these schedules have none of; nor of open images:
    whether tiles divide one, and a cache holds its rows, depends on its sizes.
    """
    return not target.vector.scalable


def separate_outputs(block: ir.Block, lowered: LinalgModule) -> None:
    """Returned values get bytes of their own: copy arguments and repeated values.

    What a repetition carries is copied, too: it has places of its own.  Equal checks
    behind the outputs may be one.
    """
    outputs = len(lowered.outputs)
    returned = list(block.operations)[-1]
    seen: set[ir.Value] = set()
    for i, value in enumerate(returned.operation.operands):
        source = base(value)
        owner = source.owner
        free = isinstance(owner, ir.Block) or is_movable(owner.opview)
        free = free or is_state(source, lowered)
        if free or (source in seen and i < outputs):
            with ir.InsertionPoint(returned), ir.Location.unknown():
                kind = ir.RankedTensorType(value.type)
                target = tensor.empty(kind.shape, kind.element_type)
                returned.operation.operands[i] = pointwise([value], target, itself)
            continue
        seen.add(source)
