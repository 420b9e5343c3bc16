"""A kernel's script, applied: its stages are on tensors before and after.

What it says of copies, prefetches and register tiles is noted for the passes behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from nanoloom.errors import Error
from nanoloom.ir.mlir import ir, run_pipeline
from nanoloom.nest.extent import Lanes
from nanoloom.nest.nest import LoopNest
from nanoloom.schedule.families import FAMILIES, SME
from nanoloom.schedule.language import Nanokernel, Prefetch, Stack, VectorizeRest
from nanoloom.schedule.packing import Pack
from nanoloom.target.facts import Target
from nanoloom.vector import vectorize as marks
from nanoloom.vector.copy_operand import copy_operand, hoist_copy
from nanoloom.vector.fold_full_slices import fold_full_slices
from nanoloom.vector.nanokernel import partial_tiles
from nanoloom.vector.nanokernel.amx import panels
from nanoloom.vector.nanokernel.sme import product as outer
from nanoloom.vector.nanokernel.tile import epilogue
from nanoloom.vector.nanokernel.tile.fit import require_contraction, require_fit
from nanoloom.vector.nanokernel.tile.require_directives import require_tails
from nanoloom.vector.nanokernel.tile.tile import tile_of
from nanoloom.vector.pack import require_packed_reads, use_packed_argument
from nanoloom.vector.packed_reads import read_packed
from nanoloom.vector.pad import pad_stage
from nanoloom.vector.prefetch import require_fetched, require_numbers
from nanoloom.vector.private_accumulator import use_private_accumulator
from nanoloom.vector.store_at import (
    join_copies,
    require_left_out,
    store_at,
)
from nanoloom.vector.transform_ops import Meaning, apply_script
from nanoloom.vector.vector_copies import copies_of_stages

CLEAN = ("canonicalize", "cse")
NO_STAGES = LoopNest((), (), ())


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
    "versions": marks.noting(marks.VERSIONS),
    "balance": marks.noting(marks.BALANCE),
    "tail": marks.noting(marks.TAIL),
    "scalarize": marks.noting(marks.SCALAR),
    "reduce_jointly": marks.noting(marks.JOINT),
    "reuse_window": marks.noting(marks.REUSE),
    "use_instruction": marks.instruction_stage,
    "init_with_addend": marks.noting(marks.INIT),
})  # fmt: skip


@dataclass
class Directives:
    """What a script says of a kernel's operands and copies, and of its nanokernels.

    widths: of copies, by the bits of a number.  stack: bytes of temporaries that are on
    it.  rest: vectors of what is no stage, None for plain loops.
    """

    target: Target
    packings: list[Pack] = field(default_factory=list[Pack])
    prefetches: dict[int, Prefetch] = field(default_factory=dict[int, Prefetch])
    widths: dict[int, Lanes] = field(default_factory=dict[int, Lanes])
    nanokernels: list[Nanokernel] = field(default_factory=list[Nanokernel])
    stack: int = 0
    rest: VectorizeRest | None = None

    @property
    def meanings(self) -> Mapping[str, Meaning]:
        """What the script's operations do."""
        return {
            "nanokernel": self.nanokernel,
            "pack": self.pack,
            "prefetch": self.prefetch,
            "stack": self.set_stack,
            "vectorize_rest": self.set_rest,
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

    def set_stack(self, _: ir.OpView, fields: dict[str, int]) -> None:
        Stack(**fields).apply(NO_STAGES)
        self.stack = fields["bytes"]

    def set_rest(self, _: ir.OpView, fields: dict[str, int]) -> None:
        self.rest = VectorizeRest(fields["bits"], bool(fields["scalable"]))
        self.rest.apply(NO_STAGES)
        if self.rest.scalable and not self.target.vector.scalable:
            raise Error(f"no vectors of {self.target} are as wide as the machine says")

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
        tile = partial_tiles.balanced(tile_of(op, shape, plan, prefetches))
        require_tails(tile)
        if plan.family == SME.name:
            outer.use_outer_products(op, shape, plan, tile.row)
            return
        if FAMILIES[plan.family].tiles:
            panels.use_panels(op, shape, plan, tile.row)
            return
        sums = partial_tiles.accumulate(tile, target)
        epilogue.finish(tile, sums)
