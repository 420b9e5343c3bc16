"""The kernels stage: one function on tensors becomes kernels, calls and buffers.

In:  @main of the linalg stage.
Out: a `Program`: equal kernels are made once, buffers have their place in the arena.
"""

from __future__ import annotations

from nanoloom.graph.alike import Alike
from nanoloom.kernels.chain import join_chains
from nanoloom.kernels.cutting import Cutting
from nanoloom.kernels.fold import fold_copies, pack_right_operands
from nanoloom.kernels.fronts import join_fronts
from nanoloom.kernels.group import Group, form_groups, is_movable
from nanoloom.kernels.layouts.layout import layout_named
from nanoloom.kernels.layouts.stage import plan_layouts
from nanoloom.kernels.leftover import join_leftovers
from nanoloom.kernels.pad_numbers import take_in_numbers
from nanoloom.kernels.pads import absorb_pads
from nanoloom.kernels.parts import mark_parts
from nanoloom.kernels.pooled import join_pools, pool_tiles
from nanoloom.kernels.pooled_rows import join_sums, sum_rows
from nanoloom.kernels.program import Program
from nanoloom.kernels.read_once import join_pools_that_read_once
from nanoloom.kernels.repeats.calls import is_state, separate_repeats
from nanoloom.kernels.reshaped import follow_products
from nanoloom.kernels.several import join_results
from nanoloom.kernels.slices import first_slices, shapes_before_slices
from nanoloom.kernels.structure import base
from nanoloom.kernels.turned import join_turns, turn_shapes
from nanoloom.kernels.widened import widen_in_readers
from nanoloom.kernels.windowed import join_windows
from nanoloom.linalg.stage import LinalgModule
from nanoloom.linalg.words.pointwise import itself, pointwise
from nanoloom.mlir import ir, run_pipeline, tensor
from nanoloom.target.facts import Target
from nanoloom.target.masks import reads_rows_in_part

SIMPLIFY = (
    "canonicalize",
    "cse",
    "linalg-fold-unit-extent-dims",  # [1, 128, 768] is a matrix: fewer loops
    "canonicalize",  # removes the pairs of reshapes that the line above leaves
    "cse",
)


def cut(
    lowered: LinalgModule,
    target: Target | None = None,
    layout: str = "auto",
    *,
    turns: bool = True,
    planes: bool = True,
    alike: Alike | None = None,
) -> Program:
    """Cut a linalg module into kernels (the module is changed in place).

    target: on which tensors get the layouts that are the fastest, or this one; without
    a target they keep theirs.  turns: right operands that lie along the sum are turned
    first, by kernels of their own.  planes: of images of known sizes they may be apart.
    alike: the samples that the module is one of.  Bodies of repetitions are cut before.
    """
    bodies = {
        name: cut(repetition.body, target, layout, turns=turns, planes=planes)
        for name, repetition in lowered.repeats.items()
    }
    run_pipeline(lowered.module, SIMPLIFY)
    if target is not None:
        wanted, planes = layout_named(layout), planes and alike is None
        plan_layouts(lowered, target, wanted, alike, planes=planes).apply()
    fold_copies(lowered.module)
    if turns:
        pack_right_operands(lowered.module, len(lowered.inputs))
    open_images = alike is not None and alike.images
    shapes_before_slices(lowered.module, open_images=open_images)
    known = alike is None
    in_rows = known and pools_in_tiles(target)
    tiles = not open_images and pools_in_tiles(target)
    follow_all(lowered.module, tiles=tiles, in_rows=in_rows)
    widen_in_readers(lowered.module)
    run_pipeline(lowered.module, ("canonicalize", "cse"))
    mark(lowered.module, open_images=open_images)
    block = lowered.module.body.operations[0].operation.regions[0].blocks[0]
    separate_outputs(block, lowered)
    separate_repeats(block, lowered)
    flat = known and target is not None and target.vector.any_length
    weights = list(block.arguments)[len(lowered.inputs) :]
    groups = joined(block, weights, target, in_rows=in_rows)
    cutting = Cutting(
        lowered, block, bodies, joins=not open_images, flat=flat, tiles=known
    )
    for group in groups:
        cutting.draft(group)
    return cutting.program()


def mark(module: ir.Module, *, open_images: bool) -> None:
    """Say what lies in what: slices, borders and parts; nothing may simplify then."""
    if open_images:
        first_slices(module)
    take_in_numbers(module)
    mark_parts(module, tiles=not open_images)  # canonicalize would drop its copies


def follow_all(module: ir.Module, *, tiles: bool, in_rows: bool) -> None:
    """Let what follows products have the shape that it has there.

    tiles: pools, too.  in_rows: and sums of pixels, and turns.
    """
    follow_products(module)
    if tiles:
        pool_tiles(module)
    if in_rows:
        sum_rows(module)
        turn_shapes(module)


def joined(
    block: ir.Block,
    weights: list[ir.Value],
    target: Target | None,
    *,
    in_rows: bool,
) -> list[Group]:
    """The groups of a block that become kernels, before places are given.

    weights: the arguments that are parameters.  in_rows: whether tasks have whole rows
    of images, of sizes that are known.
    """
    groups = join_pools(join_chains(join_leftovers(form_groups(block)), weights))
    if in_rows:
        groups = join_windows(join_sums(groups, weights), weights, target)
    groups = join_pools_that_read_once(groups)
    masks = target is not None and reads_rows_in_part(target)
    groups = absorb_pads(join_results(block, groups), weights, masks=masks)
    if not in_rows:
        return groups
    return join_turns(join_fronts(groups, weights, target), weights)


def pools_in_tiles(target: Target | None) -> bool:
    """Whether tiles and rows are pooled where they are made: pooled.py, pooled_rows.py.

    Not by vectors of any width, which these schedules have none of; nor of open images:
    whether tiles divide one, and a cache holds its rows, depends on its sizes.
    """
    return target is None or not target.vector.scalable


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
