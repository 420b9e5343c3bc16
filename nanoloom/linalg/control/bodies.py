"""If, Loop and Scan: bodies lowered into the regions of `scf` operations.

What a loop carries keeps its shape; a scan output is one tensor, and each trip writes
its part.  (The graph stage has written out the loops whose shapes change.)
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir

from nanoloom.errors import ModelError
from nanoloom.graph.conditions import keeps_running
from nanoloom.graph.types import numpy_dtype, shape_of
from nanoloom.graph.unfit_branch import for_all_sizes
from nanoloom.ir.mlir import arith, ir, scf
from nanoloom.linalg.builder.builder import Builder, tensor_type
from nanoloom.linalg.builder.carried_checks import branch_out
from nanoloom.linalg.builder.checks import Check
from nanoloom.linalg.builder.indexing import INT64
from nanoloom.linalg.builder.loops import repeat
from nanoloom.linalg.builder.node import Node
from nanoloom.linalg.builder.slices import index, read_at, write_at
from nanoloom.linalg.builder.tensor import Tensor
from nanoloom.linalg.control.unfit_branch import failed
from nanoloom.linalg.control.until import End, element, until


def branch(b: Builder, node: Node) -> list[Tensor | None]:
    """If with a condition of run time; both branches give the same shapes."""
    names = "then_branch", "else_branch"
    graphs = [node.graph(name) for name in names]
    outputs = [(shape_of(v), numpy_dtype(v)) for v in graphs[0].outputs]
    kinds = [tensor_type(shape, dtype) for shape, dtype in outputs]
    made = scf.IfOp(element(b, node.input(0)), kinds, has_else=True)
    checks: list[list[Check]] = []
    errors: list[ModelError] = []
    blocks = made.then_block, made.else_block
    for name, graph, block in zip(names, graphs, blocks, strict=True):
        with b.checks.body() as found, ir.InsertionPoint(block):
            try:
                made_here = node.lower_body(graph, [])
            except ModelError as error:  # an error of the run, if it is taken
                if errors:
                    raise
                errors.append(error)
                emptied(block)
                found.clear()
                if b.checks.is_open:  # what does not fit has the size of a sample
                    error = for_all_sizes(node.where, name)
                made_here = failed(b, str(error), outputs)
            scf.YieldOp([b.value(x) for x in made_here])
        checks.append(found)
    results = list(branch_out(b, made.operation, checks).results)
    return [
        b.tensor(value, dtype)
        for value, (_, dtype) in zip(results, outputs, strict=False)
    ]


def emptied(block: ir.Block) -> None:
    """Erase what was written of a body before an error stopped that."""
    for op in reversed(list(block.operations)):
        op.operation.erase()


def loop(b: Builder, node: Node) -> Sequence[Tensor | None]:
    body = node.graph("body")
    carried = [node.input(i) for i in range(2, len(node.inputs))]
    count = len(carried)
    condition, limit = node.optional(1), node.optional(0)
    known = condition is None or condition.is_constant
    starts = condition is None or (known and bool(condition.array().any()))
    trips = int(limit.array().reshape(-1)[0]) if limit and limit.is_constant else None
    if known and not starts:
        trips = 0
    number_shape = shape_of(body.inputs[0])

    def step(
        i: ir.Value, trip: Tensor, running: Tensor, inside: list[Tensor]
    ) -> list[Tensor]:
        arguments = [b.reshape(trip, number_shape), running, *inside[:count]]
        after, *made = node.lower_body(body, arguments)
        grown = [
            write_at(b, x, y, 0, i)
            for x, y in zip(made[count:], inside[count:], strict=True)
        ]
        return [after, *made[:count], *grown]

    if len(body.outputs) > 1 + count:
        rows = [shape[0] for shape in node.output_shapes[count:]]
        scans = zip(body.outputs[1 + count :], rows, strict=True)
        carried += [empty_like(b, x, row) for x, row in scans]
    always = starts and keeps_running(body)
    if trips is None or not (always or trips <= 0):
        running = None if always else condition_of(b, node)
        limit = None if limit is None or trips is not None else b.cast(limit, INT64)
        most = [] if trips is None else [trips]
        most += [x.shape[0] for x in carried[count:]]
        counted = bool(list(body.inputs[0].uses()))
        end = End(running, limit, min(most, default=None), counted)
        return until(b, end, carried, step)
    running = b.constant(np.ones(shape_of(body.inputs[1]), np.bool_))
    # No constant: trips may be a size that is known at run time.
    numbers = b.generate((max(trips, 0),), INT64, lambda t: t)
    return repeat(
        b,
        max(trips, 0),
        carried,
        lambda i, x: step(i, read_at(b, numbers, 0, i), running, x)[1:],
        in_kernels=True,
    )


def condition_of(b: Builder, node: Node) -> Tensor:
    """Whether the first trip of a Loop runs, in the shape that its body has for it."""
    given, shape = node.optional(1), shape_of(node.graph("body").inputs[1])
    if given is None:
        return b.constant(np.ones(shape, np.bool_))
    return b.reshape(given, shape)


def empty_like(b: Builder, value: onnx_ir.Value, trips: int) -> Tensor:
    """Room for what a body gives in all its trips, one after the other."""
    shape, dtype = (trips, *shape_of(value)), numpy_dtype(value)
    return Tensor(shape, dtype, b.empty(shape, dtype))


def scan(b: Builder, node: Node) -> Sequence[Tensor | None]:
    count = node.int("num_scan_inputs")
    given = [node.input(i) for i in range(len(node.inputs))]
    states, inputs = given[: len(given) - count], given[len(given) - count :]
    body = node.graph("body")
    outputs = body.outputs[len(states) :]
    axes = [
        a % x.rank
        for a, x in zip(node.ints("scan_input_axes", [0] * count), inputs, strict=True)
    ]
    into = [
        a % (len(shape_of(x)) + 1)
        for a, x in zip(
            node.ints("scan_output_axes", [0] * len(outputs)), outputs, strict=True
        )
    ]
    turned = node.ints("scan_input_directions", [0] * count)
    turned_out = node.ints("scan_output_directions", [0] * len(outputs))
    trips = inputs[0].shape[axes[0]]
    inputs = [first(b, x, axis) for x, axis in zip(inputs, axes, strict=True)]
    scans = [empty_like(b, x, trips) for x in outputs]

    def step(i: ir.Value, inside: list[Tensor]) -> list[Tensor]:
        back = arith.subi(index(trips - 1), i)
        parts = [
            read_at(b, x, 0, back if turn else i)
            for x, turn in zip(inputs, turned, strict=True)
        ]
        made = node.lower_body(body, [*inside[: len(states)], *parts])
        grown = [
            write_at(b, x, y, 0, back if turn else i)
            for x, y, turn in zip(
                made[len(states) :], inside[len(states) :], turned_out, strict=True
            )
        ]
        return [*made[: len(states)], *grown]

    made = repeat(b, trips, [*states, *scans], step, in_kernels=True)
    grown = zip(made[len(states) :], into, strict=True)
    return [*made[: len(states)], *[last(b, y, axis) for y, axis in grown]]


def first(b: Builder, x: Tensor, axis: int) -> Tensor:
    """x with an axis in front of all others: each trip reads one piece of memory."""
    return b.transpose(x, [axis, *[d for d in range(x.rank) if d != axis]])


def last(b: Builder, x: Tensor, axis: int) -> Tensor:
    """x with its first axis at another place."""
    order = list(range(1, x.rank))
    return b.transpose(x, [*order[:axis], 0, *order[axis:]])


OPERATORS = {"If": branch, "Loop": loop, "Scan": scan}
