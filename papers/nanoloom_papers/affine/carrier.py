"""What a loop hands from one step to the next: values, and elements of buffers.

affine.for %k = 0 to 8 iter_args(%sum = %zero) {      %sum up to the yield
%old = affine.load %C[%i] ... affine.store %new, %C[%i]    %C[%i], for a loop over %k
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nanoloom.ir.mlir import ir, operations
from nanoloom_papers.affine.location import (
    Location,
    is_apart,
    location_of,
    root_of,
    stays,
)

FOR = "affine.for"
LOAD, STORE = "affine.load", "affine.store"
# What reads or writes a buffer, by the operand that is the buffer.
READS = {LOAD: 0, "memref.load": 0, "affine.vector_load": 0, "vector.load": 0,
         "vector.transfer_read": 0}  # fmt: skip
WRITES = {STORE: 1, "memref.store": 1, "affine.vector_store": 1, "vector.store": 1}
# What reaches no memory: by dialect, and by name.
PURE = ("arith", "math", "index", "complex", "ub")
SILENT = {
    "affine": "for if parallel yield apply min max",
    "memref": """
        alloc alloca dealloc dim get_global cast subview collapse_shape expand_shape
        view reinterpret_cast memory_space_cast transpose
        """,
    "scf": "for if yield",
    "vector": "broadcast fma reduction extract insert shape_cast shuffle",
}


@dataclass(frozen=True)
class Carrier:
    """One value that a loop carries.

    start: as a step begins.  end: the operation that takes it on, by its operand
    `place`.  initial: before the first step, None in a buffer.  location: of a buffer's
    element; position: among the values that the loop carries, -1 in a buffer.
    """

    start: ir.Value
    end: ir.Operation
    place: int
    initial: ir.Value | None = None
    location: Location | None = None
    position: int = -1


def initial_values(loop: ir.Operation) -> list[ir.Value]:
    """The operands of an affine.for behind those of its bounds."""
    bounds = sum(list(loop.attributes["operandSegmentSizes"])[:2])  # type: ignore[call-overload]
    return list(loop.operands)[bounds:]


def carried(loop: ir.Operation) -> list[Carrier]:
    """The values that an affine.for names in its iter_args."""
    block = loop.regions[0].blocks[0]
    *_, last = block.operations
    arguments = list(block.arguments)[1:]
    return [
        Carrier(start, last.operation, position, initial, position=position)
        for position, (start, initial) in enumerate(
            zip(arguments, initial_values(loop), strict=True)
        )
    ]


def stored(loop: ir.Operation) -> list[Carrier]:
    """Elements of buffers that are loaded and stored again in each step of a loop.

    Only those that nothing else in the loop may reach, and only in a loop of which it
    is known what reaches memory.
    """
    inside = [op.operation for op in operations(loop, lambda _: True)][1:]
    if any(not is_known(op) for op in inside):
        return []
    accesses = [op for op in inside if op.name in READS or op.name in WRITES]
    stores = [op for op in accesses if op.name == STORE and is_among(op, loop)]
    found = (carrier_of(store, accesses, loop) for store in stores)
    return [carrier for carrier in found if carrier is not None]


def is_known(op: ir.Operation) -> bool:
    """Whether it is known of an operation what memory it reaches."""
    dialect, _, name = op.name.partition(".")
    silent = dialect in PURE or name in SILENT.get(dialect, "").split()
    return silent or op.name in READS or op.name in WRITES


def is_among(op: ir.Operation, loop: ir.Operation) -> bool:
    """Whether only loops stand between an operation and a loop around it."""
    parent = op.parent.operation
    while parent != loop:
        if parent.name != FOR:
            return False
        parent = parent.parent.operation
    return True


def carrier_of(
    store: ir.Operation, accesses: Sequence[ir.Operation], loop: ir.Operation
) -> Carrier | None:
    """The element that a store writes, if one load before it is its only company."""
    location = location_of(store.opview)
    if not stays(location, loop):
        return None
    loads = [
        op
        for op in accesses
        if op.name == LOAD
        and op.block == store.block
        and location_of(op.opview) == location
    ]
    if len(loads) != 1:
        return None
    (load,) = loads
    if not precedes(load, store):
        return None
    others = (op for op in accesses if op not in (load, store))
    if any(may_reach(op, location, loop) for op in others):
        return None
    return Carrier(load.results[0], store, 0, location=location)


def may_reach(op: ir.Operation, location: Location, loop: ir.Operation) -> bool:
    """Whether an access may be to a location, in any of a loop's steps."""
    number = READS[op.name] if op.name in READS else WRITES[op.name]
    buffer = op.operands[number]
    one, other = root_of(buffer), root_of(location.buffer)
    if one is not None and other is not None and one != other:
        return False
    if op.name not in (LOAD, STORE):
        return True
    return not is_apart(location_of(op.opview), location, loop)


def precedes(one: ir.Operation, other: ir.Operation) -> bool:
    """Whether `one` stands before `other` in their block."""
    for op in one.block.operations:
        if op.operation in (one, other):
            return op.operation == one
    raise AssertionError("not in its block")
