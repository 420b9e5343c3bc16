"""A computation as linalg: one operation for each statement.

    c[i, j] += a[i, k] * b[k, j]  ->  a fill of zeros, and a generic over (i, j, k)

What a reduction begins with, if it is no number, comes last: then the sums stay in
registers until it is added.  Sums of f16 and bf16 are kept in f32 until they are
complete.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from nanoloom.ir.mlir import ir
from nanoloom.ir.statement_names import write_names
from nanoloom.linalg.builder.builder import (
    PARALLEL,
    REDUCTION,
    Builder,
    Map,
    computed_as,
)
from nanoloom.linalg.builder.scalar import Number, Scalar
from nanoloom.linalg.builder.tensor import Tensor, constant_tensor
from nanoloom.linalg.function import function
from nanoloom.linalg.stage import LinalgModule, Spec
from nanoloom.notation.bodies import BODIES, place_of, value_of
from nanoloom.notation.buffer import Buffer, Statement
from nanoloom.notation.computations import Computation
from nanoloom.notation.expression import Constant, Element
from nanoloom.notation.functions_table import WORDS, start_of
from nanoloom.notation.index import Axis, Index

FLOAT32 = np.dtype(np.float32)


def lower(computation: Computation) -> LinalgModule:
    """@main of a computation; an MLIR context must be current."""
    inputs = [Spec(b.name, shape_of(b), b.dtype) for b in computation.inputs]

    def make(builder: Builder, given: list[Tensor]) -> dict[str, Tensor]:
        tensors = dict(zip(computation.inputs, given, strict=True))
        lower_statements(builder, computation, tensors)
        return {buffer.name: tensors[buffer] for buffer in computation.outputs}

    return function(inputs, make)


def lower_statements(
    builder: Builder, computation: Computation, tensors: dict[Buffer, Tensor]
) -> None:
    """tensors: what the inputs hold, and then what all buffers do."""
    for buffer in computation.constants:
        assert buffer.array is not None
        tensors[buffer] = constant_tensor(buffer.array, buffer.name)
    for statement in computation.statements:
        with ir.Location.name(statement.buffer.name):
            made = Loops(builder, statement, tensors).result()
        tensors[statement.buffer] = made


def shape_of(buffer: Buffer) -> tuple[int, ...]:
    assert buffer.shape is not None, buffer.name
    return buffer.shape


def is_backwards(read: Element) -> bool:
    """Whether an index falls where an axis rises: tiles are cut only of what rises."""
    return any(factor < 0 for index in read.indices for _, factor in index.terms)


@dataclass
class Loops:
    """One statement while it is built.  tensors: what the buffers hold before it.

    operands: and their maps.  numbers: which operand an element is.  sources: of
    elements that are loaded one by one.
    """

    builder: Builder
    statement: Statement
    tensors: dict[Buffer, Tensor]
    operands: list[tuple[Tensor, Map]] = field(default_factory=list)
    numbers: dict[tuple[Buffer, tuple[Index, ...]], int] = field(default_factory=dict)
    sources: dict[Buffer, ir.Value] = field(default_factory=dict)

    @property
    def axes(self) -> tuple[Axis, ...]:
        return (*self.statement.axes, *self.statement.reduced)

    @property
    def places(self) -> dict[Axis, int]:
        return {axis: place for place, axis in enumerate(self.axes)}

    def result(self) -> Tensor:
        """What the buffer holds behind the statement."""
        b, statement = self.builder, self.statement
        shape, dtype = shape_of(statement.buffer), statement.buffer.dtype
        if isinstance(statement.value, Constant) and not statement.combine:
            return b.full(shape, statement.value.number, dtype)
        for read in statement.reads:
            self.add(read)
        if not statement.combine:
            return self.loops(Tensor(shape, dtype, b.empty(shape, dtype)))
        wide, word = computed_as(dtype), WORDS[statement.combine]
        number, before = self.begin, self.tensors.get(statement.buffer)
        if before is not None and number is not None:
            start = before if wide == dtype else b.full(shape, number, wide)
            return b.cast(self.loops(start), dtype)
        made = self.loops(b.full(shape, start_of(word, dtype), wide))
        if before is None:
            return b.cast(made, dtype)
        combine = BODIES[statement.combine]
        total = b.elementwise(combine, before, made, dtype=dtype)
        write_names(
            total.value, statement.buffer.name, [a.name for a in statement.axes]
        )
        return total

    @property
    def begin(self) -> Number | None:
        """The number that a reduction begins with, if that is what is written."""
        statements = self.statement.buffer.statements
        before = statements[: statements.index(self.statement)]
        if before and isinstance(before[-1].value, Constant) and not before[-1].combine:
            return before[-1].value.number
        return None

    def loops(self, start: Tensor) -> Tensor:
        """The operation over all axes, on what it begins with."""
        statement = self.statement
        self.add_extents()
        outer = self.map([Index(((axis, 1),)) for axis in statement.axes])
        kinds = [PARALLEL] * len(statement.axes)
        kinds += [REDUCTION] * len(statement.reduced)
        (made,) = self.builder.generic(
            self.operands, [(start, outer)], kinds, self.body
        )
        write_names(
            made.value, statement.buffer.name, [axis.name for axis in self.axes]
        )
        return made

    def body(self, *given: Scalar) -> Scalar:
        def element(x: Element) -> Scalar:
            if is_backwards(x):
                at = [place_of(index, self.places) for index in x.indices]
                return self.builder.load(self.sources[x.buffer], x.dtype, at)
            return given[self.numbers[x.buffer, x.indices]]

        value = value_of(self.statement.value, element, self.places)
        if not self.statement.combine:
            return value
        return BODIES[self.statement.combine](given[-1], value)

    def add(self, read: Element) -> None:
        """An operand for what is read, the same one for the same element."""
        key, whole = (read.buffer, read.indices), self.tensors[read.buffer]
        if is_backwards(read):
            self.sources[read.buffer] = self.builder.value(whole)
        elif key not in self.numbers:
            self.numbers[key] = len(self.operands)
            self.operands.append((self.cut(whole, read), self.map(read.indices)))

    def cut(self, whole: Tensor, read: Element) -> Tensor:
        """The part of a tensor that is read, where an axis by itself ends before it.

        So may the axes of a sum, as soon as one of them is a single point.
        """
        extents = self.statement.extents

        def size(index: Index, most: int) -> int:
            alone = index.plain is not None or 1 in (extents[x] for x in index.axes)
            return index.ends(extents)[1] + 1 if alone else most

        pairs = zip(read.indices, whole.shape, strict=True)
        shape = tuple(size(index, most) for index, most in pairs)
        if shape == whole.shape:
            return whole
        return self.builder.slice(whole, [0] * whole.rank, shape)

    def add_extents(self) -> None:
        """An operand that nobody reads, for the extents that no other one tells."""
        reads = [read for read in self.statement.reads if not is_backwards(read)]
        known = {index.plain for read in reads for index in read.indices}
        rest = [axis for axis in self.statement.reduced if axis not in known]
        if rest:
            shape = [self.statement.extents[axis] for axis in rest]
            empty = Tensor(tuple(shape), FLOAT32, self.builder.empty(shape, FLOAT32))
            self.operands.append((empty, self.map([Index(((a, 1),)) for a in rest])))

    def map(self, indices: Sequence[Index]) -> Map:
        """From the loops to a place in a buffer."""
        places = [self.place(index) for index in indices]
        return Map.get(len(self.axes), 0, places)

    def place(self, index: Index) -> ir.AffineExpr:
        total = ir.AffineConstantExpr.get(index.offset)
        for axis, factor in index.terms:
            total = ir.AffineDimExpr.get(self.places[axis]) * factor + total
        return total
