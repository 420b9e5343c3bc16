"""Where what a stage makes lies until it is read."""

from __future__ import annotations

from dataclasses import dataclass, replace

from nanoloom.nest.implicit_padding import AROUND, AT_SOURCE, implicit_padding
from nanoloom.nest.loop import How
from nanoloom.nest.nest import LoopNest
from nanoloom.schedule.directives.directive import Directive, refuse, stage_of
from nanoloom.schedule.inner_loops import IN_MEMORY, at_tile

PLACES = {
    "registers": "registers",
    "task": IN_MEMORY,
    "arena": "the arena",
    "source": AT_SOURCE,
    "padded": AROUND,
}


@dataclass(frozen=True)
class StoreAt(Directive):
    """forall i: t[i] = f(i);  forall i: y[i] = g(t[i])
      ->  forall i: t[i] = f(i), stored in the arena;  forall i: y[i] = g(t[i])

    where: "registers", of a stage that is computed on the points of the register tile
    that reads it.  "task", on the stack or in the scratch memory of the thread that
    runs a task: a part at a time, of a stage that is computed inside of a loop of what
    reads it.  "arena", a whole tensor between two loops over tasks, of one that is not.
    "source", nowhere, of a border around an image: the nanokernel that reads it reads
    the image, and leaves out of its sums what is around it.  "padded", in the task's
    memory as well, of a border around what another stage makes inside of the same loop:
    that one writes into the middle of it, and nothing is copied.
    Without a word what is computed at a tile is in registers, as far as they can take
    it, what else is computed inside of a loop in the task's memory, and a kernel with
    anything between its loops over tasks is a single task.
    """

    stage: str
    where: str

    def apply(self, nest: LoopNest) -> LoopNest:
        stage, placement = stage_of(self, nest, self.stage), nest.placement(self.stage)
        if self.where not in PLACES:
            refuse(self, f"where is {self.where}: one of {', '.join(PLACES)} is wanted")
        if {write.buffer for write in stage.writes} & set(nest.results):
            refuse(self, f"{self.stage} makes a result of the kernel: it has a place")
        if placement.stored:
            refuse(self, f"{self.stage} is stored in {placement.stored} already")
        if self.where == "arena":
            self.require_whole(nest)
        elif self.where == "registers":
            self.require_tile(nest)
        elif self.where == "source":
            self.require_left_out(nest)
        elif self.where == "padded":
            self.require_made(nest)
        elif placement.at is None and has_tasks(nest):
            reason = f"{self.stage} is made in front of the tasks, which share it"
            refuse(self, reason, "compute it inside of their loops, or say arena")
        return nest.moved(replace(placement, stored=PLACES[self.where]))

    def require_tile(self, nest: LoopNest) -> None:
        """That what reads the stage has it at its own points."""
        at = nest.placement(self.stage).at
        if at is None:
            reason = f"{self.stage} is not computed inside of what reads it"
            refuse(self, reason, "ComputeAt, then points side by side")
        if not at_tile(nest, nest.stage(self.stage)):
            here = f"{self.stage} is not computed at a tile of {at[0]}"
            inside = f"inside of {at[1]} only points side by side, the same of both"
            refuse(self, f"{here}: {inside}, are in registers")

    def require_left_out(self, nest: LoopNest) -> None:
        """That a product reads what is within a border, and can leave it out."""
        stage = nest.stage(self.stage)
        if nest.placement(self.stage).at is not None:
            reason = f"{self.stage} is computed inside of another stage's loops"
            refuse(self, reason, "this word comes first")
        if stage not in [implicit_padding(nest, product) for product in nest.products]:
            reason = f"{self.stage} is no border that a product can leave out"
            refuse(self, reason, "store it in the task")

    def require_made(self, nest: LoopNest) -> None:
        """That what is inside of a border is made with it, and for nothing else."""
        stage, at = nest.stage(self.stage), nest.placement(self.stage).at
        if stage.inside is None or at is None:
            reason = f"{self.stage} is no border that is made inside of a loop"
            refuse(self, reason, "ComputeAt the loop of what reads it")
        source = nest.writer(stage.inside.buffer)
        if source is None or nest.consumers(source.name) != (stage,):
            refuse(self, f"what {self.stage} is around is not made for it alone")
        if nest.placement(source.name).at != at:
            where = f"{at[1]} of {at[0]}"
            refuse(self, f"{source.name} is not computed inside of {where}, too")

    def require_whole(self, nest: LoopNest) -> None:
        """That the stage makes all that it makes at once, in an order of its own."""
        stage, at = nest.stage(self.stage), nest.placement(self.stage).at
        if at is not None:
            inside = f"{self.stage} is computed inside of {at[1]} of {at[0]}"
            refuse(self, f"{inside}: each task has a part of its own")
        if len(stage.writes) != 1:
            refuse(self, f"{self.stage} has {len(stage.writes)} results, not one")


def has_tasks(nest: LoopNest) -> bool:
    """Whether a kernel has loops over tasks."""
    placed = (nest.placement(stage.name) for stage in nest.stages)
    return any(loop.how is How.PARALLEL for each in placed for loop in each.loops)
