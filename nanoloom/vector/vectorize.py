"""The vector axis and width of a stage: what "nanoloom.vectorize" does.

They stand in an attribute of the operation, which keeps it through tiling, fusion and
bufferization, until it becomes loops (vectorize_loops.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from nanoloom.errors import Error
from nanoloom.ir.linalg_query import Op, extents, is_generic, iterators, maps
from nanoloom.ir.mlir import ir
from nanoloom.nest.extent import Lanes
from nanoloom.schedule.directives.transpose_in_registers import LEAST_BLOCK, MOST_BLOCK
from nanoloom.target.tail_forms import FORMS, MASKED_REMAINDER, VECTOR_LENGTH

VECTOR, UNROLL, JAM = "nanoloom.vector", "nanoloom.unroll", "nanoloom.jam"
ORDER, AHEAD = "nanoloom.order", "nanoloom.ahead"
AT_TILE, TRANSPOSE = "nanoloom.at_tile", "nanoloom.transpose_in_registers"
STATIONARY, POINTS = "nanoloom.stationary", "nanoloom.points"
SUMS, RESIDENT = "nanoloom.sums", "nanoloom.resident"
JOINT, REUSE = "nanoloom.reduce_jointly", "nanoloom.reuse_window"
SCALAR = "nanoloom.scalarize"
INIT, INSTRUCTION = "nanoloom.init_with_addend", "nanoloom.use_instruction"
VERSIONS, BALANCE, TAIL = "nanoloom.versions", "nanoloom.balance", "nanoloom.tail"
MOST_LANES, MOST_CHAINS, MOST_POINTS = 256, 16, 64
MOST_BODIES = 4096  # of the points' and of unrolled steps: some 100 KiB of instructions
Pairs = tuple[tuple[int, int], ...]


def vectorize_stage(
    op: Op, axis: int, lanes: int, scalable: int, chains: int, form: str
) -> None:
    """Note how a stage is vectorized; Error if it cannot be.

    Of a stage that has vectors along another axis, so many become one value: MLIR makes
    an array of registers of vector<5x64xf32>, and such are a tile's points.
    """
    require_axis(op, axis)
    if noted(op, VECTOR)[:1] not in ((), (axis,)):
        if chains > 1 or scalable:
            raise Error("a second axis of vectors has neither chains nor scalable rows")
        require_form(form, (MASKED_REMAINDER,))
        jam_stage(op, axis, lanes)
        return
    require_lanes(lanes, scalable)
    require_form(form, FORMS)
    if form == VECTOR_LENGTH and (not scalable or chains > 1):
        raise Error("a machine is asked for one length of scalable vectors in a round")
    require_power("chains", chains, MOST_CHAINS)
    note(op, VECTOR, axis, lanes, chains, scalable, FORMS.index(form))


def require_lanes(lanes: int, scalable: int) -> None:
    """Error unless there are such vectors."""
    require_power("lanes", lanes, MOST_LANES)
    if scalable and lanes == 1:
        raise Error("lanes = 1: a scalable vector has two at least")


def require_form(form: str, known: Sequence[str]) -> None:
    if form not in known:
        raise Error(f"form = {form!r}: one of {', '.join(known)} is wanted")


def require_power(word: str, value: int, most: int) -> None:
    if not 1 <= value <= most or value & (value - 1):
        raise Error(f"{word} = {value}: a power of two up to {most} is wanted")


def unroll_stage(op: Op, axis: int, count: int = 0) -> None:
    """Note that some steps of a sum stand behind each other, all of them for 0."""
    if require_axis(op, axis) != "reduction":
        raise Error(f"axis {axis} is not summed over: unroll_and_jam is for such")
    if not 0 <= count <= MOST_BODIES:
        raise Error(f"count = {count}: a number from 0 to {MOST_BODIES} is wanted")
    add_pair(op, UNROLL, axis, count)


def jam_stage(op: Op, axis: int, count: int) -> None:
    """Note that some points of an axis are computed at once."""
    if require_axis(op, axis) != "parallel":
        raise Error(f"axis {axis} is summed over: its points wait for each other")
    if not 1 <= count <= MOST_POINTS:
        raise Error(f"count = {count}: a number from 1 to {MOST_POINTS} is wanted")
    add_pair(op, JAM, axis, count)


def order_stage(op: Op, axes: tuple[int, ...]) -> None:
    """Note the order of a stage's loops, outermost first.

    Reductions are inside of all others, in this order, too.
    """
    require_axis(op, 0)
    if sorted(axes) != list(range(len(iterators(op)))):
        wanted = len(iterators(op)) - 1
        raise Error(f"axes = {list(axes)}: each of 0 to {wanted} is wanted once")
    note(op, ORDER, *axes)


def pipeline_stage(op: Op, axis: int) -> None:
    """Note that what an axis's next round reads is loaded a round ahead."""
    require_axis(op, axis)
    note(op, AHEAD, *sorted({*noted(op, AHEAD), axis}))


def transpose_stage(op: Op, block_bits: int, tail_lanes: int) -> None:
    """Note that what lies across a stage's vectors is read in squares."""
    require_axis(op, 0)
    require_power("block_bits", block_bits, MOST_BLOCK)
    require_power("tail_lanes", tail_lanes, MOST_LANES)
    if block_bits < LEAST_BLOCK:
        raise Error(f"block_bits = {block_bits}: at least {LEAST_BLOCK} bits are one")
    if not noted(op, VECTOR):
        raise Error("a stage without vectors transposes nothing")
    note(op, TRANSPOSE, block_bits, tail_lanes)


def stationary_stage(
    op: Op,
    anchor: int,
    points: tuple[int, ...],
    sums: tuple[int, ...],
    resident: tuple[int, ...],
    unroll: int,
) -> None:
    """Note what stays in registers while a stage is computed."""
    for axes, kind in ((points, "parallel"), (sums, "reduction")):
        if any(require_axis(op, axis) != kind for axis in axes):
            raise Error(f"axes {list(axes)}: {kind} ones are wanted")
    count = len(maps(op)) - 1
    if not points or not all(0 <= n <= count for n in (anchor, *resident[::2])):
        raise Error(f"operands count from 0 to {count}, and one axis at least moves")
    bodies = unroll * prod(extents(op)[axis] for axis in sums)
    if (
        len(resident) % 2
        or not 1 <= bodies <= MOST_BODIES
        or min(resident, default=0) < 0
    ):
        raise Error(f"{bodies} points behind each other, {MOST_BODIES} at most")
    if not noted(op, VECTOR):
        raise Error("a stage without vectors keeps none of them")
    note(op, STATIONARY, anchor, unroll)
    for name, words in ((POINTS, points), (SUMS, sums), (RESIDENT, resident)):
        note(op, name, *words)


def at_tile_stage(op: Op) -> None:
    """Note that a stage is computed on the points of what reads it
    (compute_at_tile.py).
    """
    require_axis(op, 0)
    note(op, AT_TILE)


def noting(name: str) -> Callable[..., None]:
    """What a directive does that is only noted on its stage, with its numbers."""

    def note_fields(op: Op, **fields: int | tuple[int, ...]) -> None:
        require_axis(op, 0)
        words = [w if isinstance(w, tuple) else (w,) for w in fields.values()]
        note(op, name, *(number for word in words for number in word))

    return note_fields


def instruction_stage(op: Op, name: str) -> None:
    """Note the instruction that adds several steps of a stage's sum."""
    require_axis(op, 0)
    op.operation.attributes[INSTRUCTION] = ir.StringAttr.get(name)


def add_pair(op: Op, name: str, axis: int, count: int) -> None:
    """Note a number for an axis beside those of others; Error if that is too much."""
    pairs = {**dict(pairs_of(op, name)), axis: count}
    note(op, name, *(number for pair in pairs.items() for number in pair))
    points = prod(count for _, count in pairs_of(op, JAM))
    if points > MOST_POINTS:
        raise Error(
            f"{points} points at once, {MOST_POINTS} at most: no register file holds "
            "their results"
        )
    sizes = extents(op)
    bodies = points * prod(
        count or max(1, sizes[axis]) for axis, count in pairs_of(op, UNROLL)
    )
    if bodies > MOST_BODIES:
        raise Error(
            f"{bodies} times the body stand behind each other, {MOST_BODIES} at most",
            hint="unroll fewer steps",
        )


def require_axis(op: Op, axis: int) -> str:
    """The kind of a stage's loop; Error if there is no such loop."""
    if not is_generic(op):
        raise Error(f"only a stage has axes, not this {op.operation.name}")
    kinds = iterators(op)
    if not 0 <= axis < len(kinds):
        raise Error(f"the stage has axes 0 to {len(kinds) - 1}, not {axis}")
    return kinds[axis]


def note(op: Op, name: str, *words: int) -> None:
    op.operation.attributes[name] = ir.DenseI64ArrayAttr.get(list(words))


def vector_words(axis: int, lanes: Lanes) -> dict[str, ir.Attribute]:
    """What is noted of vectors, for an operation that is made."""
    words = [axis, lanes.count, 1, lanes.scalable, FORMS.index(MASKED_REMAINDER)]
    return {VECTOR: ir.DenseI64ArrayAttr.get(words)}


def noted(op: Op, name: str) -> tuple[int, ...]:
    attributes = op.operation.attributes
    return tuple(attributes[name]) if name in attributes else ()  # type: ignore[call-overload]


def pairs_of(op: Op, name: str) -> Pairs:
    """What is noted as (axis, number) after another."""
    words = noted(op, name)
    return tuple(zip(words[::2], words[1::2], strict=True))
