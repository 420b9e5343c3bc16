"""The reduction map of a module: every affine.for, and what it reduces.

A loop's steps may be computed in any order, and in lanes, as far as its reductions are
all that it carries from one to the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nanoloom.ir.mlir import ir, named
from nanoloom_papers.affine.carrier import FOR, Carrier, carried, stored
from nanoloom_papers.affine.chain import Chain, follow

GOES_WITH_IT = "its place is carried with it"


@dataclass(frozen=True)
class Found:
    """One reduction of a loop.  pair: what is carried with it, the place of an extreme.

    Values of MLIR: only for as long as the module stays as it is.
    """

    carrier: Carrier
    chain: Chain
    pair: Carrier | None = None

    @property
    def kind(self) -> str:
        """The operation that combines: a key of nanoloom.nest.reduction.KINDS."""
        return self.chain.kind

    @property
    def obstacle(self) -> str:
        """Why the order of its steps has to stay; "" if it may change."""
        if self.pair is not None:
            return GOES_WITH_IT
        return "; ".join(self.chain.obstacles)


def reduction_map(module: ir.Module) -> list[tuple[ir.Operation, list[Found]]]:
    """Every affine.for, outer ones first, with its reductions."""
    loops = [loop.operation for loop in named(module, FOR)]
    return [(loop, reductions(loop)) for loop in loops]


def reductions(loop: ir.Operation) -> list[Found]:
    """What an affine.for reduces, in values that it carries, then in buffers."""
    carriers = [*carried(loop), *stored(loop)]
    chains = [(carrier, follow(carrier)) for carrier in carriers]
    found = (with_pair(carrier, chain, carriers) for carrier, chain in chains if chain)
    return [each for each in found if each is not None]


def with_pair(
    carrier: Carrier, chain: Chain, carriers: Sequence[Carrier]
) -> Found | None:
    """A reduction with what its comparison selects besides; None if that goes on."""
    selects = [(op, step.side) for step in chain.steps for op in step.companions]
    if not selects:
        return Found(carrier, chain)
    if len(selects) != 1:
        return None
    ((select, side),) = selects
    for other in carriers:
        if other != carrier and is_place(other, select, side):
            return Found(carrier, chain, other)
    return None


def is_place(carrier: Carrier, select: ir.Operation, side: int) -> bool:
    """Whether a carrier does nothing but follow a select's condition."""
    taken, kept = select.operands[side], select.operands[3 - side]
    starts = list(carrier.start.uses)
    ends = list(select.results[0].uses)
    return (
        kept == carrier.start
        and taken != carrier.start
        and len(starts) == 1
        and len(ends) == 1
        and ends[0].owner.operation == carrier.end
        and ends[0].operand_number == carrier.place
    )
