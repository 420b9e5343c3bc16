"""The vector stage: a kernel's schedule is applied, and everything becomes vectors.

In:  a marked kernel on tensors and its Transform script.
Out: phases on buffers, only loops, vectors and scalars in them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from nanoloom.errors import Error
from nanoloom.kernels.linalg_query import Kind
from nanoloom.mlir import function_named, ir, memref, named, run_pipeline
from nanoloom.nest.extent import Lanes
from nanoloom.schedule.families import FAMILIES, SME
from nanoloom.schedule.language import Nanokernel, Prefetch
from nanoloom.schedule.packing import Pack
from nanoloom.target.facts import Target
from nanoloom.vector import bf16_widening, f16_rounding, f16_widening
from nanoloom.vector import vectorize as marks
from nanoloom.vector.bf16_rounding import round_in_integers
from nanoloom.vector.body_indices import write_out_places
from nanoloom.vector.copy_operand import copy_operand, hoist_copy, make_copies
from nanoloom.vector.dynamic_extents import read_extents
from nanoloom.vector.dynamic_scratch import place_sized, rooms_of
from nanoloom.vector.fold_full_slices import fold_full_slices
from nanoloom.vector.ieee_maximum import use_ieee_maximum
from nanoloom.vector.min_max_instructions import use_min_max_instructions
from nanoloom.vector.nanokernel import instructions, row_versions
from nanoloom.vector.nanokernel.amx import panels, product
from nanoloom.vector.nanokernel.sme import product as outer
from nanoloom.vector.nanokernel.tile import epilogue
from nanoloom.vector.nanokernel.tile.fit import require_contraction, require_fit
from nanoloom.vector.nanokernel.tile.instruction_order import keep_order
from nanoloom.vector.nanokernel.tile.tile import tile_of
from nanoloom.vector.nanokernel.tile.unmasked_stores import store_unmasked
from nanoloom.vector.pack import require_packed_reads, use_packed_argument
from nanoloom.vector.packed_reads import read_packed
from nanoloom.vector.pad import pad_stage
from nanoloom.vector.prefetch import fetch_panels, require_fetched, require_numbers
from nanoloom.vector.private_accumulator import use_private_accumulator
from nanoloom.vector.range_instructions import use_range_instructions
from nanoloom.vector.redundant_copies import drop_redundant_copies
from nanoloom.vector.scratch_memory import place_temporaries, scratch_bytes
from nanoloom.vector.skip_absent_rows import skip_absent_rows
from nanoloom.vector.store_at import (
    arena_bytes,
    arena_count,
    join_copies,
    require_left_out,
    store_at,
)
from nanoloom.vector.table_lookups import make_lookups
from nanoloom.vector.tasks import COUNTED, split_into_phases
from nanoloom.vector.temporaries import bound_temporaries
from nanoloom.vector.transform_ops import Meaning, apply_script
from nanoloom.vector.vector_copies import copies_of_stages, copies_to_generics
from nanoloom.vector.vectorize_loops import vectorize_loops
from nanoloom.vector.vectorize_plain_loops import vectorize_plain_loops
from nanoloom.vector.widening_products import use_widening_products

CLEAN = ("canonicalize", "cse")

TO_BUFFERS = (
    "eliminate-empty-tensors",  # results are computed where they are wanted
    "one-shot-bufferize{bufferize-function-boundaries=1 "
    "function-boundary-type-conversion=identity-layout-map}",
    "canonicalize",
    "cse",
)


# Arithmetic on f16 and bf16, which only MLIR text has, is f32's and rounded each time:
# LLVM would call functions for it where the target has no instructions.
IN_F32 = ("arith-emulate-unsupported-floats{source-types=bf16,f16 target-type=f32}",)


# What words on a stage do, with their fields as arguments.
ON_STAGES: Mapping[str, Callable[..., None]] = MappingProxyType({
    "private_accumulator": use_private_accumulator,
    "store_at": store_at,
    "unroll": marks.unroll_stage,
    "unroll_and_jam": marks.jam_stage,
    "copy_operand": copy_operand,
    "hoist": hoist_copy,
    "pad": pad_stage,
    "pipeline": marks.pipeline_stage,
    "transpose_in_registers": marks.transpose_stage,
    "order": marks.order_stage,
    "at_tile": marks.at_tile_stage,
    "stationary": marks.stationary_stage,
})  # fmt: skip


@dataclass(frozen=True)
class Vectorized:
    """What a script made of a kernel.

    phases: their names and numbers of tasks, COUNTED where sizes decide; so is what is
    in scratch_bytes.  packings: of the kernel's weights.
    scratch_bytes: memory that each phase's temporaries take, in each thread.
    arena_bytes: of each tensor between phases, an argument behind the results.
    """

    phases: tuple[tuple[str, int], ...]
    packings: tuple[Pack, ...]
    scratch_bytes: tuple[int, ...]
    arena_bytes: tuple[int, ...] = ()


def vectorize(module: ir.Module, script: str, target: Target) -> Vectorized:
    """Apply a schedule.

    Raises Error, with the script's line, where a step does not parse, apply or fit.
    """
    said = Directives(target)
    tile(module, script, said)
    run_pipeline(module, TO_BUFFERS, verify=False)
    drop_redundant_copies(module)
    return_nothing(module)
    make_copies(module)
    copies_to_generics(module, said.widths)
    vectorize_plain_loops(module, said.widths)
    fetch_panels(module, said.prefetches)
    skip_absent_rows(module)
    between = arena_bytes(module.body.operations[0].operation)
    phases = split_into_phases(module)
    bound_temporaries(module, target.vector.vscale_max)
    place_sized(module)
    lower_matrix_tiles(module, said.prefetches)
    instructions.make_instructions(module)
    keep_order(module, target)
    if any(plan.unmasked_fast_path for plan in said.nanokernels):
        store_unmasked(module)
    write_out_places(module)
    vectorize_loops(module, target)
    make_lookups(module, target)
    for use in (
        use_range_instructions,
        use_ieee_maximum,
        use_min_max_instructions,
        use_widening_products,
    ):
        use(module, target)
    place_temporaries(module)
    emulate_small_floats(module, target)
    read_extents(module)
    module.operation.verify()
    scratch = tuple(
        COUNTED if rooms_of(function_named(module, name)) else bytes_
        for (name, _), bytes_ in zip(phases, scratch_bytes(module, phases), strict=True)
    )
    return Vectorized(tuple(phases), tuple(said.packings), scratch, between)


@dataclass
class Directives:
    """What a script says of a kernel's operands and copies, and of its nanokernels.

    widths: of copies, by the bits of a number.
    """

    target: Target
    packings: list[Pack] = field(default_factory=list[Pack])
    prefetches: dict[int, Prefetch] = field(default_factory=dict[int, Prefetch])
    widths: dict[int, Lanes] = field(default_factory=dict[int, Lanes])
    nanokernels: list[Nanokernel] = field(default_factory=list[Nanokernel])

    @property
    def meanings(self) -> Mapping[str, Meaning]:
        """What the script's operations do."""
        return {
            "nanokernel": self.nanokernel,
            "pack": self.pack,
            "prefetch": self.prefetch,
            "whole_slices": lambda op, _: fold_full_slices(op),
            "copies": self.with_fields(copies_of_stages(self.widths)),
            "vectorize": self.with_fields(self.vectorize),
            **{word: self.with_fields(meaning) for word, meaning in ON_STAGES.items()},
        }

    def with_fields(self, meaning: Callable[..., None]) -> Meaning:
        """A meaning whose arguments are a word's fields, vectors that there are."""

        def checked(op: ir.OpView, fields: dict[str, Any]) -> None:
            if fields.get("scalable") and not self.target.vector.scalable:
                reason = f"no vectors of {self.target} are as wide as the machine says"
                width = f"Lanes({self.target.lanes(32)}) are a register of f32"
                raise Error(f"{reason}: SVE and RVV have such", hint=width)
            meaning(op, **fields)

        return checked

    def nanokernel(self, op: ir.OpView, fields: dict[str, Any]) -> None:
        lanes: dict[str, Any] = {"lanes": Lanes(fields["lanes"])}
        self.nanokernels.append(Nanokernel(**fields | lanes))
        lower(op, self.nanokernels[-1], self.target, self.prefetches)

    def vectorize(self, op: ir.OpView, form: str, **fields: int) -> None:
        marks.vectorize_stage(op, **fields, form=form)
        self.target.require_form(form)

    def pack(self, op: ir.OpView, fields: dict[str, Any]) -> None:
        self.packings.append(Pack(**fields))
        use_packed_argument(op, self.packings[-1])

    def prefetch(self, _: ir.OpView, fields: dict[str, Any]) -> None:
        word = Prefetch(**fields)
        require_numbers(word, self.packings)
        self.prefetches[word.argument] = word


def tile(module: ir.Module, script: str, said: Directives) -> None:
    """Apply a script, whose stages are on tensors still."""
    apply_script(module, script, said.meanings)
    require_fetched(module, said.prefetches, said.packings)
    read_packed(module, said.packings)
    join_copies(module)
    run_pipeline(module, CLEAN, verify=False)
    require_left_out(module)
    require_packed_reads(module)


def lower(
    op: ir.OpView,
    plan: Nanokernel,
    target: Target,
    prefetches: Mapping[int, Prefetch],
) -> None:
    """A tiled contraction becomes the instructions of its family."""
    shape = require_contraction(op)
    require_fit(op, shape, plan, target)
    with ir.InsertionPoint(op), op.operation.location:
        tile = row_versions.balanced(tile_of(op, shape, plan, prefetches))
        if plan.family == SME.name:
            outer.use_outer_products(op, shape, plan, tile.row)
            return
        if FAMILIES[plan.family].tiles:
            panels.use_panels(op, shape, plan, tile.row)
            return
        sums = row_versions.accumulate(tile, target)
        epilogue.finish(tile, sums)


def emulate_small_floats(module: ir.Module, target: Target) -> None:
    """f16 and bf16, as far as the target has no instructions for them."""
    run_pipeline(module, IN_F32, verify=False)
    if not target.rounds_bf16:
        round_in_integers(module)
    if not target.widens_f16:
        f16_widening.widen_in_integers(module)
    if not target.widens_f16 and (target.vector.scalable or target.is_scalar):
        f16_rounding.round_in_integers(module)
    scalable = target.vector.scalable and not target.rounds_bf16
    if scalable or not target.isa.selects_bf16:
        bf16_widening.widen_in_integers(module)


def lower_matrix_tiles(module: ir.Module, prefetches: Mapping[int, Prefetch]) -> None:
    """Marked contractions become tile instructions or a call of a function that has
    them, behind all work on buffers."""
    for op in named(module, "linalg.generic"):
        with ir.InsertionPoint(op), op.operation.location:
            if panels.MARK in op.operation.attributes:
                product.lower(op, prefetches)
            elif outer.MARK in op.operation.attributes:
                outer.lower(op, module)


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
                memref.copy(value, result)
        ir.Operation.create("func.return", [], [])
    returned.operation.erase()
    kinds = [a.type for a in block.arguments]
    kernel.operation.attributes["function_type"] = ir.TypeAttr.get(
        ir.FunctionType.get(kinds, [])
    )
    if "res_attrs" in kernel.operation.attributes:
        del kernel.operation.attributes["res_attrs"]


__all__ = ["Kind", "vectorize"]
