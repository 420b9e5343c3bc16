"""Register tiles of any semiring: a reduction whose columns are vectors.

    for task (rows, a panel of columns):
        for chunk of the reduced axes: panel = right[chunk, columns]
            for tile of rows:
                for k of the chunk: for row, vector of the tile:
                    result[row, vector] = combine(left[row, k], panel[k, vector])

For what no nanokernel takes: the smallest of sums, products of integers, windows over
channels.  Rows share the vectors of a panel, vectors share the numbers of a row.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from nanoloom.nest.contraction import bits
from nanoloom.nest.extent import Lanes
from nanoloom.nest.granularity import BLOCK_ROWS, FEWEST_TASKS, TASK_ELEMENTS
from nanoloom.nest.nest import LoopNest, Role
from nanoloom.nest.statement import Statement
from nanoloom.schedule import register_tile
from nanoloom.schedule.language import (
    ALL,
    Candidate,
    CopyOperand,
    Directive,
    Parallel,
    Schedule,
    Tile,
)
from nanoloom.schedule.library import schedule_implicit_padding as implicit
from nanoloom.schedule.library import tile_width
from nanoloom.schedule.library.candidates import with_candidates
from nanoloom.schedule.library.copy_rhs import COPY_TILES
from nanoloom.schedule.library.finish_at_tile import at_tile, is_finished, points
from nanoloom.schedule.library.k_groups import (
    grouped,
    grouped_in_iteration,
    interleaved_steps,
    panels,
    whole_groups,
)
from nanoloom.schedule.library.k_unrolling import factors_in_iteration, unroll_k
from nanoloom.schedule.library.product_form import Form, form_of
from nanoloom.schedule.library.row_block import row_block
from nanoloom.schedule.library.semiring import step_cost
from nanoloom.schedule.library.vectors import (
    GROUPED,
    lanes_of,
    vectors,
    width,
)
from nanoloom.schedule.library.widening_copies import is_widened, wide_copies
from nanoloom.schedule.register_tile import RegisterTile
from nanoloom.target.facts import ADDRESSES, MOST_VECTORS, Target
from nanoloom.target.instructions.choose import MATRIX_ROWS


def register_tiles(nest: LoopNest, last: Statement, target: Target) -> Schedule | None:
    """Tasks of rows and panels, register tiles inside; None for another form."""
    form = form_of(nest, last)
    if form is None or len(form.right) == len(form.stage.reads):
        return None
    if len(form.stage.body) < len(form.stage.reads):
        return None  # what no operation takes tells extents, of a pool's windows
    return tiled(nest, last, form, target)


def columns_only(nest: LoopNest, last: Statement, target: Target) -> Schedule | None:
    """The same for what has no rows: some vectors of columns at once.

    Beside what is reduced it reads numbers of the columns themselves, if any.
    """
    form = form_of(nest, last)
    if form is None or form.row:
        return None
    if any({*read.axes} & {*form.reduced} for read in form.stage.reads[1:]):
        return None
    return tiled(nest, last, form, target)


def tiled(nest: LoopNest, last: Statement, form: Form, target: Target) -> Schedule:
    """The cheapest tile, and the others that were weighed."""
    woven = interleaved_steps(nest, form, target)
    tiles = tiles_of(form, lanes_of(form.stage, target), target, woven)

    def weighed() -> Iterator[Candidate]:
        for tile in tiles:
            yield Candidate(*with_tile(nest, last, form, tile, target), tile.cost)

    return with_candidates(with_tile(nest, last, form, tiles[0], target), weighed)


def with_tile(
    nest: LoopNest, last: Statement, form: Form, tile: RegisterTile, target: Target
) -> tuple[tuple[Directive, ...], str]:
    """Tasks, and the loops of a form inside them, with the reason."""
    stage = form.stage
    lanes, vectors = tile_width.lanes_of_tile(nest, stage, tile, target)
    columns = tile_width.panel_columns(lanes, vectors, target)
    packings: tuple[Directive, ...] = ()
    if steps := interleaved_steps(nest, form, target):
        packing, columns = panels(nest, form, steps, columns, lanes.count)
        packings = (packing,)
    chunks = chunk_sizes(form, min(columns, form.extent(form.column)), target)
    pads = implicit.read_in_place(nest, form, chunks, tile.rows * tile.vectors)
    sizes = task_sizes(form, tile, columns, target, in_rows=bool(pads))
    names = stage.names if last == stage else form.parallel
    jam = {form.parallel.index(form.column): vectors}
    if form.row:
        jam = {form.parallel.index(form.row): tile.rows, **jam}
    inner = tile_words(nest, last, form, chunks, lanes, jam, target)
    directives = (
        *packings,
        Parallel(last.name, tuple(sizes.get(name, 0) for name in names), ALL),
        *implicit.without_padding(pads, inner, form, lanes, target),
        *(() if packings else copies(form, tile, columns, sizes, target)),
    )
    reason = f"register tile {tile} of {form.row or 'one row'} and {form.column}"
    return directives, reason


def tile_words(
    nest: LoopNest,
    last: Statement,
    form: Form,
    chunks: tuple[int, ...],
    lanes: Lanes,
    jam: dict[int, int],
    target: Target,
) -> tuple[Directive, ...]:
    """The points of a tile; with all that follows, if all of the sum is inside it."""
    stage = form.stage
    axis = form.reduced[-1]
    depth = chunks[stage.place(axis)] or form.extent(axis)
    group = grouped_in_iteration(nest, form, target)
    if group == 1:
        group = factors_in_iteration(form, tuple(jam.values()), target)
    steps = unroll_k(stage.name, axis, depth, target, group)
    if not any(chunks) and is_finished(nest, stage):
        return (*at_tile(nest, stage, last, lanes, jam), *steps)
    others = [other for other in nest.stages if other != stage]
    blocks = (Tile(stage.name, chunks),) if any(chunks) else ()
    return (*blocks, *points(stage, lanes, jam), *steps, *vectors(others, target))


def is_window(nest: LoopNest, last: Statement) -> bool:
    """Whether a nest is a window over channels, of floats that are not packed.

    A nanokernel's task is one row of pixels; here several rows share a panel.
    """
    form = form_of(nest, last)
    if form is None or not form.stage.is_contraction or len(form.reduced) < 2:
        return False
    if len(form.right) == len(form.stage.reads):
        return False
    kinds = {x.element for x in (*form.stage.reads, *form.stage.writes)}
    roles = {nest.buffer(form.stage.reads[n].buffer).role for n in form.right}
    return kinds in ({"f32"}, {"f64"}) and Role.CONSTANT not in roles


def tiles_of(
    form: Form, lanes: int, target: Target, woven: int = 0
) -> list[RegisterTile]:
    """The cheapest register tiles; a row alone has vectors only.

    What is left of the rows is a smaller tile, so that none are wasted.  woven: so many
    steps of the weight lie together; of two rows where those are more than a group.
    """
    rows = form.extent(form.row) if form.row else 1
    columns, unit = form.extent(form.column), target.vector
    step, group = step_cost(form.stage, target, woven), grouped(form.stage, target)
    most, widest = min(rows, most_rows(form, lanes, target)), most_vectors(form, target)
    tiles = [
        RegisterTile(r, v, tile_width.tile_cost(r, v, columns, lanes, unit, step))
        for r, v in register_tile.candidates(unit.registers, step)
        if r <= most and v <= widest and v % group == 0
        if r in (1, most) or woven <= group or r % MATRIX_ROWS == 0
    ]
    ranked = sorted(tiles, key=lambda tile: (round(tile.cost, 3), -tile.vectors))
    return register_tile.best_of_each_width(ranked)


def most_rows(form: Form, lanes: int, target: Target) -> int:
    """Of a tile.  Numbers of integers, of two steps, have the registers of addresses
    where they multiply vectors as they are; an edge has a mask beside the sums."""
    most = ADDRESSES - 2
    integers = form.stage.writes[0].element.startswith("i")
    if not target.isa.scalar_factors or not integers:
        return most
    return most // 2 - bool(form.extent(form.column) % (lanes * GROUPED))


def most_vectors(form: Form, target: Target) -> int:
    """Of a tile.  A row alone widens halves between its sums, in registers."""
    alone = not form.row and is_widened(form.stage, target)
    return GROUPED if alone and target.vector.grouped > 1 else MOST_VECTORS


def task_sizes(
    form: Form, tile: RegisterTile, columns: int, target: Target, *, in_rows: bool
) -> dict[str, int]:
    """Points of each axis of the result that are a task: whole tiles of rows.

    0 for an axis that is left whole.  in_rows: no task ends within an image's row.
    """
    depth = form.extent(*form.reduced)
    rows = form.extent(form.row, *form.blocks)
    panels = form.extent(*form.parallel) * -(-form.extent(form.column) // columns)
    panels //= rows * form.extent(form.column)
    fitting = target.caches.resident // row_bytes(form)
    most = max(BLOCK_ROWS, fitting)
    wanted = max(1, 4 * TASK_ELEMENTS // (depth * tile.vectors))
    wanted = max(wanted, min(most, rows * panels // FEWEST_TASKS))
    sizes = dict.fromkeys(form.parallel, 1)
    for axis in (form.row, *reversed(form.blocks)):
        if axis:
            extent, step = form.extent(axis), tile.rows if axis == form.row else 1
            step = extent if in_rows and axis == form.row else step
            sizes[axis] = row_block(extent, step, max(step, wanted))
            wanted //= sizes[axis]
    sizes[form.column] = columns if form.row else columns * wanted
    whole = {axis for axis in form.parallel if sizes[axis] >= form.extent(axis)}
    if len(whole) == len(sizes):
        whole.remove(form.parallel[0])
        sizes[form.parallel[0]] = form.extent(form.parallel[0])
    return {axis: 0 if axis in whole else size for axis, size in sizes.items()}


def row_bytes(form: Form) -> int:
    """What a row reads that other rows do not; windows of neighbours overlap."""
    left = [r for n, r in enumerate(form.stage.reads) if n not in form.right]
    found = [
        max(1, bits(read.element) // 8)
        * form.extent(*(axis for axis in form.reduced if axis in read.plain))
        for read in left
    ]
    return max(found, default=1)


def chunk_sizes(form: Form, columns: int, target: Target) -> tuple[int, ...]:
    """Points of each reduced axis whose panel stays in the second-level cache.

    0 for an axis that is left whole.
    """
    room = min(target.caches.panel, target.caches.reach)
    room //= columns * panel_bits(form, target) // 8
    sizes = dict.fromkeys(form.stage.names, 0)
    depth = form.extent(*form.reduced)
    if not form.row:  # nothing comes back to a panel
        room = depth
    for axis in form.reduced:
        if depth <= room:
            break
        depth //= form.extent(axis)
        parts = -(-form.extent(axis) * depth // room)
        group = whole_groups(form.stage, target) if axis == form.reduced[-1] else 1
        sizes[axis] = max(1, -(-form.extent(axis) // (parts * group)) * group)
        depth *= sizes[axis]
    return tuple(sizes.values())


def panel_bits(form: Form, target: Target) -> int:
    """Of a number of a panel: narrow ones are those of vectors of any width."""
    sums = bits(form.stage.writes[0].element)
    if not target.vector.any_length or is_widened(form.stage, target):
        return sums
    return max(bits(form.stage.reads[number].element) for number in form.right)


def copies(
    form: Form, tile: RegisterTile, columns: int, sizes: dict[str, int], target: Target
) -> list[Directive]:
    """Copies of the panels that a task reads often, out of rows that lie apart.

    What fills two pages is found in any cache, however it lies."""
    rows = prod(
        size or form.extent(axis)
        for axis, size in sizes.items()
        if axis in (form.row, *form.blocks)
    )
    found: list[Directive] = list(wide_copies(form, target))
    if rows < 2 * COPY_TILES * tile.rows or columns >= form.extent(form.column):
        return found
    taken = {each.operand for each in found if isinstance(each, CopyOperand)}
    for number in sorted({*form.right} - taken):
        read = form.stage.reads[number]
        numbers_ = form.extent(*(a for a in form.reduced if a in read.axes)) * columns
        if numbers_ * bits(read.element) // 8 > 2 * target.caches.page:
            lanes = width(target.lanes(bits(read.element)), target.vector.scalable)
            found.append(CopyOperand(form.stage.name, number, lanes))
    return found
