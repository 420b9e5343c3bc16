"""The reduction map as plain values: for readers, for JSON, for other processes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from nanoloom.ir.mlir import ir, named
from nanoloom.nest.reduction import KINDS
from nanoloom_papers.affine.absolute import is_absolute_value
from nanoloom_papers.affine.build import BOUNDS, index_of_loop, number_of, step_of
from nanoloom_papers.affine.carrier import FOR, LOAD, Carrier
from nanoloom_papers.affine.detect import Found, reduction_map
from nanoloom_papers.affine.location import Location, encloses, location_of, maker_of
from nanoloom_papers.affine.naming import Naming, place_of
from nanoloom_papers.affine.step import atomic

Way = Literal["contiguous", "strided", "the same", "irregular"]
MEANINGS = {"add": "sum", "mul": "product", "max": "maximum", "min": "minimum",
            "and": "and", "or": "or", "xor": "exclusive or"}  # fmt: skip
PRODUCTS = ("arith.mulf", "arith.muli")


@dataclass(frozen=True)
class Read:
    """A buffer's element that is combined: from one step to the next it is `way`."""

    element: str
    type: str
    way: Way


@dataclass(frozen=True)
class Reduction:
    """A reduction: a value or an element of a buffer, and what combines it.

    kind: an AtomicRMWKind's name.  form: whether the loop carries a value, or the
    element lies in memory.  operations: as they stand there; decomposition: what they
    are made of, where that is something else.  pair: the place of an extreme.
    obstacle: why its steps must stay in order, "" if they may not.
    """

    kind: str
    form: Literal["value", "memory"]
    carried: str
    type: str
    meaning: str
    operations: tuple[str, ...]
    decomposition: tuple[str, ...]
    reads: tuple[Read, ...]
    pair: str
    obstacle: str


@dataclass(frozen=True)
class Loop:
    """An affine.for.  name: its index.  line: in the text, 0 if that is not known.

    trips: 0 if they are not known.
    """

    function: str
    name: str
    line: int
    depth: int
    innermost: bool
    trips: int
    reductions: tuple[Reduction, ...]


def describe(module: ir.Module, text: str = "") -> tuple[Loop, ...]:
    """Every loop of a module, outer ones first.  text: what it was parsed from."""
    naming = Naming(tuple(text.splitlines()))
    return tuple(
        described(loop, found, naming) for loop, found in reduction_map(module)
    )


def described(loop: ir.Operation, found: list[Found], naming: Naming) -> Loop:
    around = parents(loop)
    function = next((op for op in around if op.name == "func.func"), None)
    return Loop(
        "" if function is None else function.attributes["sym_name"].value,  # type: ignore[attr-defined]
        naming.of(index_of_loop(loop)),
        place_of(loop.location)[0],
        sum(op.name == FOR for op in around),
        not any(encloses(loop, op.operation.parent) for op in named(loop, FOR)),
        trips_of(loop),
        tuple(reduction(loop, each, naming) for each in found),
    )


def parents(op: ir.Operation) -> list[ir.Operation]:
    """The operations around one, from the inside."""
    found: list[ir.Operation] = []
    while op.parent is not None:
        op = op.parent.operation
        found.append(op)
    return found


def trips_of(loop: ir.Operation) -> int:
    """How often a loop runs, where its bounds are numbers."""
    low, high = (number_of(loop.attributes[name]) for name in BOUNDS)
    if low is None or high is None:
        return 0
    return max(0, -(-(high - low) // step_of(loop)))


def reduction(loop: ir.Operation, found: Found, naming: Naming) -> Reduction:
    steps = found.chain.steps
    inputs = [value for step in steps for value in step.inputs]
    operations = tuple(name for step in steps for name in step.operations)
    parts = tuple(name for step in steps for name in step.decomposition)
    return Reduction(
        atomic(found.kind),
        "value" if found.carrier.location is None else "memory",
        name_of(found.carrier, naming),
        str(found.carrier.start.type),
        meaning(found, inputs),
        operations,
        parts,
        tuple(dict.fromkeys(reads(loop, inputs, naming))),
        "" if found.pair is None else name_of(found.pair, naming),
        found.obstacle,
    )


def name_of(carrier: Carrier, naming: Naming) -> str:
    if carrier.location is not None:
        return naming.location(carrier.location)
    return naming.of(carrier.start)


def meaning(found: Found, inputs: list[ir.Value]) -> str:
    """What a reader calls it: sum, sum of squares, absolute maximum, ..."""
    word = KINDS[found.kind].word
    plain = MEANINGS[word if word in MEANINGS else word[:3]]
    steps, makers = found.chain.steps, [maker_of(value) for value in inputs]
    if found.pair is not None:
        return f"{plain} and its place"
    if plain == "maximum" and any(op and is_absolute_value(op) for op in makers):
        return "absolute maximum"
    if plain != "sum":
        return plain
    if any("mulf" in step.decomposition for step in steps):
        return "sum of squares" if steps[0].is_square else "sum of products"
    products = [op for op in makers if op is not None and op.name in PRODUCTS]
    if len(products) != len(makers):
        return plain
    square = all(op.operands[0] == op.operands[1] for op in products)
    return "sum of squares" if square else "sum of products"


# ---- the shapes: what is read of them from one step to the next


def reads(loop: ir.Operation, inputs: list[ir.Value], naming: Naming) -> list[Read]:
    """The loads in a loop that values are computed of, in their order."""
    seen: set[ir.Value] = set()
    waiting, found = list(reversed(inputs)), list[Read]()
    while waiting:
        value = waiting.pop()
        op = maker_of(value)
        if op is None or value in seen or not encloses(loop, op):
            continue
        seen.add(value)
        if op.name == LOAD:
            location = location_of(op.opview)
            way = way_of(location, loop)
            element = naming.location(location)
            found.append(Read(element, str(location.buffer.type), way))
        else:
            waiting += reversed(list(op.operands))
    return found


def way_of(location: Location, loop: ir.Operation) -> Way:
    """How a loop's steps move through a buffer."""
    index = index_of_loop(loop)
    if index not in location.values:
        return "the same"
    factors = [each.factor(index) for each in location.indices]
    kind = ir.MemRefType(location.buffer.type)
    moves = [factor for factor in factors if factor is not None]
    if len(moves) != len(factors) or not is_strided(kind):
        return "irregular"
    *outer, last = moves
    dense = kind.get_strides_and_offset()[0][-1] == 1
    unit = abs(last * step_of(loop)) == 1 and not any(outer)
    return "contiguous" if dense and unit else "strided"


def is_strided(kind: ir.MemRefType) -> bool:
    """Whether a buffer's elements lie at sums of its indices times numbers."""
    try:
        kind.get_strides_and_offset()
    except RuntimeError:
        return False
    return True
