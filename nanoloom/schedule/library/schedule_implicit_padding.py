"""Borders of images that a product leaves out of its sums (nest/implicit_padding.py).

In a nanokernel a tile at an end of an image's row has code of its own.  In loops tiles
are of windows that stay in the image, and the others are computed one by one.
"""

from __future__ import annotations

from nanoloom.nest.contraction import Contraction, roles
from nanoloom.nest.extent import Lanes
from nanoloom.nest.granularity import JAMMED, MOST_WRITTEN
from nanoloom.nest.guard import MOST_ENDS
from nanoloom.nest.implicit_padding import implicit_padding, is_in_quads, tiles_at_ends
from nanoloom.nest.nest import LoopNest
from nanoloom.nest.statement import Statement
from nanoloom.schedule.families import FMA_FAMILY, INT8_DOT
from nanoloom.schedule.language import ComputeAt, Directive, Nanokernel, Unroll
from nanoloom.schedule.library.finish_at_tile import points
from nanoloom.schedule.library.product_form import Form
from nanoloom.target.facts import Target


def implicit_padding_of(
    nest: LoopNest,
    root: Statement,
    shape: Contraction,
    plan: Nanokernel,
    row: int | None,
) -> Statement | None:
    """The pad whose border a nanokernel leaves out, None if it cannot or should not.

    row: the axis of the tile's rows.  Where most tiles are at ends, and all of their
    rows ask, a task makes the border.
    """
    pad = implicit_padding(nest, root)
    if pad is None or nest.in_front(root.name) != (pad,):
        return None
    if is_in_quads(root, shape):
        *_, pixels = root.reads[shape.left].indices
        fits = plan.family == INT8_DOT.name
        fits &= row is not None and root.names[row] in pixels.axes
    else:
        fits = plan.family == FMA_FAMILY.name
        fits &= not plan.convert_lhs and not plan.copy_rhs
    if not fits or row is None:
        return pad if fits else None
    ends = tiles_at_ends(nest, root, root.names[row], plan.rows)
    return pad if ends <= MOST_ENDS else None


def read_in_place(
    nest: LoopNest, form: Form, chunks: tuple[int, ...], points: int
) -> tuple[Statement, ...]:
    """The borders that loops leave out of a sum: all in front of it, or none.

    chunks: of the axes, those of a sum that are cut.  points: of a tile.  Where that is
    at an end of a row is known, and what it does there is written out at each of a few
    steps along it:
    no chunk and no size that is open lies along rows, nor does the innermost axis of
    the sum.  Images have rows of pixels: with channels along them, loops took 1.1 to
    1.3 times the instructions.  A border that is not left out is made by each task.
    """
    stage = form.stage
    found = (
        implicit_padding(nest, stage) if nest.pads and stage.is_contraction else None
    )
    if found is None or nest.pads != (found,) or not adds_nothing(found):
        return ()
    shape = roles(stage)
    if shape is None or is_in_quads(stage, shape):
        return ()
    read = next(x for x in stage.reads if x.buffer == found.writes[0].buffer)
    along = {a for index in read.indices if form.row in index.axes for a in index.axes}
    cut = {name for name, size in zip(stage.names, chunks, strict=True) if size}
    rows = read.indices[-1].axes
    if cut & {*along, form.reduced[-1]} or form.reduced[-1] in {*along, *rows}:
        return ()
    return nest.pads if has_few_taps(stage, along, points) else ()


def adds_nothing(pad: Statement) -> bool:
    """Whether a border is of zeros: loops have no sums of others."""
    return isinstance(pad.outside, str) and not float(pad.outside)


def has_few_taps(stage: Statement, along: set[str], points: int) -> bool:
    """Whether the axes of a row are of sizes that are known, with few steps of sums.

    Each of them is written out: 11 took 1.38 times the instructions of a copy.
    """
    row = [axis for axis in stage.axes if axis.name in along]
    taps = [axis.extent for axis in row if axis.is_reduction]
    known = all(isinstance(axis.extent, int) for axis in row)
    few = all(isinstance(n, int) and n * points <= MOST_WRITTEN for n in taps)
    return known and few


def without_padding(
    pads: tuple[Statement, ...],
    words: tuple[Directive, ...],
    form: Form,
    lanes: Lanes,
    target: Target,
) -> tuple[Directive, ...]:
    """The words of a kernel, with borders at the points of the tile that reads them:
    made nowhere."""
    if not pads:
        return words
    stage, last = form.stage.name, form.reduced[-1]
    names = [pad.name for pad in pads]
    others = [word for word in words if getattr(word, "stage", "") not in names]
    # Few steps of the innermost sum, the channels of an image, are written out.
    few = form.extent(last) <= JAMMED and target.isa.scalar_factors
    if few and not any(isinstance(word, Unroll) for word in words):
        others.append(Unroll(stage, last))
    for pad in pads:
        others += ComputeAt(pad.name, stage, last), *points(pad, lanes, {})
    return tuple(others)
