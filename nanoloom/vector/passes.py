"""The passes behind a kernel's script, in order.

What a pass brings about holds from there on, and each says what must hold before it:
the tests check that between passes (conditions.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from nanoloom.ir.mlir import ir, memref, named, run_pipeline, sign
from nanoloom.schedule.language import Prefetch
from nanoloom.target.facts import Target
from nanoloom.vector.balanced_tasks import balance_tasks
from nanoloom.vector.body_indices import write_out_places
from nanoloom.vector.conditions import (
    IN_PHASES,
    NO_ALLOCATIONS,
    NO_COPIES,
    NO_GENERICS,
    NO_INSTRUCTIONS,
    NO_LOOKUPS,
    NO_MATRIX_TILES,
    NO_ORDERS,
    NO_PLACES_IN_BODIES,
    OF_KNOWN_SIZE,
    ON_BUFFERS,
    RETURNS_NOTHING,
    Condition,
)
from nanoloom.vector.copy_operand import make_copies
from nanoloom.vector.directives import Directives
from nanoloom.vector.dynamic_extents import read_extents
from nanoloom.vector.dynamic_scratch import place_sized
from nanoloom.vector.extremes import use_extremes
from nanoloom.vector.float_casts import cast_by_integers
from nanoloom.vector.math.expand import expand_doubles
from nanoloom.vector.math.scale import scale_powers
from nanoloom.vector.nanokernel import instructions
from nanoloom.vector.nanokernel.amx import panels, product
from nanoloom.vector.nanokernel.sme import product as outer
from nanoloom.vector.nanokernel.tile.instruction_order import keep_order
from nanoloom.vector.nanokernel.tile.partial_stores import (
    skip_absent_rows,
    store_unmasked,
)
from nanoloom.vector.number_products import use_number_products
from nanoloom.vector.prefetch import fetch_panels
from nanoloom.vector.read_buffers import read_buffers, read_where_it_lies
from nanoloom.vector.redundant_copies import drop_redundant_copies
from nanoloom.vector.scratch_memory import place_temporaries
from nanoloom.vector.store_at import (
    arena_bytes,
    arena_count,
)
from nanoloom.vector.stores_in_parts import store_in_parts
from nanoloom.vector.table_lookups import make_lookups
from nanoloom.vector.tasks import split_into_phases
from nanoloom.vector.temporaries import bound_temporaries
from nanoloom.vector.vector_copies import copies_to_generics
from nanoloom.vector.vectorize_loops import vectorize_loops
from nanoloom.vector.vectorize_plain_loops import vectorize_plain_loops


@dataclass
class Work:
    """A kernel on its way.

    said: of its script.  strict: what that says and cannot be is an error, also where
    loops are as right without it.  phases: their names and numbers of tasks, COUNTED
    where sizes decide.  arena_bytes: of each tensor between phases, an argument behind
    the results.
    """

    module: ir.Module
    target: Target
    said: Directives
    strict: bool = False
    phases: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])
    arena_bytes: tuple[int, ...] = ()


@dataclass(frozen=True)
class Pass:
    """A rewriting.  needs: what holds before it; makes: what holds behind it."""

    run: Callable[[Work], None]
    needs: tuple[Condition, ...] = ()
    makes: tuple[Condition, ...] = ()


EMPTY = "tensor.empty"
FEWER_TENSORS = ("eliminate-empty-tensors",)  # results are computed where wanted
TO_BUFFERS = (
    "one-shot-bufferize{bufferize-function-boundaries=1 "
    "function-boundary-type-conversion=identity-layout-map}",
)
CLEAN = ("canonicalize", "cse")


# Arithmetic on f16 and bf16, which only MLIR text has, is f32's and rounded each time:
# LLVM would call functions for it where the target has no instructions.
IN_F32 = ("arith-emulate-unsupported-floats{source-types=bf16,f16 target-type=f32}",)


def to_buffers(work: Work) -> None:
    """Tensors become buffers, results the arguments that stand for them."""
    read_buffers(work.module)
    if named(work.module, EMPTY):  # else it takes as long as bufferizing, for nothing
        run_pipeline(work.module, FEWER_TENSORS, verify=False)
    run_pipeline(work.module, TO_BUFFERS, verify=False)
    read_where_it_lies(work.module)
    run_pipeline(work.module, CLEAN, verify=False)
    drop_redundant_copies(work.module)
    return_nothing(work.module)


def copies_to_loops(work: Work) -> None:
    make_copies(work.module)
    copies_to_generics(work.module, work.said.widths)


def note_vectors(work: Work) -> None:
    """What is no stage gets the vectors that the script says of the rest."""
    vectorize_plain_loops(work.module, work.said.rest)


def note_phases(work: Work) -> None:
    work.arena_bytes = arena_bytes(work.module.body.operations[0].operation)
    work.phases = split_into_phases(work.module)


def place_rooms(work: Work) -> None:
    """Temporaries of bounded size, then those that sizes decide."""
    bound_temporaries(work.module, work.target.vector.vscale_max)
    place_sized(work.module)


def store_masked(work: Work) -> None:
    if any(plan.unmasked_fast_path for plan in work.said.nanokernels):
        store_unmasked(work.module)


PASSES = (
    Pass(to_buffers, makes=(ON_BUFFERS, RETURNS_NOTHING)),
    Pass(copies_to_loops, (ON_BUFFERS, RETURNS_NOTHING), (NO_COPIES,)),
    Pass(note_vectors, (NO_COPIES,)),
    Pass(lambda w: fetch_panels(w.module, w.said.prefetches), (ON_BUFFERS,)),
    Pass(lambda w: skip_absent_rows(w.module), (ON_BUFFERS,)),
    Pass(lambda w: balance_tasks(w.module), (ON_BUFFERS,)),
    Pass(note_phases, (RETURNS_NOTHING, NO_COPIES), (IN_PHASES,)),
    Pass(place_rooms, (IN_PHASES,), (OF_KNOWN_SIZE,)),
    Pass(
        lambda w: lower_matrix_tiles(w.module, w.said.prefetches),
        (IN_PHASES, OF_KNOWN_SIZE),
        (NO_MATRIX_TILES,),
    ),
    Pass(
        lambda w: instructions.make_instructions(w.module),
        (NO_MATRIX_TILES,),
        (NO_INSTRUCTIONS,),
    ),
    Pass(
        lambda w: keep_order(w.module, w.target),
        (NO_MATRIX_TILES, NO_INSTRUCTIONS),
        (NO_ORDERS,),
    ),
    Pass(store_masked, (NO_MATRIX_TILES,)),
    Pass(lambda w: write_out_places(w.module), (NO_COPIES,), (NO_PLACES_IN_BODIES,)),
    Pass(
        lambda w: vectorize_loops(w.module, w.target, strict=w.strict),
        (NO_COPIES, NO_MATRIX_TILES, NO_PLACES_IN_BODIES),
        (NO_GENERICS,),
    ),
    Pass(lambda w: make_lookups(w.module, w.target), (NO_GENERICS,), (NO_LOOKUPS,)),
    Pass(lambda w: use_extremes(w.module, w.target), (NO_GENERICS,)),
    Pass(lambda w: use_number_products(w.module, w.target), (NO_GENERICS,)),
    Pass(
        lambda w: place_temporaries(w.module, w.said.stack),
        (OF_KNOWN_SIZE, NO_GENERICS),
        (NO_ALLOCATIONS,),
    ),
    Pass(lambda w: emulate_small_floats(w.module, w.target), (NO_GENERICS,)),
    Pass(lambda w: scale_powers(w.module, w.target), (NO_GENERICS,)),
    Pass(lambda w: expand_doubles(w.module, w.target), (NO_GENERICS,)),
    Pass(lambda w: store_in_parts(w.module, w.target), (NO_GENERICS,)),
    Pass(lambda w: read_extents(w.module), (IN_PHASES, NO_ALLOCATIONS)),
)


def emulate_small_floats(module: ir.Module, target: Target) -> None:
    """f16 and bf16, as far as the target has no instructions for them."""
    run_pipeline(module, IN_F32, verify=False)
    cast_by_integers(module, target)


def lower_matrix_tiles(module: ir.Module, prefetches: Mapping[int, Prefetch]) -> None:
    """Marked contractions become tile instructions or a call of a function that has
    them, behind all work on buffers."""
    for op in named(module, "linalg.generic"):
        with ir.InsertionPoint(op), op.operation.location:
            if panels.MARK in op.operation.attributes:
                product.lower(op, prefetches)
            elif outer.MARK in op.operation.attributes:
                outer.lower(op, module)


def copied_from(value: ir.Value) -> ir.Value:
    """What a result was copied out of, for its layout alone: from there it goes into
    the argument.  The copy between them goes."""
    if isinstance(value.owner, ir.Block) or value.owner.name != "memref.alloc":
        return value
    uses = [use.owner.operation for use in value.uses]
    copies = [op for op in uses if op.name == "memref.copy"]
    if len(uses) != 2 or len(copies) != 1 or copies[0].operands[1] != value:
        return value
    block = value.owner.operation.block
    ops = [op.operation for op in block.operations]
    if copies[0] not in ops:
        return value
    behind = ops[ops.index(copies[0]) + 1 : -1]
    if not all(
        op.name in ("memref.alloc", "memref.dim") or is_last(op) for op in behind
    ):
        return value  # what may write the source
    source = copies[0].operands[0]
    copies[0].erase()
    return source


def is_last(op: ir.Operation) -> bool:
    """Whether an operation copies what is returned, which nothing reads before."""
    if op.name != "memref.copy":
        return False
    target = op.operands[1]
    if isinstance(target.owner, ir.Block):
        return True
    others = [use.owner.operation for use in target.uses]
    readers = {other.name for other in others if other != op}
    return target.owner.name == "memref.alloc" and readers <= {"func.return"}


def return_nothing(module: ir.Module) -> None:
    """The results are in the last arguments: return nothing, copy if they are not."""
    kernel = module.body.operations[0]
    block = kernel.operation.regions[0].blocks[0]
    returned = list(block.operations)[-1]
    values = list(returned.operation.operands)
    count = len(block.arguments) - arena_count(kernel.operation)
    results = list(block.arguments)[count - len(values) : count]
    with ir.InsertionPoint(returned), ir.Location.unknown():
        for value, result in zip(values, results, strict=True):
            if value != result:
                memref.copy(copied_from(value), result)
        ir.Operation.create("func.return", [], [])
    returned.operation.erase()
    sign(kernel, [])
    if "res_attrs" in kernel.operation.attributes:
        del kernel.operation.attributes["res_attrs"]
