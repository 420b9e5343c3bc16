"""An operation as a part of the body of what reads it.

y = f(x, a);  z = g(y, b)   ->   z = g'(x, a, b)      g'(x, a, b) = g(f(x, a), b)
"""

from __future__ import annotations

from nanoloom.ir.linalg_query import Op, body, inputs, maps, outputs, yielded
from nanoloom.ir.mlir import ir

Read = tuple[ir.Value, ir.AffineMap]


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
    given = [(v, moved(m, at)) for v, m in zip(inputs(op), maps(op), strict=False)]
    read: list[Read] = []
    for pair in (*before[:number], *given, *before[number + 1 :]):
        if pair not in read:
            read.append(pair)
    written = list(zip(outputs(reader), maps(reader)[len(before) :], strict=True))
    with ir.InsertionPoint(reader), old.location:
        made = remap(reader, read, written)
    arguments = list(made.regions[0].blocks[0].arguments)
    with ir.InsertionPoint(made.regions[0].blocks[0]), old.location:
        places = [arguments[read.index(pair)] for pair in given]
        inner = dict(zip(body(op).arguments, places, strict=False))
        copy(list(body(op).operations)[:-1], inner)
        (value,) = yielded(op)
        places = [arguments[read.index(x)] if x in read else value for x in before]
        places[number] = inner.get(value, value)
        places += arguments[len(read) :]
        copy(
            list(body(reader).operations),
            dict(zip(body(reader).arguments, places, strict=True)),
        )
    for result, after in zip(old.results, made.results, strict=True):
        result.replace_all_uses_with(after)
    old.erase()
    return made.opview


def moved(indexing: ir.AffineMap, at: ir.AffineMap) -> ir.AffineMap:
    """Where something is read whose reader is read at these places itself."""
    results = [e.compose(at) for e in indexing.results]
    return ir.AffineMap.get(at.n_dims, 0, results)


def remap(reader: Op, read: list[Read], written: list[Read]) -> ir.Operation:
    """An operation on other operands, its body without anything in it."""
    old, pairs = reader.operation, [*read, *written]
    operands = [value for value, _ in pairs]
    attributes = dict(old.attributes.items()) | {
        "indexing_maps": ir.ArrayAttr.get([ir.AffineMapAttr.get(m) for _, m in pairs]),
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(read), len(written)]),
    }
    made = ir.Operation.create(
        "linalg.generic",
        [result.type for result in old.results],
        operands,
        attributes,
        regions=1,
    )
    kinds = [element_of(value) for value in operands]
    places = [old.location] * len(kinds)
    made.regions[0].blocks.append(*kinds, arg_locs=places)
    return made


def element_of(value: ir.Value) -> ir.Type:
    """The type of an operand in a body: an element of a tensor, or itself."""
    shaped = isinstance(value.type, ir.ShapedType)
    return ir.ShapedType(value.type).element_type if shaped else value.type


def copy(ops: list[Op], mapping: dict[ir.Value, ir.Value]) -> None:
    """Operations again, on other values; mapping: of those, and of what is made."""
    for op in ops:
        made = op.operation.clone()
        for place, value in enumerate(op.operation.operands):
            made.operands[place] = mapping.get(value, value)
        mapping |= dict(zip(op.operation.results, made.results, strict=True))
