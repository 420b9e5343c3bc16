"""Code for instructions that this machine lacks, by what they do.

    target = machine("sierraforest", monkeypatch)

compiles for the registers and the nanokernels of a target, but for this machine's code
generator; an instruction that is not here is replaced by its definition
(instruction_meanings.py).
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from nanoloom.ir.mlir import ir, named
from nanoloom.target import Target, by_name
from nanoloom.target.host import host
from nanoloom.target.instructions.choose import DOTS
from nanoloom.vector import passes
from nanoloom.vector.dialect import IN_ORDER
from nanoloom.vector.nanokernel import instructions
from tests.vector.nanokernel.instruction_meanings import in_parts

RELEVANT = {x for dot in DOTS for x in dot.needs} | {
    "avxneconvert", "avx512f", "avx512bw", "avx512dq", "avx512vl",
}  # fmt: skip


def machine(name: str, monkeypatch: pytest.MonkeyPatch) -> Target:
    """A known target whose code runs here, by definitions where it would not."""
    target, here = by_name(name), host()
    wider = target.vector.bits > here.vector.bits
    parts = wider or not (target.extensions & RELEVANT) <= here.extensions
    if parts:
        monkeypatch.setattr(instructions, "emit", in_parts)
        target = replace(target, isa=replace(target.isa, rounds_bf16=frozenset()))
    if wider:  # no register here has a name for it
        monkeypatch.setattr(passes, "keep_order", in_any_order)
    return replace(
        target,
        name=f"{name}-{'in-parts' if parts else 'here'}",
        isa=replace(target.isa, register=here.isa.register),
        triple=here.triple,
        cpu=here.cpu,
        features=here.features,
        abi=here.abi,
        code_model=here.code_model,
        matrix=None,
    )


def in_any_order(module: ir.Module, _: Target) -> None:
    """In place of keep_order: what is to keep an order gives back what it takes."""
    for op in named(module, IN_ORDER):
        given = list(op.operation.operands)
        for result, value in zip(op.operation.results, given, strict=False):
            result.replace_all_uses_with(value)
        op.operation.erase()
