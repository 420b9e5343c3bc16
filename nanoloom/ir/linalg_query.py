"""What a `linalg.generic` is: the questions that fusion and schedules ask."""

from __future__ import annotations

import re
from enum import Enum
from functools import cache
from math import prod
from typing import TypeAlias

from nanoloom.ir.mlir import ir, made_by
from nanoloom.nest.reduction import OF_BITS, SUMS_OF_PRODUCTS, WIDENING

Op: TypeAlias = ir.OpView


VIEWS = ("tensor.collapse_shape", "tensor.expand_shape")
# Of a pad, an operation that puts a border around a tensor: where it reads that, as an
# affine map; outside of it there is a number.
PAD = "nanoloom.pad"
BEHIND = "nanoloom.behind"  # of a pad: how wide the border at each axis' end is
CROPPED = "nanoloom.cropped"  # of a pad: its source goes on where the border is
COUNT, DIFFERING = OF_BITS[1], "arith.xori"


class Kind(Enum):
    """How an operation may be fused and scheduled."""

    CONTRACTION = "contraction"  # sum of products over reduction dimensions
    REDUCTION = "reduction"  # any other generic with a reduction dimension
    ELEMENTWISE = "elementwise"  # all dimensions parallel
    OPAQUE = "opaque"  # loops, branches, slices: one kernel of their own


def is_generic(op: Op) -> bool:
    return op.operation.name == "linalg.generic"


def iterators(op: Op) -> list[str]:
    written = str(op.operation.attributes["iterator_types"])  # one text, not one each
    return list(_kinds(written))


@cache
def _kinds(iterator_types: str) -> tuple[str, ...]:
    """Few are different, and each is asked for at every look at an operation."""
    return tuple(re.findall(r"<(\w+)>", iterator_types))


def maps(op: Op) -> list[ir.AffineMap]:
    """Indexing maps, inputs first, then outputs."""
    return [a.value for a in op.operation.attributes["indexing_maps"]]  # type: ignore[union-attr]


def input_count(op: Op) -> int:
    sizes = op.operation.attributes["operandSegmentSizes"]
    return int(sizes[0])  # type: ignore[index]


def inputs(op: Op) -> list[ir.Value]:
    return list(op.operation.operands)[: input_count(op)]


def outputs(op: Op) -> list[ir.Value]:
    return list(op.operation.operands)[input_count(op) :]


def body(op: Op) -> ir.Block:
    return op.operation.regions[0].blocks[0]


def yielded(op: Op) -> list[ir.Value]:
    return list(body(op).operations[-1].operands)  # the others become no objects


def dims_of(expr: ir.AffineExpr) -> set[int]:
    """The dimensions an affine expression depends on."""
    if isinstance(expr, ir.AffineDimExpr):
        return {expr.position}
    if isinstance(expr, ir.AffineBinaryExpr):
        return dims_of(expr.lhs) | dims_of(expr.rhs)
    return set()


def map_dims(indexing: ir.AffineMap) -> list[int | None]:
    """The dimension of each result, None where it is not a plain dimension."""
    return [
        e.position if isinstance(e, ir.AffineDimExpr) else None
        for e in indexing.results
    ]


def all_dims(indexing: ir.AffineMap) -> set[int]:
    return {d for e in indexing.results for d in dims_of(e)}


def is_prefix(indexing: ir.AffineMap) -> bool:
    """(d0, d1, ..., dn) -> (d0, ..., dk): reads at the leading indices."""
    return map_dims(indexing) == list(range(len(indexing.results)))


def is_identity(indexing: ir.AffineMap) -> bool:
    return is_prefix(indexing) and len(indexing.results) == indexing.n_dims


def is_fill(op: Op) -> bool:
    """A generic without inputs that writes one constant everywhere."""
    if not is_generic(op) or input_count(op) or len(op.operation.results) != 1:
        return False
    names = {inner.operation.name for inner in body(op).operations}
    return names <= {"arith.constant", "linalg.yield"}


def filled_with(fill: Op) -> ir.Operation:
    """The constant that a fill writes."""
    number = made_by(yielded(fill)[0])
    assert number is not None, "a fill yields a constant"
    return number


def is_pad(op: Op) -> bool:
    """A generic that puts a border around a tensor (pad_op.py)."""
    return is_generic(op) and PAD in op.operation.attributes


def bordered_by(op: Op) -> ir.AffineMap:
    """Where in what is inside each point of a pad is, but for where its tile begins."""
    return ir.AffineMapAttr(op.operation.attributes[PAD]).value


def bordered(op: Op) -> tuple[ir.Value, ir.AffineMap, str]:
    """What a pad puts a border around, where each point reads it, and the number, ""
    for one that only a run knows."""
    choice = yielded(op)[0].owner
    assert not isinstance(choice, ir.Block), "a pad chooses a number"
    _, found, number = (value.owner for value in choice.operands)
    assert not isinstance(found, ir.Block)
    source = found.operands[0]
    if isinstance(number, ir.Block):
        return source, bordered_by(op), ""
    written = number.attributes["value"].value  # type: ignore[attr-defined] - MLIR's stubs know no kinds of attributes
    return source, bordered_by(op), str(written)


def is_copy(op: Op) -> bool:
    """A generic that yields its only input: a transpose, broadcast or slice."""
    if not is_generic(op) or input_count(op) != 1 or len(op.operation.results) != 1:
        return False
    block = body(op)
    return len(block.operations) == 1 and yielded(op)[0] == block.arguments[0]


def is_contraction(op: Op) -> bool:
    """acc + a * b with at least one reduction dimension, floats or integers.

    a and b are the two inputs themselves, or the inputs widened (bf16 to f32 ...).  Of
    bits, acc + extended(ones(a ^ b)).
    """
    return len(op.operation.results) == 1 and sums_products(op)


def sums_products(op: Op) -> bool:
    """The same of a generic on buffers, which has no result."""
    if input_count(op) != 2 or "reduction" not in iterators(op):
        return False
    block, results = body(op), yielded(op)
    if len(results) != 1:
        return False
    total = results[0].owner
    if isinstance(total, ir.Block):
        return False
    accumulator = block.arguments[2]
    factors = [v for v in total.operands if v != accumulator]
    product = multiplied(factors[0]) if len(factors) == 1 else None
    if product is None or (total.name, product.name) not in SUMS_OF_PRODUCTS:
        return False
    sources = [widened(v) for v in factors_of(product)]
    return set(sources) == {block.arguments[0], block.arguments[1]}


def multiplied(value: ir.Value) -> ir.Operation | None:
    """What makes a product that is added up; ones that are counted are extended."""
    counted = made_by(widened(value), COUNT)
    return made_by(value) if counted is None else counted


def factors_of(product: ir.Operation) -> list[ir.Value]:
    """What a product multiplies, or what differs in the bits that it counts."""
    operands = list(product.operands)
    if product.name != COUNT:
        return operands
    differing = made_by(operands[0], DIFFERING)
    return [] if differing is None else list(differing.operands)


def widened(value: ir.Value) -> ir.Value:
    """The value before an extension to a wider type."""
    op = made_by(value, *WIDENING)
    return value if op is None else op.operands[0]


def base(value: ir.Value) -> ir.Value:
    """The value whose bytes a chain of reshapes shows."""
    while not isinstance(value.owner, ir.Block) and value.owner.name in VIEWS:
        value = value.owner.operands[0]
    return value


def bytes_of(kind: ir.Type) -> int:
    """That a tensor of a type takes."""
    return prod(ir.RankedTensorType(kind).shape) * element_bytes(kind)


def element_bytes(kind: ir.Type) -> int:
    """That a tensor of a type takes for each element."""
    element = ir.RankedTensorType(kind).element_type
    width = 64 if isinstance(element, ir.IndexType) else element.width  # type: ignore[attr-defined]
    return max(width // 8, 1)


def is_lanewise(op: Op) -> bool:
    """Only arithmetic in its body: it works on a vector as on a scalar.

    No remainder of floats: of f64 that is a call for each element, of f32 a loop where
    quotients are large.
    """
    names = [inner.operation.name for inner in body(op).operations]
    plain = all(x.startswith(("arith.", "math.", "linalg.yield")) for x in names)
    return plain and "arith.remf" not in names


def is_read_in_place(op: Op) -> bool:
    """A slice whose readers take the numbers where they are in its source.

    Of products those of windows, and of what the model is given: others' operands are
    laid out for them.
    """
    if (
        op.operation.name != "tensor.extract_slice"
        or len(list(op.operation.operands)) > 1
    ):
        return False  # or at a place that is known when the program runs
    (result,) = op.operation.results
    source, made = (
        ir.RankedTensorType(v.type) for v in (op.operation.operands[0], result)
    )
    steps = list(op.operation.attributes["static_strides"])  # type: ignore[call-overload]
    if source.rank != made.rank or set(steps) > {1}:
        return False
    return are_in_place(op.operation.operands[0], result)


def are_in_place(source: ir.Value, part: ir.Value) -> bool:
    """Whether all readers of a part take it where it is in its source."""
    given = isinstance(base(source).owner, ir.Block)
    return all(
        reads_as_it_lies(use.owner.opview, use.operand_number, given=given)
        for use in part.uses
    )


def reads_as_it_lies(reader: Op, number: int, *, given: bool) -> bool:
    """Whether a generic takes an operand where it is; given: by the model's caller."""
    if not is_generic(reader) or number >= input_count(reader):
        return False
    return given or not is_contraction(reader) or sums_over_taps(reader, number)


def sums_over_taps(op: Op, number: int) -> bool:
    """Whether a product sums along several axes of an operand, as windows do."""
    kinds = iterators(op)
    summed = [d for d in all_dims(maps(op)[number]) if kinds[d] == "reduction"]
    return len(summed) > 1


def kind(op: Op) -> Kind:
    if not is_generic(op):
        return Kind.OPAQUE
    if "reduction" not in iterators(op):
        return Kind.ELEMENTWISE
    return Kind.CONTRACTION if is_contraction(op) else Kind.REDUCTION


def extents(op: Op) -> list[int]:
    """The extent of each dimension (static shapes)."""
    operands, ways = list(op.operation.operands), maps(op)
    found: dict[int, int] = {}
    for value, indexing in zip(operands, ways, strict=True):
        shape = ir.ShapedType(value.type).shape
        for size, dim in zip(shape, map_dims(indexing), strict=True):
            if dim is not None:
                found[dim] = size
    return [found[d] for d in range(ways[0].n_dims)]
