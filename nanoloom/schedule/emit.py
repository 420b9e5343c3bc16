"""A Schedule as a Transform script: the only place that decides what is in it.

The steps that change stages come first; then the loops of the nest that the schedule
makes, from the outside in, each with what is computed inside of it; then what becomes
of the innermost ones.  Stages are found by names (attribute nanoloom.stage).
"""

from __future__ import annotations

from collections.abc import Mapping

from nanoloom.nest.contraction import bits
from nanoloom.nest.extent import Lanes
from nanoloom.nest.implicit_padding import is_at_source, is_padding
from nanoloom.nest.loop import How, Loop, Placement
from nanoloom.nest.nest import LoopNest
from nanoloom.nest.padding import padding
from nanoloom.nest.statement import Statement
from nanoloom.schedule.directives.note import Note, operation_of
from nanoloom.schedule.inner_loops import (
    IN_MEMORY,
    at_tile,
    groups,
    lhs_producers,
    order,
    outer_loops,
)
from nanoloom.schedule.language import (
    Nanokernel,
    Pad,
    Peel,
    Prefetch,
    PrivateAccumulator,
    Schedule,
    SplitReduction,
    Stack,
    Stationary,
    StoreAt,
    TransposeInRegisters,
    VectorizeRest,
)
from nanoloom.schedule.loop_words import loop_words, width
from nanoloom.schedule.packing import Pack
from nanoloom.schedule.transform_writer import Scaled, Size, Steps


def script(schedule: Schedule, nest: LoopNest) -> str:
    """The whole Transform module of a schedule for a nest.

    Raises Error at the first word that is not legal for it.
    """
    writer = Writer(schedule.apply(nest), schedule)
    for directive in schedule.directives:
        match directive:
            case Pack() | Prefetch() | Stack() | VectorizeRest():
                word = operation_of(type(directive))
                writer.steps.of_kernel(word, vars(directive))
            case Peel(stage, axis, at):
                writer.steps.peel(stage, nest.stage(stage).place(axis), at)
            case SplitReduction(stage, _, parts):
                place = len(nest.stage(stage).axes) - 1
                writer.steps.split_reduction(stage, parts, place)
            case PrivateAccumulator(stage):
                writer.steps.own("private_accumulator", stage, {})
            case StoreAt(stage, where):
                writer.store(stage, where)
            case _:
                pass
    for stage in writer.nest.stages:
        if writer.nest.placement(stage.name).at is None:
            writer.stage(stage)
    writer.outside()
    return writer.steps.module(schedule.reason)


class Writer:
    """Writes the loops of a nest, which a schedule has made."""

    def __init__(self, nest: LoopNest, schedule: Schedule) -> None:
        self.nest, self.steps = nest, Steps()
        self.kernels = {
            d.stage: d for d in schedule.directives if isinstance(d, Nanokernel)
        }
        self.padded = {
            (d.stage, d.axis): d.lanes
            for d in schedule.directives
            if isinstance(d, Pad)
        }
        self.stationary = {
            d.stage: d for d in schedule.directives if isinstance(d, Stationary)
        }
        self.turned = {
            d.stage: d
            for d in schedule.directives
            if isinstance(d, TransposeInRegisters)
        }
        self.notes = [d for d in schedule.directives if isinstance(d, Note)]
        self.loops_of: set[str] = set()  # stages that are loops already
        # Whose vectors are of any width: LLVM makes none for what is no stage.
        self.others: dict[int, tuple[Statement, Mapping[str, object]]] = {}
        self.fronts = lhs_producers(nest) | fetching(schedule)

    def stage(self, stage: Statement) -> None:
        """A stage's loops with all that is inside of them, then its vectors."""
        placement = self.nest.placement(stage.name)
        unrolled: list[tuple[str, int]] = []
        for group in groups(self.nest, placement, self.fronts):
            loops = self.loops(stage, placement, group)
            trips = group[0].trips
            if group[0].how is How.UNROLLED and isinstance(trips, int):
                unrolled.append((loops, trips))
            for other in self.nest.stages:
                at = self.nest.placement(other.name).at
                if at == (stage.name, group[-1].name):
                    self.stage(other)
                    if self.stays(other.name):
                        self.steps.own("store_at", other.name, {"where": "task"})
        for loops, trips in reversed(unrolled):  # the outer one's copies have others
            self.steps.unroll(loops, trips)
        self.tile_of(stage)
        self.vectors(stage, placement)

    def tile_of(self, stage: Statement) -> None:
        """What is computed on the points of a stage's tile."""
        for other in self.nest.stages:
            at = self.nest.placement(other.name).at
            if at and at[0] == stage.name and at_tile(self.nest, other):
                self.tile_of(other)
                self.vectors(other, self.nest.placement(other.name))
                self.steps.own("at_tile", other.name, {})

    def loops(
        self, stage: Statement, placement: Placement, group: tuple[Loop, ...]
    ) -> str:
        """Loops of a stage, with the stages inside of them; the innermost's handle."""
        self.loops_of.add(stage.name)
        sizes: list[Size] = [0] * len(stage.axes)
        for loop in group:
            sizes[stage.place(loop.axis)] = size_of(loop, placement)
        names = placement.names[placement.names.index(group[0].name) :]
        inner = [s for s in self.nest.stages if self.stands_in(s, stage, names)]
        tasks = group[0].how is How.PARALLEL
        several = [loop for loop in group if loop.trips != 1]  # others are folded
        slowest = next((n for n, loop in enumerate(several) if loop.slowest), None)
        loop = stage.name, group[-1].name
        name = ".".join(loop) if loop in self.fronts else ""
        fused = [(s.name, is_padding(self.nest, s)) for s in reversed(inner)]
        if self.is_all(stage, inner) and not any(border for _, border in fused):
            return self.steps.fuse_all(stage.name, sizes, tasks, slowest, name)
        return self.steps.tile(stage.name, sizes, tasks, fused, slowest, name)

    def stands_in(
        self, inner: Statement, stage: Statement, loops: tuple[str, ...]
    ) -> bool:
        """Whether a stage is computed inside of some loops of another one."""
        at = self.nest.placement(inner.name).at
        while at is not None:
            if at[0] == stage.name:
                return at[1] in loops
            at = self.nest.placement(at[0]).at
        return False

    def is_all(self, stage: Statement, inner: list[Statement]) -> bool:
        """Whether some stages are all that are in front of one, up to loops."""
        waiting, seen = [stage], {stage.name}
        while waiting:
            for each in self.nest.producers(waiting.pop().name):
                if each in inner:
                    if each.name not in seen:
                        seen.add(each.name)
                        waiting.append(each)
                elif self.stays(each.name) or is_at_source(self.nest, each):
                    continue
                elif each.name not in self.loops_of or self.is_stored(each):
                    return False
        return True

    def store(self, stage: str, where: str) -> None:
        """Where a stage's results lie; of what stays in a loop, when that is made."""
        if not self.stays(stage) and not is_padding(self.nest, self.nest.stage(stage)):
            self.steps.own("store_at", stage, {"where": where})

    def stays(self, stage: str) -> bool:
        """Whether no loop further in than those around a stage takes it in."""
        placement = self.nest.placement(stage)
        return placement.at is not None and placement.stored == IN_MEMORY

    def is_stored(self, stage: Statement) -> bool:
        """Whether a stage is whole before another one reads it."""
        placement = self.nest.placement(stage.name)
        return bool(placement.stored) and placement.at is None

    def vectors(self, stage: Statement, placement: Placement) -> None:
        """What the innermost loops of a stage become."""
        if stage.name in self.kernels:
            self.noted(stage)
            word = self.kernels[stage.name]
            values = {k: v for k, v in vars(word).items() if k != "stage"}
            self.steps.name_loops()
            self.steps.own("nanokernel", stage.name, values)
            return
        for n, lanes in placement.copied:
            values = {"operand": n, **width(lanes), "wide": n in placement.widened}
            self.steps.own("copy_operand", stage.name, values)
        for loop in placement.loops:
            if loop.padded:
                number = padding(stage, loop.axis)
                axis = stage.place(loop.axis)
                lanes = width(self.padded[stage.name, loop.axis])
                values = {"axis": axis, "to": loop.padded, "number": number, **lanes}
                self.steps.own("pad", stage.name, values)
        if placement.hoisted:
            self.steps.name_loops()
        for number, *loop in placement.hoisted:
            values = {"operand": number, "loop": ".".join(loop)}
            self.steps.own("hoist", stage.name, values)
        self.points(stage, placement)
        if stage.name in self.turned:
            turn = vars(self.turned[stage.name]).items()
            said = {name: value for name, value in turn if name != "stage"}
            self.steps.own("transpose_in_registers", stage.name, said)
        axes = order(self.nest, placement)
        if stage.name in self.stationary:
            word = self.stationary[stage.name]
            self.steps.own("stationary", stage.name, fields_of(word, placement, stage))
        elif axes:
            self.steps.own("order", stage.name, {"axes": axes})
        self.noted(stage)

    def noted(self, stage: Statement) -> None:
        """What is said of a stage's code beside its loops."""
        for word in self.notes:
            if word.stage == stage.name:
                self.steps.own(word.word, stage.name, word.fields)

    def points(self, stage: Statement, placement: Placement) -> None:
        """What stands side by side or behind each other in a stage's vector code."""
        count = len(outer_loops(self.nest, placement))
        loops = [x for x in placement.loops[count:] if x.name not in placement.block]
        for word, values in loop_words(stage, tuple(loops)):
            self.steps.own(word, stage.name, values)
            if word == "vectorize" and stage.is_copy:
                self.left(stage, values)
            elif word == "vectorize" and values["scalable"]:
                self.others[bits(stage.writes[0].element)] = stage, values

    def outside(self) -> None:
        """The vectors of what is no stage, behind all that uses loops."""
        for stage, values in self.others.values():
            self.left(stage, values)

    def left(self, stage: Statement, vectors: Mapping[str, object]) -> None:
        """The vectors of a stage that only copies, for what else copies in its place:
        nothing may be left of it but its readers' and writers' own places.
        """
        values = {name: vectors[name] for name in ("lanes", "scalable")}
        element = bits(stage.writes[0].element)
        self.steps.of_kernel("copies", {"bits": element, **values})


def size_of(loop: Loop, placement: Placement) -> Size:
    """What tiling takes for a loop's step."""
    if not loop.scalable:
        return loop.step
    found = (x.trips for x in placement.loops if x.axis == loop.axis)
    lanes = next(x for x in found if isinstance(x, Lanes))
    return Scaled(lanes, loop.step // lanes.count)


def fields_of(
    word: Stationary, placement: Placement, stage: Statement
) -> dict[str, object]:
    """What stays, with loops by the numbers of their axes."""

    def axes(names: tuple[str, ...]) -> list[int]:
        loops = [loop for name in names if (loop := placement.loop(name))]
        return [stage.place(loop.axis) for loop in loops]

    return {
        "anchor": word.anchor,
        "points": axes(word.points),
        "sums": axes(word.sums),
        "resident": [number for pair in word.resident for number in pair],
        "unroll": word.unroll,
    }


def fetching(schedule: Schedule) -> set[tuple[str, str]]:
    """The loops in which the next panel of a weight comes."""
    said = [d for d in schedule.directives if isinstance(d, Prefetch)]
    parts = (name.rpartition(".") for word in said for name in word.loops)
    return {(stage, loop) for stage, _, loop in parts}
