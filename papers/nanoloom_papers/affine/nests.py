"""What becomes of a nest of loops: sums are carried, lanes made, steps jammed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from nanoloom.ir.mlir import ir, named
from nanoloom_papers.affine.build import (
    body_of,
    bounds_of,
    drop_if_done,
    split,
    steps_of,
)
from nanoloom_papers.affine.carrier import FOR, initial_values
from nanoloom_papers.affine.carry import carry
from nanoloom_papers.affine.detect import Found, reductions
from nanoloom_papers.affine.factors import STEPS_IN_MEMORY, Factors
from nanoloom_papers.affine.in_memory import between_load_and_store
from nanoloom_papers.affine.jam import jam
from nanoloom_papers.affine.location import maker_of
from nanoloom_papers.affine.parallel import is_parallel
from nanoloom_papers.affine.report import PRODUCTS
from nanoloom_papers.affine.upstream import by_upstream
from nanoloom_papers.affine.widen import may_widen, widen
from nanoloom_papers.affine.widenable import is_widenable

LEAST_LANES = 4
MOST_LANES = 64  # of one value: a few registers, which LLVM makes of it


@dataclass(frozen=True)
class Way:
    """How a strategy goes about it.

    carries: which reductions leave memory.  along_sums: whether the steps of a sum of
    products may be lanes.  vectorizers: who is asked, in this order.
    """

    carries: Literal["all", "others than products", "none"] = "none"
    along_sums: bool = True
    vectorizers: tuple[Literal["mlir", "nanoloom"], ...] = ()
    jams: bool = False


def nests(module: ir.Module) -> list[list[ir.Operation]]:
    """Every nest of loops, from the outermost to the innermost.

    Only loops that are alone in the one around them.
    """
    found: list[list[ir.Operation]] = []
    for op in named(module, FOR):
        loop = op.operation
        if any(inner.name == FOR for inner in steps_of(body_of(loop))):
            continue
        chain = [loop]
        while is_alone(chain[0]):
            chain.insert(0, chain[0].parent.operation)  # type: ignore[union-attr]
        found.append(chain)
    return found


def is_alone(loop: ir.Operation) -> bool:
    """Whether a loop is all that stands in another."""
    around = loop.parent
    assert around is not None
    alone = around.operation.name == FOR
    return alone and len(steps_of(body_of(around.operation))) == 1


def lower(loops: Sequence[ir.Operation], way: Way, factors: Factors) -> None:
    """Make of a nest what a strategy makes of it."""
    flags = tuple(is_parallel(loop) for loop in loops)
    product = any(map(is_product, reductions(loops[-1])))
    nest = Nest(list(loops), flags, product)
    if product and not way.along_sums and not nest.has_columns(way):
        way, factors = replace(way, carries="all", along_sums=True), factors.by_rows
    if way.carries == "all" or (way.carries != "none" and not product):
        nest.carry()
    elif way.carries != "none":
        between_load_and_store(nest.loops[-1], STEPS_IN_MEMORY)
        factors = replace(factors, column_tile=factors.memory_tile)
    along = vectorized(nest, way, factors)
    if way.jams and product:
        rows_and_columns(nest, along, factors)


@dataclass
class Nest:
    """Loops, the outermost first: those that are gone are looked at no more.

    parallel: of each loop.  is_product: whether the innermost adds products.
    """

    loops: list[ir.Operation]
    parallel: tuple[bool, ...]
    is_product: bool

    def carry(self) -> None:
        """Let the loops over sums carry what they reduce, the innermost first.

        As far as they are the innermost of their nest: what is stored in a parallel
        loop further in has another place in each of its steps.
        """
        for place in range(len(self.loops) - 1, -1, -1):
            if self.parallel[place]:
                return
            self.loops[place] = carry(self.loops[place])

    def candidates(self, way: Way) -> list[int]:
        """The loops that may become lanes, by number, the best first."""
        last = len(self.loops) - 1
        found = [n for n in range(last, -1, -1) if n == last or self.parallel[n]]
        if self.is_product and not way.along_sums:
            found = [number for number in found if self.parallel[number]]
        return found

    def has_columns(self, way: Way) -> bool:
        """Whether the steps of a parallel loop may be lanes.

        Else the right operand lies along the sum, as a matrix does that ONNX-MLIR
        multiplies by a vector: it has lanes along the sum there, too.
        """
        return any(may_begin(self.loops[n], way) for n in self.candidates(way))


def is_product(found: Found) -> bool:
    """Whether a reduction is a sum of products."""
    if found.kind not in ("arith.addf", "arith.addi"):
        return False
    steps = found.chain.steps
    makers = [maker_of(value) for step in steps for value in step.inputs]
    fused = any("mulf" in step.decomposition for step in steps)
    return fused or any(op is not None and op.name in PRODUCTS for op in makers)


def vectorized(nest: Nest, way: Way, factors: Factors) -> int | None:
    """The number of the loop that becomes vectors, the first one that can."""
    if not way.vectorizers:
        return None
    for number in nest.candidates(way):
        loop = nest.loops[number]
        columns = factors.column_tile[1] if nest.parallel[number] else factors.k
        vectors = columns if nest.is_product else factors.k
        if may_begin(loop, way) and to_lanes(loop, way, factors.lanes, vectors):
            return number
    return None


def may_begin(loop: ir.Operation, way: Way) -> bool:
    """Whether a loop's steps may be lanes, as far as its vectorizers must be told.

    MLIR's looks at reductions itself, but not for all of what keeps loops from vectors.
    """
    if "nanoloom" in way.vectorizers:
        return may_widen(loop)
    ordered = bool(initial_values(loop)) or is_parallel(loop)
    return ordered and bounds_of(loop) is not None and is_widenable(loop)


def to_lanes(loop: ir.Operation, way: Way, lanes: int, vectors: int) -> bool:
    """A loop's steps as lanes of so many vectors, what is left over of fewer."""
    groups = [vectors >> halved for halved in range(vectors.bit_length())]
    sizes = [*(lanes * group for group in groups), lanes // 2, lanes // 4]
    sizes = [size for size in sizes if LEAST_LANES <= size <= MOST_LANES]
    done = False
    for size in sizes:
        bounds = bounds_of(loop)
        assert bounds is not None
        low, high = bounds
        end = low + (high - low) // size * size
        if end == low:
            continue
        first = split(loop, end)
        if not by_any(first, way, size):
            return done
        done = True
        if end == high:
            break
    drop_if_done(loop)
    return done


def by_any(loop: ir.Operation, way: Way, lanes: int) -> bool:
    """Whether one of a way's vectorizers takes a loop."""
    for who in way.vectorizers:
        if who == "mlir" and by_upstream(loop, lanes):
            return True
        if who == "nanoloom":
            widen(loop, lanes)
            return True
    return False


def rows_and_columns(nest: Nest, along: int | None, factors: Factors) -> None:
    """Several rows and columns of a product at once.  along: what are lanes."""
    others = [n for n in range(len(nest.loops)) if nest.parallel[n] and n != along]
    rows, columns = factors.sum_tile
    counts = (columns, rows)
    if along is not None and nest.parallel[along]:
        counts = (factors.column_tile[0],)
    for number, count in zip(reversed(others), counts, strict=False):
        jam(nest.loops[number], count)
