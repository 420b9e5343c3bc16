"""How a reduction combines: found in the body, with its neutral element."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nanoloom.errors import Error
from nanoloom.ir.access import as_index, index
from nanoloom.ir.mlir import arith, ir, made_by, vector
from nanoloom.nest.extent import Lanes
from nanoloom.nest.reduction import KINDS
from nanoloom.vector.emit_loops import emit_while
from nanoloom.vector.widths import elements, filled, is_scalable, vector_type

# select(x > sofar, x, sofar): the larger one, NaN left out.  One instruction, where a
# maximum that keeps NaN takes three or more.
GREATER = "arith.select"
INDEX_CASTS = ("arith.index_cast", "arith.trunci")
PRODUCTS = ("arith.mulf", "arith.muli")
LEAST = 128  # bits for each unit of the width of a scalable register
PACKED = "packed bits"  # sofar | (condition << its place in the sum)


@dataclass(frozen=True)
class Combiner:
    """A commutative operation on this element type."""

    operation: str
    element: ir.Type

    def across(self, lanes: ir.Value) -> ir.Value:
        """All lanes of a vector combined."""
        if self.operation == PACKED and whole_number(lanes):
            return bits_of(lanes)
        scalable = is_scalable(lanes.type)
        if self.operation in (PRODUCTS if scalable else (GREATER,)):
            return by_halves(lanes, self)
        # As it is: what is left out is NaN.
        name = "maxnumf" if self.operation == GREATER else KINDS[self.combining].word
        kind = ir.Attribute.parse(f"#vector.kind<{name}>")
        # By halves, or as the target does it: else one lane behind the other.
        order = "none" if self.operation == GREATER else "reassoc"
        words = ir.Attribute.parse(f"#arith.fastmath<{order}>")
        return vector.reduction(self.element, kind, lanes, fastmath=words)

    @property
    def combining(self) -> str:
        """The operation by its own name."""
        return "arith.ori" if self.operation == PACKED else self.operation

    def apply(self, one: ir.Value, other: ir.Value) -> ir.Value:
        if self.operation == GREATER:
            above = arith.cmpf(arith.CmpFPredicate.OGT, other, one)
            return arith.select(above, other, one)
        made = ir.Operation.create(self.combining, [one.type], [one, other])
        return made.results[0]

    def neutral(self) -> ir.Value:
        """The element that changes nothing."""
        if self.operation == GREATER:
            return arith.constant(self.element, -float("inf"))
        if self.operation == "arith.addf":
            return arith.constant(self.element, -0.0)  # 0.0 makes one of -0.0
        return number_of(KINDS[self.combining].neutral, self.element)


def by_halves(lanes: ir.Value, c: Combiner) -> ir.Value:
    """All lanes combined where no instruction does it, two halves at a time.

    Of vectors of any width groups of registers are halved as such.  Then each round
    leaves half as many lanes in front of numbers that change nothing, until one counts:

        v = even lanes of (v, 1, 1, ...) * odd lanes of it
    """
    kind = ir.VectorType(lanes.type)
    element, (count,), scalable = kind.element_type, kind.shape, is_scalable(kind)
    least = max(2, LEAST // element.width) if scalable else 1  # type: ignore[attr-defined] - numbers have a width
    while count > least:
        count //= 2
        if scalable:
            half = vector_type(Lanes(count, scalable=True), element)
            both = (vector.scalable_extract(half, lanes, n) for n in (0, count))
        else:
            places = range(count), range(count, 2 * count)
            both = (vector.shuffle(lanes, lanes, list(x)) for x in places)
        lanes = c.apply(*both)
    if not scalable:
        return vector.extract(lanes, [], [0])
    wide = vector_type(Lanes(2 * count, scalable=True), element)
    nothing = vector.broadcast(wide, c.neutral())

    def more(carried: list[ir.Value]) -> ir.Value:
        return arith.cmpi(arith.CmpIPredicate.sgt, carried[0], index(1))

    def halved(carried: list[ir.Value]) -> list[ir.Value]:
        left, v = carried
        both = vector.deinterleave(vector.scalable_insert(v, nothing, 0))
        fewer = arith.shrui(arith.addi(left, index(1)), index(1))
        return [fewer, c.apply(*both)]

    begun = [as_index(elements(Lanes(count, scalable=True))), lanes]
    return vector.extract(emit_while(begun, more, halved)[1], [], [0])


def whole_number(lanes: ir.Value) -> bool:
    """Whether a vector has a lane for each bit of a number."""
    kind = ir.VectorType(lanes.type)
    return not is_scalable(kind) and kind.shape[0] == kind.element_type.width  # type: ignore[attr-defined] - all types of numbers have it


def bits_of(lanes: ir.Value) -> ir.Value:
    """The number whose bits are the lanes: each has no other bit than its own.

    One instruction makes a number of conditions on x86 (vmovmskps, vpmovmskb).
    """
    return vector.extract(all_bits([lanes]), [], [0])


def all_bits(every: Sequence[ir.Value]) -> ir.Value:
    """A vector of such numbers: conditions of all, then their bits at once."""
    kind = ir.VectorType(every[0].type)
    zeros = filled(kind, 0)
    holds = [arith.cmpi(arith.CmpIPredicate.ne, lanes, zeros) for lanes in every]
    while len(holds) > 1:
        count = 2 * ir.VectorType(holds[0].type).shape[0]
        pairs = zip(holds[::2], holds[1::2], strict=True)
        holds = [vector.shuffle(*pair, list(range(count))) for pair in pairs]
    whole = ir.VectorType.get([len(every)], kind.element_type)
    return vector.bitcast(whole, holds[0])


def number_of(word: str, element: ir.Type) -> ir.Value:
    """zero, one, ones (of all bits), or the largest or smallest number of a type."""
    if isinstance(element, ir.FloatType):
        infinity = float("inf")
        numbers = {"zero": 0.0, "one": 1.0, "highest": infinity, "lowest": -infinity}
        if word not in numbers:
            raise Error(f"{word} is no number of type {element}")
        return arith.constant(element, numbers[word])
    half = 1 << (ir.IntegerType(element).width - 1)
    integers = {"zero": 0, "one": 1, "ones": -1, "highest": half - 1, "lowest": -half}
    return arith.constant(element, integers[word])


def of(block: ir.Block, output: int, inputs: int) -> Combiner | None:
    """The combiner of one output: yield op(accumulator, f(inputs)) or the reverse."""
    accumulator = block.arguments[inputs + output]
    result = list(block.operations)[-1].operation.operands[output]
    op = made_by(result)
    if op is None:
        return None
    if is_greater(op, accumulator):
        return Combiner(GREATER, result.type)
    if op.name not in KINDS:
        return None
    if len(list(accumulator.uses)) != 1:
        return None
    if accumulator not in list(op.operands):
        return None
    packs = op.name == "arith.ori" and places_bits(op, accumulator)
    return Combiner(PACKED if packs else op.name, result.type)


def places_bits(op: ir.Operation, accumulator: ir.Value) -> bool:
    """accumulator | (condition << the index of a dimension)."""
    (bit,) = [v for v in op.operands if v != accumulator]
    placed = made_by(bit, "arith.shli")
    if placed is None:
        return False
    condition, place = (made_from(v) for v in placed.operands)
    if condition is None or place is None or place.name != "linalg.index":
        return False
    return condition.name == "arith.extui" and str(condition.operands[0].type) == "i1"


def made_from(value: ir.Value) -> ir.Operation | None:
    """The operation behind casts of an index."""
    while (cast := made_by(value, *INDEX_CASTS)) is not None:
        value = cast.operands[0]
    return made_by(value)


def is_greater(op: ir.Operation, accumulator: ir.Value) -> bool:
    """select(x > accumulator, x, accumulator), and no other use of the accumulator."""
    if op.name != GREATER or op.operands[2] != accumulator:
        return False
    above = made_by(op.operands[0], "arith.cmpf")
    if above is None:
        return False
    predicate = above.attributes["predicate"].value  # type: ignore[attr-defined]
    return (
        predicate == int(arith.CmpFPredicate.OGT)
        and list(above.operands) == [op.operands[1], accumulator]
        and len(list(accumulator.uses)) == 2
    )
