"""Products by a few numbers that are known while compiling: all steps written out.

    for task: for vector: { load x[0..]; t[0] = 4 x[0] - 5 x[2] + x[4]; t[1] = ...; }

A tile has all rows, so that each vector is read once.  Products by zero are none, those
by one are additions (ir/known_factors.py): what is left is bound by loads and stores.
"""

from __future__ import annotations

from nanoloom.nest.nest import LoopNest
from nanoloom.nest.statement import Statement
from nanoloom.nest.task_sizes import numbers
from nanoloom.nest.task_sizes import task_sizes as sizes_of
from nanoloom.schedule.language import ALL, Parallel, Schedule, Unroll
from nanoloom.schedule.library import tile_width
from nanoloom.schedule.library.candidates import schedule_of
from nanoloom.schedule.library.finish_at_tile import at_tile, is_finished
from nanoloom.schedule.library.product_form import Form, form_of
from nanoloom.schedule.library.vectors import lanes_of
from nanoloom.schedule.register_tile import RegisterTile
from nanoloom.target.facts import MOST_VECTORS, Target


def written_out(nest: LoopNest, last: Statement, target: Target) -> Schedule | None:
    """Tasks of such a product and what follows it; None for another form, and for
    borders, of which each task would make its own."""
    form = form_of(nest, last)
    if form is None or not form.row or not form.stage.factors or nest.pads:
        return None
    stage = form.stage
    if len(form.reduced) != 1 or not is_finished(nest, stage):
        return None
    tile = tile_of(form, lanes_of(stage, target), target)
    lanes, vectors = tile_width.lanes_of_tile(nest, stage, tile, target)
    sizes = task_sizes(form, tile_width.panel_columns(lanes, vectors, target))
    names = stage.names if last == stage else form.parallel
    places = {form.row: tile.rows, form.column: vectors}
    jam = {form.parallel.index(axis): count for axis, count in places.items()}
    (axis,) = form.reduced
    words = (
        Parallel(last.name, tuple(sizes.get(name, 0) for name in names), ALL),
        *at_tile(nest, stage, last, lanes, jam),
        Unroll(stage.name, axis, form.extent(axis)),
    )
    reason = f"known factors: all steps of {tile} of {form.row} and {form.column}"
    return schedule_of(nest, target, (words, reason))


def tile_of(form: Form, lanes: int, target: Target) -> RegisterTile:
    """All rows, of as many vectors as registers hold sums and what is read of, and that
    divide the columns."""
    rows, columns = form.extent(form.row), -(-form.extent(form.column) // lanes)
    room = target.vector.registers // (rows + form.extent(*form.reduced))
    most = max(1, min(room, MOST_VECTORS))
    vectors = next(n for n in range(most, 0, -1) if columns % n == 0)
    return RegisterTile(rows, vectors, 1)


def task_sizes(form: Form, columns: int) -> dict[str, int]:
    """Points of each axis of the result that are a task, 0 for an axis that is whole.

    columns: of a tile.
    """
    stage = form.stage
    parallel = [stage.place(axis) for axis in form.parallel if axis != form.row]
    summed = {stage.place(axis): 1 for axis in form.reduced}
    found = sizes_of(numbers(stage), [*parallel, *summed], summed)
    sizes = {axis: found[stage.place(axis)] for axis in form.parallel}
    block = min(columns, form.extent(form.column))
    sizes[form.column] = max(block, sizes[form.column] // block * block)
    return {axis: 0 if n >= form.extent(axis) else n for axis, n in sizes.items()}
