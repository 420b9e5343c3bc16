"""An operation as a part of the body of what reads it.

y = f(x, a);  z = g(y, b)   ->   z = g'(x, a, b)      g'(x, a, b) = g(f(x, a), b)
"""

from __future__ import annotations

from nanoloom.ir.linalg_query import (
    Op,
    body,
    inputs,
    iterators,
    maps,
    outputs,
    yielded,
)
from nanoloom.ir.make_generic import (
    COUNTS,
    KINDS,
    MAPS,
    compose,
    copy_body,
    make_generic,
)
from nanoloom.ir.mlir import ir

Read = tuple[ir.Value, ir.AffineMap]
MADE = (MAPS, KINDS, COUNTS)  # anew, with the operation


def is_plain(op: Op) -> bool:
    """Whether a body is a straight line of arithmetic."""
    names = [inner.operation.name for inner in body(op).operations]
    plain = all(not list(inner.operation.regions) for inner in body(op).operations)
    return plain and not {"linalg.index", "tensor.extract"} & {*names}


def inline_operation(op: Op, reader: Op, number: int) -> Op:
    """What reads an operation as this operand, made anew of what that reads.

    op: elementwise, with one result, at the places of its loops.  What both read at the
    same place is one operand.
    """
    old, at = reader.operation, maps(reader)[number]
    before = list(zip(inputs(reader), maps(reader), strict=False))
    given = [(v, compose(m, at)) for v, m in zip(inputs(op), maps(op), strict=False)]
    read: list[Read] = []
    for pair in (*before[:number], *given, *before[number + 1 :]):
        if pair not in read:
            read.append(pair)
    ways = [*(m for _, m in read), *maps(reader)[len(before) :]]
    kept = {name: old.attributes[name] for name in old.attributes if name not in MADE}
    with ir.InsertionPoint(reader), old.location:
        values = [value for value, _ in read]
        made = make_generic(values, outputs(reader), ways, iterators(reader), kept)
    arguments = list(body(made).arguments)
    with ir.InsertionPoint(body(made)), old.location:
        places = [arguments[read.index(pair)] for pair in given]
        inner = dict(zip(body(op).arguments, places, strict=False))
        copy_body(list(body(op).operations)[:-1], inner)
        (value,) = yielded(op)
        places = [arguments[read.index(x)] if x in read else value for x in before]
        places[number] = inner.get(value, value)
        places += arguments[len(read) :]
        copy_body(
            list(body(reader).operations),
            dict(zip(body(reader).arguments, places, strict=True)),
        )
    for result, after in zip(old.results, made.operation.results, strict=True):
        result.replace_all_uses_with(after)
    old.erase()
    return made
