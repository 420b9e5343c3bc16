"""Which generics are computed on the points of another one's tile.

Those that "nanoloom.at_tile" is said of, in front of what reads them in the same block:
a sum whose results are the tile's points, and what is elementwise, wherever it is read.
One that does not fit is left where it is, a pass of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from nanoloom.errors import Error
from nanoloom.ir.access import SECOND, Access
from nanoloom.ir.linalg_query import body, input_count, map_dims
from nanoloom.ir.mlir import ir
from nanoloom.vector.dynamic_scratch import is_temporary
from nanoloom.vector.init_with_bias import init_with_bias
from nanoloom.vector.inlined_producers import InlinedProducer
from nanoloom.vector.read_guarded import read_guarded
from nanoloom.vector.reduction_init import HARMLESS, SAME, fill_of, root
from nanoloom.vector.register_tile import RegisterTile
from nanoloom.vector.vectorize import AT_TILE, INIT

Plan = Callable[[ir.OpView], RegisterTile | None]


@dataclass
class ComputedTile:
    """A generic, and those that are computed at its tile.

    plans: of it and of them, the last one first.  exact: those whose points are the
    tile's.  between: generics that stay where they are, in front of the last.
    """

    last: ir.OpView
    plan: Plan
    plans: dict[ir.Operation, RegisterTile]
    exact: set[ir.Operation] = field(default_factory=set)
    between: list[ir.Operation] = field(default_factory=list)

    def collect(self) -> None:
        """Walk back from the last generic as far as it goes."""
        self.exact.add(self.last.operation)
        operations = list(self.last.operation.block.operations)
        for op in reversed(operations[: operations.index(self.last)]):
            operation = op.operation
            if operation.name.startswith(HARMLESS):
                continue
            if operation.name != "linalg.generic":
                break
            marked = AT_TILE in operation.attributes
            if not marked or not self.takes(op):
                self.between.append(operation)

    def takes(self, op: ir.OpView) -> bool:
        """Take a generic along, if it can be computed at the tile."""
        operation, readers = op.operation, self.readers(op)
        made = self.plan(op) if readers and self.is_movable(op) else None
        if made is None or len(made.outputs) != 1:
            return False
        if not all(fits(self.plans[r], number, made) for r, number in readers):
            return False
        exact = all(
            r in self.exact and is_permuted(self.plans[r], number)
            for r, number in readers
        )
        if self.is_needed(op, readers) or (made.reduced and not exact):
            return False
        self.plans[operation] = made
        if exact:
            self.exact.add(operation)
        return True

    def readers(self, op: ir.OpView) -> list[tuple[ir.Operation, int]]:
        """Who reads what a generic in front of all of them makes, as which operand."""
        (buffer, *_) = written_by(op.operation)
        found: list[tuple[ir.Operation, int]] = []
        for reader in reversed(list(self.plans)):
            operands = enumerate(list(reader.operands)[: input_count(reader.opview)])
            found += [
                (reader, n) for n, x in operands if x == buffer and is_read(reader, n)
            ]
            if buffer in written_by(reader):
                break
        return found

    def is_movable(self, op: ir.OpView) -> bool:
        """Whether what stays in between neither reads nor writes what it works on."""
        made = roots(written_by(op.operation))
        works_on = roots(op.operation.operands)
        return not any(
            made & roots(other.operands) or works_on & roots(written_by(other))
            for other in self.between
        )

    def is_needed(self, op: ir.OpView, readers: list[tuple[ir.Operation, int]]) -> bool:
        """Whether its numbers are wanted in memory: not if a reader writes over them,
        at the same places, nor by what works on the same buffer in front of it."""
        for reader, number in readers:
            if self.plans[reader].inputs[number] in self.plans[reader].outputs:
                return False
        whole = root(written_by(op.operation)[0])
        fill = fill_of(op, 0)
        mine = {*self.plans, op.operation, *([fill.operation] if fill else [])}
        if isinstance(whole.owner, ir.Block) and not is_temporary(whole):
            return True
        return bool(users(whole) - mine - in_front(op, whole.owner))

    def is_whole(self) -> bool:
        """Whether nothing is written that a point further on reads."""
        changed = roots(written_by(self.last.operation))
        for op, strip in self.plans.items():
            served = self.served(op)
            for number, x in enumerate(strip.inputs):
                inside = op != self.last.operation and number not in served
                if inside and not x.is_scalar and root(x.buffer) in changed:
                    return False
        return True

    def served(self, reader: ir.Operation) -> dict[int, ir.Operation]:
        """The operands of a generic that are computed at the tile, and by what."""
        found: dict[int, ir.Operation] = {}
        order = list(self.plans)
        for number, x in enumerate(self.plans[reader].inputs):
            for op in order[order.index(reader) + 1 :]:
                mine = not x.is_scalar and x.buffer in written_by(op)
                if mine and is_read(reader, number):
                    found[number] = op
                    break
        return found


def compute_at_tile(
    op: ir.OpView,
    strip: RegisterTile,
    plan: Plan,
    started: Callable[[ir.OpView, RegisterTile], RegisterTile],
) -> tuple[RegisterTile, list[ir.OpView]]:
    """A generic with what computes its operands at its tile, and those generics.

    started: a plan with what its results start from.
    """
    tile = ComputedTile(op, plan, {op.operation: strip})
    tile.collect()
    if not tile.is_whole():
        return strip, []
    made: dict[ir.Operation, RegisterTile] = {}
    for each, its in reversed(list(tile.plans.items())):
        sources = {
            number: InlinedProducer(by, made[by])
            for number, by in tile.served(each).items()
        }
        begun = its if each == op.operation else started(each.opview, its)
        begun = replace(begun, sources=sources)
        made[each] = serves(begun_once(begun, tile), each.opview)
    taken = [each.opview for each in tile.plans if each != op.operation]
    return made[op.operation], taken


def begun_once(strip: RegisterTile, tile: ComputedTile) -> RegisterTile:
    """A generic whose sums begin with what it adds to them, where that is said."""
    read = [by for each in tile.plans for by in tile.served(each).values()]

    def begins(number: int, source: InlinedProducer) -> int | None:
        if INIT not in source.made_by.attributes:
            return None
        alone = read.count(source.made_by) == 1
        found = init_with_bias(strip, number, source.strip) if alone else None
        if found is None:
            raise Error(
                "a sum is to begin with what its reader adds, and that adds nothing "
                "from memory to it alone"
            )
        return found

    sources = {
        number: replace(source, begins=begins(number, source))
        for number, source in strip.sources.items()
    }
    return replace(strip, sources=sources)


def serves(strip: RegisterTile, op: ir.OpView) -> RegisterTile:
    """A generic with its sources, but for borders: what is within them is read where
    it lies."""
    inside = read_guarded(strip, op)
    return replace(
        strip,
        inputs=[inside.get(n, x) for n, x in enumerate(strip.inputs)],
        sources={n: x for n, x in strip.sources.items() if n not in inside},
    )


def fits(reader: RegisterTile, number: int, made: RegisterTile) -> bool:
    """Whether what a generic makes can be computed where another one reads it."""
    x, (write,) = reader.inputs[number], made.outputs
    dims = map_dims(write.indexing)
    parallel = [d for d, kind in enumerate(made.kinds) if kind == "parallel"]
    if None in dims or sorted(d for d in dims if d is not None) != parallel:
        return False
    if made.reduced and reader.reduced:
        return False
    access = x.access(reader.dim)
    if access is Access.UNIFORM:
        return not made.reduced
    along = bool(dims) and dims[-1] == made.dim
    if made.guarded is not None and along and reader.takes_second(x):
        return made.lanes.count == SECOND * reader.lanes.count
    return access is Access.CONTIGUOUS and along and made.lanes == reader.lanes


def is_read(reader: ir.Operation, number: int) -> bool:
    """Whether a body takes an operand's numbers: of a pool's window it has only the
    extents, in whatever lies there."""
    return bool(list(body(reader.opview).arguments[number].uses))


def is_permuted(reader: RegisterTile, number: int) -> bool:
    """Whether each point of a generic reads a place of its own."""
    dims = map_dims(reader.inputs[number].indexing)
    return None not in dims and sorted(d for d in dims if d is not None) == list(
        range(len(reader.kinds))
    )


def written_by(op: ir.Operation) -> list[ir.Value]:
    return list(op.operands)[input_count(op.opview) :]


def in_front(op: ir.OpView, alloc: ir.Operation) -> set[ir.Operation]:
    """What stands between a buffer's allocation and an operation, in one block."""
    operations = [each.operation for each in op.operation.block.operations]
    if alloc not in operations:
        return set()
    return set(operations[: operations.index(op.operation)])


def roots(values: Iterable[ir.Value]) -> set[ir.Value]:
    return {root(value) for value in values}


def users(buffer: ir.Value) -> set[ir.Operation]:
    """All that work on a buffer or on parts of it."""
    found: set[ir.Operation] = set()
    for use in buffer.uses:
        user = use.owner.operation
        if user.name in SAME:
            found |= users(user.results[0])
        elif user.name != "memref.dealloc":
            found.add(user)
    return found
