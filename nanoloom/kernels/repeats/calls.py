"""The calls of a repetition's body as calls of the program around it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from nanoloom.fusion.group import is_movable
from nanoloom.ir.linalg_query import Op, base, bytes_of
from nanoloom.ir.mlir import ir, tensor
from nanoloom.kernels.program import Program
from nanoloom.linalg.builder.pointwise import itself, pointwise
from nanoloom.linalg.stage import LinalgModule, Moving, Repetition
from nanoloom.memory.calls import Call, Place, Repeated, State, Storage, Until


@dataclass(frozen=True)
class Trips:
    """A body's program at work: where its inputs and outputs lie in each trip.

    parameters: the numbers of its parameters in the program around it.  buffers: how
    many of that one's buffers stand in front of its own.  beside: the trips in front of
    it may run at the same time.  until: what ends it.
    """

    program: Program
    trips: int
    inputs: tuple[Place, ...]
    outputs: tuple[Place, ...]
    parameters: tuple[int, ...]
    buffers: int
    beside: bool
    until: Until | None = None

    def calls(self) -> list[Call]:
        return [
            replace(call, arguments=tuple(map(self.place, call.arguments)))
            for call in self.program.calls
        ]

    def repeated(self, first: int) -> Repeated:
        """The repeat of these calls, which are the program's from `first` on."""
        count, points = len(self.program.calls), self.program.points
        trips, beside = self.trips, self.beside
        return Repeated(
            first, count, trips, beside=beside, points=points, until=self.until
        )

    def place(self, inner: Place) -> Place:
        """Where an argument lies in the program around the body."""
        match inner.storage:
            case Storage.ARENA:
                return replace(inner, index=self.buffers + inner.index)
            case Storage.PARAMETER:
                return replace(inner, index=self.parameters[inner.index])
            case Storage.INPUT:
                whole = self.inputs[inner.index]
            case Storage.OUTPUT:
                whole = self.outputs[inner.index]
            case Storage.SIZES:
                return inner
        return replace(whole, offset=whole.offset + inner.offset)


def read_place(
    moving: Moving, operands: Sequence[Place], values: Sequence[ir.Value]
) -> Place:
    """Where an input of a body lies.  operands: places of the call's operands."""
    place = operands[moving.number]
    if moving.is_state:
        return replace(place, state=State(bytes_of(values[moving.number].type), 0))
    return replace(place, offset=place.offset + moving.offset, stride=moving.stride)


def written_place(
    moving: Moving,
    operands: Sequence[Place],
    results: Sequence[Place],
    values: Sequence[ir.Value],
) -> Place:
    """Where an output of a body lies: of a state, where it is not read meanwhile."""
    if moving.is_state:
        state = State(bytes_of(values[moving.number].type), 1)
        return replace(operands[moving.number], state=state)
    place = results[moving.number]
    return replace(place, offset=place.offset + moving.offset, stride=moving.stride)


def until_of(
    repetition: Repetition, operands: Sequence[Place], values: Sequence[ir.Value]
) -> Until | None:
    """What ends a repetition; None where its number of trips is known.

    operands: places of the call's operands.
    """
    if not repetition.is_open:
        return None
    places = [
        read_place(Moving(i, is_state=i in repetition.states), operands, values)
        for i in range(len(values))
    ]
    limit, flag = (
        None if i is None else places[i] for i in (repetition.limit, repetition.flag)
    )
    return Until(limit, flag, tuple(places[i] for i in sorted(repetition.states)))


def is_repeat(op: Op) -> bool:
    """Whether an operation stands for a repetition."""
    return op.operation.name == "func.call"


def callee(call: Op) -> str:
    return call.operation.attributes["callee"].value  # type: ignore[attr-defined] - MLIR's stubs know no kinds of attributes


def repeat_calls(block: ir.Block) -> list[Op]:
    return [op for op in block.operations if is_repeat(op)]


def is_state(value: ir.Value, lowered: LinalgModule) -> bool:
    """Whether a repetition carries a value in its two places."""
    owner = value.owner
    if isinstance(owner, ir.Block) or not is_repeat(owner.opview):
        return False
    number = list(owner.results).index(value)
    return number in lowered.repeats[callee(owner.opview)].states


def separate_repeats(block: ir.Block, lowered: LinalgModule) -> None:
    """What repetitions begin with gets bytes of its own, which they write over.

    Nothing is copied where nothing is known: a tensor that they fill, one behind or
    beside the other.
    """
    first: Op | None = None  # of those beside each other: nothing is to come between
    for call in repeat_calls(block):
        repetition = lowered.repeats[callee(call)]
        first = first if repetition.beside and first is not None else call
        written = repetition.states | repetition.sequences
        for number, value in enumerate(list(call.operation.operands)):
            owner = base(value).owner
            made = not isinstance(owner, ir.Block)
            unknown = made and owner.name == "tensor.empty"  # type: ignore[union-attr] - a block has no name, and `made` rules it out
            free = made and is_movable(owner.opview)  # type: ignore[union-attr] - a block has no name, and `made` rules it out
            behind = made and is_repeat(owner.opview)  # type: ignore[union-attr] - a block has no name, and `made` rules it out
            alone = repetition.beside and behind and len(list(base(value).uses)) == 1
            if (unknown or alone) and number not in repetition.states:
                continue
            if number in written or free:
                place = first if stands_before(value, first) else call
                with ir.InsertionPoint(place), ir.Location.unknown():
                    call.operation.operands[number] = copy_of(value)


def stands_before(value: ir.Value, op: Op) -> bool:
    owner = value.owner
    return isinstance(owner, ir.Block) or owner.is_before_in_block(op.operation)


def copy_of(value: ir.Value) -> ir.Value:
    kind = ir.RankedTensorType(value.type)
    target = tensor.empty(kind.shape, kind.element_type)
    return pointwise([value], target, itself)
