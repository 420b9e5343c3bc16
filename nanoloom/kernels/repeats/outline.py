"""Bodies of loops become functions of their own, to be cut into kernels like a model.

h, y = scf.for t: {...}   ->   h, y = call @repeat_0(h0, y0, x, ...)
@main of the body: (h, x[t], ...) -> (h, y[t])
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from nanoloom.fusion.group import Group
from nanoloom.fusion.group_values import external_inputs
from nanoloom.fusion.outline import clone
from nanoloom.ir.linalg_query import Kind, Op, element_bytes
from nanoloom.ir.mlir import func, ir, named
from nanoloom.kernels.repeats.bodies import Body, block_of, take_apart
from nanoloom.linalg.builder.loops import FLAG, LIMIT, REPEAT, TRIPS
from nanoloom.linalg.parameters import name_arguments
from nanoloom.linalg.stage import LinalgModule, Moving, Repetition, Spec

LOOPS = ("scf.for", "scf.while")


def outline_repeats(lowered: LinalgModule) -> LinalgModule:
    """The module with calls in place of its recurrences (changed in place).

    A loop within a loop stays in the kernel around it, as does one whose trips are not
    known, or which reads its own results at places of its choice.
    """
    repeats: dict[str, Repetition] = {}
    follows = False  # whether the loop in front of this one became a repetition
    for loop in named(lowered.module, *LOOPS):
        if REPEAT not in loop.operation.attributes or not is_at_top(loop):
            continue
        beside = follows and bool(loop.operation.attributes[REPEAT].value)  # type: ignore[attr-defined] - MLIR's stubs know no kinds of attributes
        body, name = take_apart(loop), f"repeat_{len(repeats)}"
        made = None if body is None else outline_body(lowered, loop, body, name)
        follows = made is not None
        if made is not None:
            repeats[name] = replace(made, beside=beside)
    for loop in named(lowered.module, *LOOPS):
        unmark(loop)
    for each in repeats.values():
        for loop in named(each.body.module, *LOOPS):
            unmark(loop)
    lowered.module.operation.verify()
    return replace(lowered, repeats=repeats)


def unmark(loop: Op) -> None:
    """Of a loop that stays in its kernel: nobody asks what ends it."""
    for name in (TRIPS, FLAG, LIMIT):
        if name in loop.operation.attributes:
            del loop.operation.attributes[name]


def is_at_top(op: Op) -> bool:
    parent = op.operation.parent
    return parent is not None and parent.name == "func.func"


def outline_body(
    lowered: LinalgModule, loop: Op, body: Body, name: str
) -> Repetition | None:
    """Replace a loop by a call; None, and no change, where a body reads scalars."""
    block = block_of(loop)
    kept = [op for op in block.operations if op.operation not in body.left]
    values = external_inputs(Group(kept, Kind.OPAQUE, 0)) if kept else []
    made = {r for op in kept for r in op.operation.results}
    values += [v for v, _ in body.outputs if v not in made and v not in values]
    values = list(dict.fromkeys(values))
    if not all(isinstance(v.type, ir.RankedTensorType) for v in values):
        return None
    main = lowered.module.body.operations[0].operation.regions[0].blocks[0]
    arguments = list(main.arguments)[len(lowered.inputs) :]
    known = dict(zip(arguments, lowered.parameters, strict=True))
    read = [v for v in values if v not in known]
    weights = [v for v in values if v in known]
    count = len(body.carried)
    captured: list[ir.Value] = []
    inputs = tuple(moving_of(body, v, captured, count) for v in read)
    module = function_of(kept, [*read, *weights], [v for v, _ in body.outputs])
    name_arguments(
        module.body.operations[0],  # type: ignore[arg-type] - a function
        [f"{name}.{i}" for i in range(len(read))],
        [known[v] for v in weights],
    )
    module.operation.verify()
    own = LinalgModule(
        module,
        tuple(map(spec_of, read)),
        tuple(spec_of(v) for v, _ in body.outputs),
        tuple(known[v] for v in weights),
    )
    call_instead(lowered.module, loop, body, captured, name)
    return Repetition(
        body.trips,
        own,
        inputs,
        tuple(m for _, m in body.outputs),
        limit=body.limit,
        flag=body.flag,
    )


def moving_of(
    body: Body, value: ir.Value, captured: list[ir.Value], count: int
) -> Moving:
    """Which operand of the call an input of the body is, and where it lies in it."""
    if value in body.carried:
        number = body.carried.index(value)
        return Moving(number, is_state=number in body.states)
    source, moving = body.reads.get(value, (value, Moving(0)))
    if source not in captured:
        captured.append(source)
    return replace(moving, number=count + captured.index(source))


def function_of(
    kept: list[Op], arguments: list[ir.Value], results: list[ir.Value]
) -> ir.Module:
    """@main of some operations, with the values that they read as its arguments."""
    module = ir.Module.create(ir.Location.unknown())
    kinds = [v.type for v in arguments], [v.type for v in results]
    with ir.InsertionPoint(module.body), ir.Location.unknown():
        main = func.FuncOp("main", ir.FunctionType.get(*kinds))
        entry = main.add_entry_block()
    mapping = dict(zip(arguments, entry.arguments, strict=True))
    with ir.InsertionPoint(entry), ir.Location.unknown():
        for op in kept:
            clone(op.operation, mapping)
        func.ReturnOp([mapping[v] for v in results])
    return module


def call_instead(
    module: ir.Module, loop: Op, body: Body, captured: list[ir.Value], name: str
) -> None:
    initial = list(loop.operation.operands)[-len(body.carried) :]
    operands = [*initial, *captured]
    kinds = [v.type for v in initial]
    with ir.InsertionPoint(module.body), ir.Location.unknown():
        signature = ir.FunctionType.get([v.type for v in operands], kinds)
        func.FuncOp(name, signature, visibility="private")
    with ir.InsertionPoint(loop), loop.operation.location:
        callee = {"callee": ir.FlatSymbolRefAttr.get(name)}
        call = ir.Operation.create("func.call", kinds, operands, callee)
    for number, (old, new) in enumerate(
        zip(list(loop.operation.results)[-len(initial) :], call.results, strict=True)
    ):
        old.replace_all_uses_with(initial[number] if number in body.fixed else new)
    loop.operation.erase()


def spec_of(value: ir.Value) -> Spec:
    """Shape and width of a tensor between a loop and its body; nobody asks for more."""
    kind = ir.RankedTensorType(value.type)
    return Spec("", tuple(kind.shape), np.dtype(f"V{element_bytes(kind)}"))
