"""Graphs inside of a graph: torch's cond, while_loop, scan and map.

    cond(p, f, g, xs)            If(p) { f(xs) } else { g(xs) }
    while_loop(c, f, xs, more)   Loop(c(xs, more), xs) { ys = f(xs, more); c(ys, more) }
    scan(f, init, xs, more)      Scan(init, xs) { f(state, x, more) }
    map(f, xs, more)             Scan(xs) { f(x, more) }

A graph's body reads values around it as they are; what it computes stays in it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import onnx_ir as ir
import torch
from torch import fx

from nanoloom.frontend.torch.call import Call, is_number
from nanoloom.frontend.torch.decomposed import inlined
from nanoloom.frontend.torch.element_types import element_type
from nanoloom.frontend.torch.writer import INT64

if TYPE_CHECKING:
    from nanoloom.frontend.torch.graph import GraphImporter

BOOL = ir.DataType.BOOL


def cond(call: Call, importer: GraphImporter) -> tuple[Any, ...]:
    chosen, *branches, operands = call.node.args
    given = [raw(call, x) for x in operands]  # type: ignore[union-attr] - a tuple, as torch has it
    made: list[ir.Graph] = []
    for graph in branches:
        with body(importer) as inside:
            results = inlined(call.values[graph], given, importer)
            finish(call, inside, results, call.out)
        made.append(inside)
    w, then, other = call.w, *made
    condition = w.scalar(call.of(chosen, BOOL))
    found = w("If", condition, count=len(call.out), then_branch=then, else_branch=other)
    return typed(call, found)


def while_loop(call: Call, importer: GraphImporter) -> tuple[Any, ...]:
    condition, step, carried, more = call.node.args
    asked, graph = call.values[condition], call.values[step]  # type: ignore[index] - a graph in a value, as torch has it
    begin = [value_of(call, x) for x in carried]  # type: ignore[union-attr] - a tuple, as torch has it
    given = [raw(call, x) for x in more]  # type: ignore[union-attr] - a tuple, as torch has it

    def holds(values: Sequence[Any]) -> ir.Value:
        (found,) = listed(inlined(asked, [*values, *given], importer))
        return w.scalar(call.of_value(found, BOOL))

    w = call.w
    fakes = holders(graph)[: len(begin)]
    first = holds(begin)
    with body(importer) as inside:
        argument(importer, "trip", INT64, [])
        argument(importer, "goes_on", BOOL, [])
        state = [carry(importer, x) for x in fakes]
        results = listed(inlined(graph, [*state, *given], importer))
        again = holds(results)
        finish(call, inside, [again, *results], [None, *call.out])
    return typed(call, w("Loop", None, first, *begin, count=len(begin), body=inside))


def scan(call: Call, importer: GraphImporter) -> tuple[Any, ...]:
    return scanned(call, importer, *call.node.args)


def mapped(call: Call, importer: GraphImporter) -> tuple[Any, ...]:
    each, rows, more = call.node.args
    return scanned(call, importer, each, (), rows, more)


def scanned(
    call: Call, importer: GraphImporter, combine: Any, init: Any, rows: Any, more: Any
) -> tuple[Any, ...]:
    graph = call.values[combine]
    begin = [value_of(call, x) for x in init]
    each = [value_of(call, x) for x in rows]
    given = [raw(call, x) for x in more]
    taken = holders(graph)[: len(begin) + len(each)]
    with body(importer) as inside:
        own = [carry(importer, x) for x in taken]
        results = listed(inlined(graph, [*own, *given], importer))
        (output,) = (n for n in graph.graph.nodes if n.op == "output")
        finish(call, inside, results, [x.meta["val"] for x in output.args[0]])
    found = call.w(
        "Scan", *begin, *each, count=len(call.out), body=inside,
        num_scan_inputs=len(each),
    )  # fmt: skip
    return typed(call, found)


@contextmanager
def body(importer: GraphImporter) -> Generator[ir.Graph]:
    """A graph that nodes go to; sizes that are computed in it are known in it alone."""
    w, sizes = importer.writer, importer.sizes
    outer, known = w.graph, sizes.computed()
    w.graph = ir.Graph([], [], nodes=[], name=w.name(f"{w.place}.body"))
    try:
        yield w.graph
    finally:
        w.graph = outer
        sizes.forget(known)


def argument(
    importer: GraphImporter, name: str, dtype: ir.DataType, shape: Sequence[int | str]
) -> ir.Value:
    return importer.writer.input(f"{importer.writer.place}.{name}", dtype, shape)


def carry(importer: GraphImporter, holder: fx.Node) -> ir.Value:
    """What a body gets in each trip."""
    fake = holder.meta["val"]
    if not isinstance(fake, torch.Tensor):
        value = argument(importer, holder.name, INT64, [])
        if isinstance(fake, torch.SymInt):
            importer.sizes.set(fake, value)
        return value
    dtype = element_type(fake.dtype, holder.name)
    return argument(importer, holder.name, dtype, importer.sizes.dims(fake.shape))


def finish(call: Call, inside: ir.Graph, results: Any, fakes: Sequence[Any]) -> None:
    """The results of a body: values of its own, of the types that torch says."""
    for value, fake in zip(listed(results), fakes, strict=True):
        is_tensor = isinstance(fake, torch.Tensor)
        dtype = element_type(fake.dtype, "") if is_tensor else None
        made = value_of(call, value) if dtype is None else call.of_value(value, dtype)
        made = call.w("Identity", made)
        if is_tensor:
            made.shape = ir.Shape(call.sizes.dims(fake.shape))
        inside.outputs.append(made)


def typed(call: Call, found: Any) -> tuple[Any, ...]:
    made = (found,) if isinstance(found, ir.Value) else tuple(found)
    for value, fake in zip(made, call.out, strict=True):
        if isinstance(fake, torch.Tensor):
            value.dtype = element_type(fake.dtype, call.node.name)
        else:
            value.dtype = INT64
            if isinstance(fake, torch.SymInt):
                call.sizes.set(fake, value)
    return made


def holders(graph: fx.GraphModule) -> list[fx.Node]:
    return [n for n in graph.graph.nodes if n.op == "placeholder"]


def listed(results: Any) -> list[Any]:
    return list(results) if isinstance(results, list | tuple) else [results]


def raw(call: Call, operand: Any) -> Any:
    return call.values[operand] if isinstance(operand, fx.Node) else operand


def value_of(call: Call, operand: Any) -> ir.Value:
    value = raw(call, operand)
    return call.of_value(value, INT64 if is_number(value) else None)


Body = Callable[[Call, "GraphImporter"], tuple[Any, ...]]
OPERATORS: dict[str, Body] = {
    "cond": cond, "while_loop": while_loop, "scan": scan, "map_impl": mapped,
}  # fmt: skip
