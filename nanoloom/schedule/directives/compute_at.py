"""Where a stage is computed: inside of a loop of what reads it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from nanoloom.nest.extent import Extent
from nanoloom.nest.footprint import Sizes, footprint_inside, larger, read_of
from nanoloom.nest.loop import Placement, plain
from nanoloom.nest.nest import LoopNest
from nanoloom.nest.statement import Statement
from nanoloom.schedule.directives.directive import Directive, loop_of, refuse, stage_of


@dataclass(frozen=True)
class ComputeAt(Directive):
    """for i: f[i] = ..;  for io: for ii: g(f[..])
      ->  for io: { for i of what is read here: f[i] = ..;  for ii: g(f[..]) }

    stage: f; consumer: g; loop: io, one of g's loops.  What several steps read is
    computed in each of them.  At the loop around a register tile, on just the points
    that stand side by side in both, f goes from registers to registers.
    """

    stage: str
    consumer: str
    loop: str

    def apply(self, nest: LoopNest) -> LoopNest:
        stage_of(self, nest, self.stage)
        stage_of(self, nest, self.consumer)
        return at_loop(self, nest, self.stage, self.consumer, self.loop)


def at_loop(
    word: object, nest: LoopNest, stage: str, consumer: str, loop: str
) -> LoopNest:
    """The nest with a stage inside of a loop of another one, and only there."""
    producer, reader = nest.stage(stage), nest.stage(consumer)
    loop_of(word, nest.placement(consumer), loop)
    if producer not in nest.upstream(consumer):
        refuse(word, f"{consumer} reads nothing that {stage} makes")
    if {w.buffer for w in producer.writes} & set(nest.results):
        refuse(word, f"{stage} makes a result of the kernel: it is needed whole")
    if nest.placement(stage).stored:
        where = nest.placement(stage).stored
        refuse(word, f"{stage} is stored in {where} already", "compute it first")
    if is_scheduled(nest.placement(stage), producer):
        refuse(word, f"the loops of {stage} are scheduled already", "compute it first")
    summed = begins_outside(nest, stage, consumer, loop)
    if summed:
        begins = f"{consumer} begins with what {stage} makes"
        refuse(word, f"{begins}: inside of {summed}, a sum, it would begin anew")
    sizes = footprint_inside(reader, nest.placement(consumer), loop)
    wanted = needed(nest, stage, consumer, sizes)
    outside = read_outside(nest, stage, consumer, loop)
    if outside:
        refuse(word, f"{outside} reads {stage} outside of the loop {loop}")
    placement = replace(plain(producer, dict(wanted)), at=(consumer, loop))
    return nest.moved(placement)


def is_scheduled(placement: Placement, stage: Statement) -> bool:
    """Whether words have been said of a stage's own loops, or of what it reads."""
    said = any(loop.padded or loop.ahead for loop in placement.loops)
    return placement.names != stage.names or bool(placement.copied) or said


def begins_outside(nest: LoopNest, stage: str, consumer: str, loop: str) -> str:
    """A loop of a consumer's sum, down to a loop of it, that another stage begins.

    Each of its steps goes on with the results of the one before; "" for none.
    """
    made = {write.buffer for write in nest.stage(stage).writes}
    if not made & set(nest.stage(consumer).begins):
        return ""
    placement = nest.placement(consumer)
    around = placement.loops[: placement.names.index(loop) + 1]
    return next((x.name for x in around if x.is_reduction), "")


def read_outside(nest: LoopNest, stage: str, consumer: str, loop: str) -> str:
    """A stage that reads another one, and is not inside of the loop; "" for none."""
    readers = (s.name for s in nest.consumers(stage))
    outside = (s for s in readers if not stands_inside(nest, s, consumer, loop))
    return next(outside, "")


def needed(
    nest: LoopNest, stage: str, consumer: str, sizes: Sizes
) -> dict[str, Extent]:
    """Points of a stage's axes that one step of a consumer's loop needs."""
    producer = nest.stage(stage)
    found: dict[str, Extent] = {}
    for reader in nest.consumers(stage):
        if reader.name == consumer:
            here = sizes
        else:
            loops = nest.placement(reader.name).loops
            here = {x.axis: x.points or x.trips for x in reversed(loops)}
        for axis, extent in read_of(producer, reader, here).items():
            found[axis] = larger(found.get(axis, 0), extent)
    return found


def stands_inside(nest: LoopNest, stage: str, consumer: str, loop: str) -> bool:
    """Whether a stage is computed inside of a loop, or is what has the loop."""
    if stage == consumer:
        return True
    at = nest.placement(stage).at
    while at is not None:
        if at[0] == consumer:
            names = nest.placement(consumer).names
            return names.index(at[1]) >= names.index(loop)
        at = nest.placement(at[0]).at
    return False
