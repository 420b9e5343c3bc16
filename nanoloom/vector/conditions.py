"""What holds of a kernel between the passes of the vector stage."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from nanoloom.ir.mlir import ir, named
from nanoloom.vector.dialect import IN_ORDER, INSTRUCTION, LOOKUP
from nanoloom.vector.nanokernel.amx import panels
from nanoloom.vector.nanokernel.sme import product as outer

MARKS = (panels.MARK, outer.MARK)


@dataclass(frozen=True)
class Condition:
    """Something that holds of a module.

    against: the operations for which it does not.
    """

    name: str
    against: Callable[[ir.Module], Iterator[ir.OpView]]

    def __str__(self) -> str:
        return self.name


def without(name: str, *operations: str) -> Condition:
    """There are no operations of these names."""
    return Condition(name, lambda module: iter(named(module, *operations)))


def below(root: ir.Operation | ir.OpView) -> Iterator[ir.OpView]:
    """All operations inside of one."""
    for region in root.operation.regions:
        for block in region:
            for op in block:
                yield op
                yield from below(op)


def with_tensors(module: ir.Module) -> Iterator[ir.OpView]:
    for op in below(module.operation):
        values = *op.operation.operands, *op.operation.results
        if any(isinstance(value.type, ir.RankedTensorType) for value in values):
            yield op


def with_results(module: ir.Module) -> Iterator[ir.OpView]:
    for op in named(module, "func.return"):
        if list(op.operation.operands):
            yield op


def undivided(module: ir.Module) -> Iterator[ir.OpView]:
    for function in named(module, "func.func"):
        if function.operation.attributes["sym_name"] == ir.StringAttr.get("kernel"):
            yield function


def of_any_size(module: ir.Module) -> Iterator[ir.OpView]:
    for op in named(module, "memref.alloc"):
        if list(op.operation.operands):
            yield op


def matrix_tiles(module: ir.Module) -> Iterator[ir.OpView]:
    for op in named(module, "linalg.generic"):
        if any(mark in op.operation.attributes for mark in MARKS):
            yield op


def places_in_bodies(module: ir.Module) -> Iterator[ir.OpView]:
    for op in named(module, "affine.apply"):
        around = op.operation.parent
        if around is not None and around.name == "linalg.generic":
            yield op


ON_BUFFERS = Condition("no tensors", with_tensors)
RETURNS_NOTHING = Condition("functions return nothing", with_results)
NO_COPIES = without("no copies of buffers", "memref.copy")
IN_PHASES = Condition("every function is a phase", undivided)
OF_KNOWN_SIZE = Condition("temporaries have known sizes", of_any_size)
NO_MATRIX_TILES = Condition("no products marked for matrix tiles", matrix_tiles)
NO_INSTRUCTIONS = without("instructions are calls of LLVM's", INSTRUCTION)
NO_ORDERS = without("orders are kept by the registers' names", IN_ORDER)
NO_PLACES_IN_BODIES = Condition("places are arithmetic", places_in_bodies)
NO_GENERICS = without("loops, no generics", "linalg.generic", "linalg.fill")
NO_LOOKUPS = without("no tables but in memory", LOOKUP)
NO_ALLOCATIONS = without("temporaries lie on the stack or in scratch", "memref.alloc")
