"""Products whose result is written in another order: y[f, i, j] = t[i, j, f].

t is what a convolution makes of channels-last images, with what follows it at the same
places; y is the same as the model has it.
"""

from __future__ import annotations

from dataclasses import dataclass

from nanoloom.nest.contraction import Contraction, of_rows
from nanoloom.nest.nest import LoopNest, Role
from nanoloom.nest.statement import Statement


@dataclass(frozen=True)
class TransposedResult:
    """A product, what follows it at the same places up to `end`, and the turn.

    inside: the nest without the turn, whose result is what `end` makes.
    """

    product: Statement
    end: Statement
    turn: Statement
    inside: LoopNest

    def sizes(self, wanted: dict[str, int]) -> tuple[int, ...]:
        """Of blocks of the turn, from those of the axes of what `end` writes."""
        pairs = zip(self.end.writes[0].plain, self.turn.reads[0].plain, strict=True)
        names = {transposed_result: axis for axis, transposed_result in pairs}
        return tuple(wanted.get(names[name] or "", 0) for name in self.turn.names)


def is_transpose(stage: Statement) -> bool:
    """Whether a stage writes all that it reads, in another order of its axes."""
    if stage.body or stage.is_reduction or stage.inside is not None:
        return False
    if len(stage.reads) != 1 or len(stage.writes) != 1:
        return False
    read, written = stage.reads[0].plain, stage.writes[0].plain
    same = written == stage.names and sorted(map(str, read)) == sorted(stage.names)
    return same and read[-1:] != written[-1:]


def may_transpose(product: Statement, *, plain: bool) -> Contraction | None:
    """The roles of the axes of a product whose results can be turned in a task.

    plain: nothing follows it; the sums of a matrix may be cut then, and are written
    from a place of their own.
    """
    shape = of_rows(product)
    cut = shape is None or (plain and len(shape.reduced) == 1)
    return None if cut else shape


def transposed_result(nest: LoopNest) -> TransposedResult | None:
    """The parts of a nest that is a product with a parameter, turned at its end."""
    turn = nest.last
    if turn is None or len(nest.products) != 1 or not is_transpose(turn):
        return None
    (product,), (read,) = nest.products, turn.reads
    end = nest.writer(read.buffer)
    shape = may_transpose(product, plain=end == product)
    if end is None or shape is None:
        return None
    weights = nest.buffer(product.reads[shape.right].buffer)
    if weights.role is not Role.CONSTANT:
        return None
    stages = tuple(stage for stage in nest.stages if stage != turn)
    return TransposedResult(
        product, end, turn, LoopNest(nest.buffers, stages, (read.buffer,))
    )
