"""The kernels stage: one function on tensors becomes kernels, calls and buffers.

In:  @main of the linalg stage.
Out: a `Program`: equal kernels are made once, buffers have their place in the arena.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from blake3 import blake3

from nanoloom.kernels.attention import join_attention
from nanoloom.kernels.fold import base, fold_copies, pack_right_operands
from nanoloom.kernels.group import Group, form_groups, is_movable
from nanoloom.kernels.outline import (
    copy,
    describe,
    external_inputs,
    group_results,
    outline,
)
from nanoloom.kernels.plan import Lifetime, plan
from nanoloom.kernels.program import Call, Kernel, Place, Program, Space
from nanoloom.linalg.stage import LinalgModule
from nanoloom.mlir import ir, named, run_pipeline, tensor

SIMPLIFY = (
    "canonicalize",
    "cse",
    "linalg-fold-unit-extent-dims",  # [1, 128, 768] is a matrix: fewer loops
    "canonicalize",  # removes the pairs of reshapes that the line above leaves
    "cse",
)


def cut(lowered: LinalgModule) -> Program:
    """Cut a linalg module into kernels (the module is changed in place)."""
    run_pipeline(lowered.module, SIMPLIFY)
    fold_copies(lowered.module)
    pack_right_operands(lowered.module, len(lowered.inputs))
    run_pipeline(lowered.module, ("canonicalize", "cse"))
    main = lowered.module.body.operations[0]
    block = main.operation.regions[0].blocks[0]
    separate_outputs(block)
    cutting = Cutting(lowered, block)
    for group in join_attention(form_groups(block)):
        cutting.call(group)
    return cutting.program()


def separate_outputs(block: ir.Block) -> None:
    """Returned values get bytes of their own: copy arguments and repeated values."""
    returned = list(block.operations)[-1]
    seen: set[ir.Value] = set()
    for i, value in enumerate(returned.operation.operands):
        source = base(value)
        owner = source.owner
        free = isinstance(owner, ir.Block) or is_movable(owner.opview)
        if source in seen or free:
            with ir.InsertionPoint(returned), ir.Location.unknown():
                kind = ir.RankedTensorType(value.type)
                target = tensor.empty(kind.shape, kind.element_type)
                returned.operation.operands[i] = copy(value, target)
            continue
        seen.add(source)


def bytes_of(kind: ir.Type) -> int:
    shaped = ir.RankedTensorType(kind)
    element = shaped.element_type
    width = 8 if isinstance(element, ir.IndexType) else element.width  # type: ignore[attr-defined]
    return int(np.prod(shaped.shape, dtype=np.int64)) * max(width // 8, 1)


@dataclass
class Cutting:
    """The program while it is put together."""

    lowered: LinalgModule
    block: ir.Block
    kernels: dict[str, Kernel] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    calls: list[Call] = field(default_factory=list)
    places: dict[ir.Value, Place] = field(default_factory=dict)
    sizes: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        count = len(self.lowered.inputs)
        for i, argument in enumerate(self.block.arguments):
            space = Space.INPUT if i < count else Space.PARAMETER
            self.places[argument] = Place(space, i if i < count else i - count)
        returned = list(self.block.operations)[-1]
        for i, value in enumerate(returned.operation.operands):
            self.places[base(value)] = Place(Space.OUTPUT, i)

    def call(self, group: Group) -> None:
        values = external_inputs(group)
        places = [self.place(value) for value in values]
        constants = tuple(p.space is Space.PARAMETER for p in places)
        results = group_results(group)
        for result in results:
            if result not in self.places:
                self.places[result] = Place(Space.ARENA, len(self.sizes))
                self.sizes.append(bytes_of(result.type))
        if all(bytes_of(result.type) == 0 for result in results):
            return  # nothing to compute
        kernel = self.kernel(group, constants)
        written = [self.places[result] for result in results]
        self.calls.append(Call(kernel, (*places, *written), layer_of(group)))

    def place(self, value: ir.Value) -> Place:
        return self.places[base(value)]

    def kernel(self, group: Group, constants: tuple[bool, ...]) -> str:
        """The name of the group's kernel: that of an equal one if there is one."""
        module = outline(group, constants)
        text = module.operation.get_asm(enable_debug_info=False)
        if text not in self.names:
            name = f"{describe(group)}_{blake3(text.encode()).hexdigest()[:8]}"
            self.names[text] = name
            arguments = module.body.operations[0].operation.regions[0].blocks[0]
            shapes = [
                tuple(ir.RankedTensorType(a.type).shape) for a in arguments.arguments
            ]
            self.kernels[name] = Kernel(
                name, text, group.root.value, group.rows, constants, tuple(shapes)
            )
        return self.names[text]

    def program(self) -> Program:
        lifetimes = self.lifetimes()
        offsets, total = plan(lifetimes)
        return Program(
            self.kernels,
            tuple(self.calls),
            self.lowered.inputs,
            self.lowered.outputs,
            self.lowered.parameters,
            tuple(self.sizes),
            tuple(offsets),
            total,
        )

    def lifetimes(self) -> list[Lifetime]:
        first: dict[int, int] = {}
        last: dict[int, int] = {}
        for step, call in enumerate(self.calls):
            for place in call.arguments:
                if place.space is Space.ARENA:
                    first.setdefault(place.index, step)
                    last[place.index] = step
        return [Lifetime(size, first[i], last[i]) for i, size in enumerate(self.sizes)]


def layer_of(group: Group) -> str:
    """The model's node that the group's main operation comes from."""
    for op in sorted(group.ops, key=lambda op: -len(op.operation.operands)):
        text = str(op.operation.location)
        if text.startswith('loc("'):
            return text[5:-2]
    return ""


def describe_program(program: Program, names: Sequence[str] = ()) -> str:
    """The kernels' text one after another, then the calls: for --emit kernels."""
    wanted = [k for k in program.kernels.values() if not names or k.name in names]
    parts = [k.text.replace("@kernel(", f"@{k.name}(") for k in wanted]
    lines = [
        f"// {call.layer or '-'}: {call.kernel}("
        + ", ".join(f"{p.space.value}{p.index}" for p in call.arguments)
        + ")"
        for call in program.calls
    ]
    return "\n// -----\n".join(parts) + "\n// calls in order:\n" + "\n".join(lines)


__all__ = ["cut", "describe_program", "named"]
