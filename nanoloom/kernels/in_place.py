"""What only changes a part of a tensor is computed in that tensor's memory.

    new = write(part, old)   ->   the kernel writes the part; old and new are one buffer

where nothing reads `old` behind the write: cache rows put at places, updates one after
the other.  A caller may give one place for an input and an output (`Pairs`): then an
output lies in its input's memory.  Where something still needs the old numbers when
the output is made, it is made elsewhere, and copied when all else is done.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field

from nanoloom.errors import InputError
from nanoloom.fusion.group import Group, single
from nanoloom.fusion.group_values import external_inputs, external_uses, group_results
from nanoloom.fusion.insert_in_place import home
from nanoloom.ir.linalg_query import base
from nanoloom.ir.mlir import ir, tensor
from nanoloom.kernels.repeats.calls import is_repeat
from nanoloom.linalg.builder.loops import carried_operand, is_read_behind
from nanoloom.linalg.builder.pointwise import itself, pointwise
from nanoloom.linalg.stage import LinalgModule

Pairs = Sequence[tuple[str, str]]  # names of inputs, and of outputs in their memory


@dataclass(frozen=True)
class Reuse:
    """Whose memory values lie in.

    old: of values that are an update, what they are written over.  inputs: numbers of
    outputs, and of the inputs that they lie in.
    """

    old: Mapping[ir.Value, ir.Value] = field(default_factory=dict[ir.Value, ir.Value])
    inputs: Mapping[int, int] = field(default_factory=dict[int, int])


@dataclass
class Reads:
    """In which groups values are read and written; those of a part as of its whole."""

    groups: Sequence[Group]
    last: dict[ir.Value, int] = field(default_factory=dict[ir.Value, int])
    first_written: dict[ir.Value, int] = field(default_factory=dict[ir.Value, int])

    def __post_init__(self) -> None:
        for number, group in enumerate(self.groups):
            for value in external_inputs(group):
                self.last[home(base(value))] = number
            for value in group_results(group):
                self.first_written.setdefault(home(value), number)


def plan_reuse(
    block: ir.Block, groups: list[Group], lowered: LinalgModule, pairs: Pairs | None
) -> Reuse:
    """Find the updates; groups get copies to outputs that cannot be made in place.

    pairs: None for what runs again and again, in which nothing is updated so.
    """
    if pairs is None:
        return Reuse()
    reads, arguments = Reads(groups), list(block.arguments)
    returned = list(block.operations)[-1].operation
    inputs = numbers_of(lowered, pairs)
    made = {home(base(returned.operands[i])): arguments[x] for i, x in inputs.items()}
    old = updates(reads, {home(base(value)) for value in returned.operands}, made)
    for output, given in inputs.items():
        value = home(base(returned.operands[output]))
        if not may_lie_in(value, arguments[given], old, reads):
            groups.append(copied_last(returned, output))
    return Reuse(old, inputs)


def updates(
    reads: Reads, returned: Set[ir.Value], made: Mapping[ir.Value, ir.Value]
) -> dict[ir.Value, ir.Value]:
    """Values that are an update of one that nobody reads behind it, and that one.

    made: outputs, and the inputs that they lie in; others, parameters, and what
    repetitions make or carry are written over by nobody.
    """
    calls = [group.ops[0] for group in reads.groups if is_repeat(group.ops[0])]
    carried = {home(base(x)) for call in calls for x in call.operation.operands}
    found: dict[ir.Value, ir.Value] = {}
    ends = dict(made)  # of a value, the input that its last update lies in
    for number, group in reversed([*enumerate(reads.groups)]):
        for value in () if is_repeat(group.ops[0]) else group_results(group):
            over = written_over(value, group)
            if over is None or home(value) != value or value in carried:
                continue
            begun = base(over)
            if isinstance(begun.owner, ir.Block):
                own = value in ends and ends[value] == begun
            else:
                own = not is_repeat(begun.owner.opview) and begun not in carried
            own = own and home(begun) == begun and begun not in returned
            if own and reads.last[begun] <= number:
                found[value] = over
                if value in ends:
                    ends[begun] = ends[value]
    return found


def written_over(value: ir.Value, group: Group) -> ir.Value | None:
    """What of outside a group's result is written into, if the group reads no more of
    it: it could read what is written by then."""
    inside = {op.operation for op in group.ops}
    while not isinstance(value.owner, ir.Block) and value.owner in inside:
        number = carried_operand(value)
        if number is None:
            return None
        op = value.owner
        value = op.operands[number]
        if value.owner in inside and is_read_behind(value, op, number):
            return None
    begun = base(value)
    uses = [each for each in external_uses(group) if base(each) == begun]
    return value if uses == [value] else None


def may_lie_in(
    value: ir.Value, given: ir.Value, old: Mapping[ir.Value, ir.Value], reads: Reads
) -> bool:
    """Whether an output, and all that it is an update of, may lie in an input."""
    while True:
        first, begun = reads.first_written.get(value), old.get(value)
        if first is None or is_repeat(reads.groups[first].ops[0]):
            return False
        if begun is None:
            return reads.last.get(given, -1) < first
        value = base(begun)
        if value == given:
            return True


def copied_last(returned: ir.Operation, output: int) -> Group:
    """A group behind all others that copies what was made elsewhere to an output."""
    value = returned.operands[output]
    kind = ir.RankedTensorType(value.type)
    with ir.InsertionPoint(returned), ir.Location.unknown():
        into = tensor.empty(kind.shape, kind.element_type)
        returned.operands[output] = pointwise([value], into, itself)
    return single(returned.operands[output].owner.opview)


def numbers_of(lowered: LinalgModule, pairs: Pairs) -> dict[int, int]:
    """Numbers of outputs and of inputs; InputError for such that cannot be one."""
    inputs = {x.name: (i, x) for i, x in enumerate(lowered.inputs)}
    outputs = {x.name: (i, x) for i, x in enumerate(lowered.outputs)}
    found: dict[int, int] = {}
    for past, present in pairs:
        if past not in inputs or present not in outputs:
            raise InputError(f"{past} is no input, or {present} no output")
        (given, x), (made, y) = inputs[past], outputs[present]
        if (x.shape, x.dtype) != (y.shape, y.dtype):
            reason = f"is {y.dtype}{list(y.shape)}, and {past} is not"
            raise InputError(reason, where=f"output {present}")
        if given in found.values() or made in found:
            raise InputError(f"{past} or {present} is in two pairs")
        found[made] = given
    return found
