"""What operator lowerings are written with: tensors in, `linalg.generic` out.

f16 and bf16 are computed in f32 inside a body and rounded once, when the body yields.
bool is one byte in memory and i1 inside a body.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from nanoloom.linalg import reassociation
from nanoloom.linalg.scalar import (
    BFLOAT16,
    BOOL,
    Number,
    Scalar,
    compute_type,
    constant,
    from_index,
    storage_type,
)
from nanoloom.linalg.tensor import Array, Tensor, constant_tensor, derived
from nanoloom.mlir import arith, ir, linalg, tensor

Body = Callable[..., Scalar | Sequence[Scalar]]
Map: TypeAlias = ir.AffineMap
FLOAT32 = np.dtype(np.float32)
INT64 = np.dtype(np.int64)
PARALLEL, REDUCTION = "parallel", "reduction"


def computed_as(dtype: np.dtype) -> np.dtype:
    """The element type a body computes in."""
    return FLOAT32 if dtype in (np.dtype(np.float16), BFLOAT16) else dtype


def tensor_type(shape: Sequence[int], dtype: np.dtype) -> ir.RankedTensorType:
    return ir.RankedTensorType.get(list(shape), storage_type(dtype))


def to_body(value: ir.Value, dtype: np.dtype) -> Scalar:
    """A stored element as a body sees it."""
    if dtype == BOOL:
        return Scalar(value, np.dtype(np.uint8)).differs(0)
    return Scalar(value, dtype).cast(computed_as(dtype))


def from_body(scalar: Scalar, dtype: np.dtype) -> ir.Value:
    """A body's result as it is stored in a tensor of `dtype`."""
    if dtype == BOOL:
        assert scalar.dtype == BOOL, scalar.dtype
        return arith.extui(storage_type(BOOL), scalar.value)
    if scalar.dtype != dtype:
        assert scalar.dtype == computed_as(dtype), (scalar.dtype, dtype)
        return scalar.cast(dtype).value
    return scalar.value


@dataclass
class Builder:
    """Builds linalg at MLIR's current insertion point.

    add_parameter: makes a function argument of a constant array that is too large for
    the IR; equal arrays by name are asked for once.
    """

    add_parameter: Callable[[Tensor], ir.Value]
    known: dict[int, ir.Value] = field(default_factory=dict)

    # ---- values -------------------------------------------------------------------

    def value(self, x: Tensor) -> ir.Value:
        """The MLIR value of a tensor; a constant becomes a parameter."""
        if x.value is not None:
            return x.value
        return self.add_parameter(x)

    def tensor(self, value: ir.Value, dtype: np.dtype) -> Tensor:
        return Tensor(tuple(ir.RankedTensorType(value.type).shape), dtype, value)

    def constant(self, array: Array | Number, dtype: np.dtype | None = None) -> Tensor:
        """A tensor of values known now (a table, a weight, a scalar)."""
        return constant_tensor(np.asarray(array, dtype=dtype))

    def empty(self, shape: Sequence[int], dtype: np.dtype) -> ir.Value:
        return tensor.empty(list(shape), storage_type(dtype))

    def full(self, shape: Sequence[int], number: Number, dtype: np.dtype) -> Tensor:
        """A tensor with one value everywhere."""
        return self.elementwise(
            lambda: constant(number, computed_as(dtype)), shape=shape, dtype=dtype
        )

    # ---- the one door to linalg.generic ---------------------------------------------

    def generic(
        self,
        inputs: Sequence[tuple[Tensor, Map]],
        outputs: Sequence[tuple[Tensor, Map]],
        iterators: Sequence[str],
        body: Body,
    ) -> list[Tensor]:
        """linalg.generic; `body` gets the inputs' scalars, then the outputs' scalars.

        outputs: the initial tensors (their values are what the body sees first).
        """
        if any(x.size == 0 for x, _ in (*inputs, *outputs)):  # not one iteration
            return [x for x, _ in outputs]
        ins = [self.value(x) for x, _ in inputs]
        outs = [self.value(x) for x, _ in outputs]
        op = linalg.GenericOp(
            [out.type for out in outs],
            ins,
            outs,
            ir.ArrayAttr.get([ir.AffineMapAttr.get(m) for _, m in (*inputs, *outputs)]),
            ir.ArrayAttr.get(
                [ir.Attribute.parse(f"#linalg.iterator_type<{i}>") for i in iterators]
            ),
        )
        tensors = [x for x, _ in (*inputs, *outputs)]
        block = op.regions[0].blocks.append(*[storage_type(x.dtype) for x in tensors])
        with ir.InsertionPoint(block):
            arguments = [
                to_body(argument, x.dtype)
                for argument, x in zip(block.arguments, tensors, strict=True)
            ]
            results = body(*arguments)
            if isinstance(results, Scalar):
                results = [results]
            linalg.YieldOp(
                [
                    from_body(result, x.dtype)
                    for result, (x, _) in zip(results, outputs, strict=True)
                ]
            )
        return [
            self.tensor(result, x.dtype)
            for result, (x, _) in zip(op.results, outputs, strict=True)
        ]

    # ---- elementwise -----------------------------------------------------------

    def elementwise(
        self,
        body: Body,
        *inputs: Tensor,
        dtype: np.dtype | None = None,
        shape: Sequence[int] | None = None,
    ) -> Tensor:
        """body(scalars of the inputs) for each element, inputs broadcast as in numpy.

        One-element constants become constants of the body.  Result: `dtype` (default:
        the first input's), the broadcast shape (or `shape`, which it must match).
        """
        made = dtype or inputs[0].dtype
        full = tuple(shape) if shape is not None else broadcast(inputs)
        inside, outside = split_scalars(inputs)
        maps = [(x, broadcast_map(x.shape, full)) for x in outside]

        def with_constants(*scalars: Scalar) -> Scalar | Sequence[Scalar]:
            given = iter(scalars)
            return body(
                *[
                    constant(inside[i], computed_as(x.dtype))
                    if i in inside
                    else next(given)
                    for i, x in enumerate(inputs)
                ]
            )

        out = Tensor(full, made, self.empty(full, made))
        return self.generic(
            maps,
            [(out, Map.get_identity(len(full)))],
            [PARALLEL] * len(full),
            lambda *s: with_constants(*s[:-1]),
        )[0]

    def generate(
        self,
        shape: Sequence[int],
        dtype: np.dtype,
        body: Callable[..., Scalar],
    ) -> Tensor:
        """A tensor whose element at (i, j, ...) is body(i, j, ...), int64 scalars.

        Read other tensors inside with `load`.
        """

        def with_indices(_: Scalar) -> Scalar:
            return body(
                *[from_index(linalg.IndexOp(d).result) for d in range(len(shape))]
            )

        out = Tensor(tuple(shape), dtype, self.empty(shape, dtype))
        return self.generic(
            [],
            [(out, Map.get_identity(len(shape)))],
            [PARALLEL] * len(shape),
            with_indices,
        )[0]

    def load(self, x: ir.Value, dtype: np.dtype, indices: Sequence[Scalar]) -> Scalar:
        """Element of a tensor inside a body; take the value with `value` outside it.

        The indices must be in range: clamp or select before.
        """
        return to_body(tensor.extract(x, [i.index() for i in indices]), dtype)

    def cast(self, x: Tensor, dtype: np.dtype) -> Tensor:
        if x.dtype == dtype:
            return x
        exact = dtype if x.dtype == np.float64 else computed_as(dtype)
        return self.elementwise(lambda s: s.cast(exact), x, dtype=dtype)

    # ---- reductions ------------------------------------------------------------

    def reduce(
        self,
        body: Callable[[Scalar, Scalar], Scalar],
        x: Tensor,
        axes: Sequence[int],
        start: Number,
        *,
        keepdims: bool = True,
        dtype: np.dtype | None = None,
        prepare: Callable[[Scalar], Scalar] = lambda s: s,
    ) -> Tensor:
        """fold body(accumulator, prepare(element)) over `axes`, beginning with start.

        The accumulator has type `dtype` (default x's, f32 for f16 and bf16: the result
        is rounded once at the end).
        """
        made = dtype or x.dtype
        wide = computed_as(made)
        gone = {axis % x.rank for axis in axes} if x.rank else set[int]()
        kept = [d for d in range(x.rank) if d not in gone]
        shape = [x.shape[d] for d in kept]
        dims = [ir.AffineDimExpr.get(d) for d in kept]
        out = self.full(shape, start, wide)
        result = self.generic(
            [(x, Map.get_identity(x.rank))],
            [(out, Map.get(x.rank, 0, dims))],
            [REDUCTION if d in gone else PARALLEL for d in range(x.rank)],
            lambda element, sofar: body(sofar, prepare(element)),
        )[0]
        result = self.cast(result, made)
        if not keepdims:
            return result
        ones = [1 if d in gone else x.shape[d] for d in range(x.rank)]
        return self.reshape(result, ones)

    # ---- contractions ----------------------------------------------------------

    def einsum(
        self, equation: str, *inputs: Tensor, dtype: np.dtype | None = None
    ) -> Tensor:
        """A sum of products: "bmk,kn->bmn"; one letter a dimension, none repeated.

        Dimensions of extent 1 do not broadcast.  `dtype`: of the result; sums are kept
        in f32 for f16 and bf16, and in `dtype` for all others.
        """
        made = dtype or inputs[0].dtype
        wide = computed_as(made)
        left, result = equation.replace(" ", "").split("->")
        terms = left.split(",")
        letters = list(result) + sorted(set("".join(terms)) - set(result))
        extent = {
            letter: size
            for term, x in zip(terms, inputs, strict=True)
            for letter, size in zip(term, x.shape, strict=True)
        }

        def dims(term: str) -> Map:
            places = [ir.AffineDimExpr.get(letters.index(c)) for c in term]
            return Map.get(len(letters), 0, places)

        def body(*scalars: Scalar) -> Scalar:
            product = scalars[0].cast(wide)
            for factor in scalars[1:-1]:
                product = product * factor.cast(wide)
            return scalars[-1] + product

        start = self.full([extent[c] for c in result], 0, wide)
        summed = self.generic(
            [(x, dims(term)) for term, x in zip(terms, inputs, strict=True)],
            [(start, dims(result))],
            [PARALLEL if c in result else REDUCTION for c in letters],
            body,
        )[0]
        return self.cast(summed, made)

    # ---- movement of data ------------------------------------------------------

    def reshape(self, x: Tensor, shape: Sequence[int]) -> Tensor:
        """The same elements in row-major order under another shape: no data moves."""
        shape = tuple(int(s) for s in shape)
        if shape == x.shape:
            return x
        if x.value is None:
            load = x.load
            assert load is not None
            return Tensor(shape, x.dtype, None, lambda: load().reshape(shape), x.name)
        return self.tensor(reassociation.reshape(x.value, shape), x.dtype)

    def transpose(self, x: Tensor, permutation: Sequence[int]) -> Tensor:
        """numpy.transpose: out.shape[i] == x.shape[permutation[i]]."""
        order = [p % x.rank for p in permutation]
        if order == list(range(x.rank)):
            return x
        if x.value is None:
            turned = tuple(x.shape[p] for p in order)
            return derived(
                x,
                f"transposed{order}",
                turned,
                x.dtype,
                lambda array: array.transpose(order),
            )
        shape = [x.shape[p] for p in order]
        places = [ir.AffineDimExpr.get(order.index(d)) for d in range(x.rank)]
        return self._copy(x, Map.get(x.rank, 0, places), shape)

    def broadcast_to(self, x: Tensor, shape: Sequence[int]) -> Tensor:
        if tuple(shape) == x.shape:
            return x
        return self._copy(x, broadcast_map(x.shape, tuple(shape)), shape)

    def slice(
        self,
        x: Tensor,
        starts: Sequence[int],
        shape: Sequence[int],
        steps: Sequence[int] | None = None,
    ) -> Tensor:
        """out[i, ...] = x[starts[0] + i * steps[0], ...], steps may be negative.

        A view of x where every step is positive, a copy otherwise.
        """
        strides = list(steps) if steps is not None else [1] * x.rank
        if 0 in shape:
            return self.full(shape, 0, x.dtype)
        if x.value is None:
            places = tuple(
                s + k * np.arange(n)
                for s, k, n in zip(starts, strides, shape, strict=True)
            )
            change = f"slice{list(starts)}{list(shape)}{strides}"
            return derived(
                x, change, tuple(shape), x.dtype, lambda array: array[np.ix_(*places)]
            )
        if any(step < 0 for step in strides):
            source = self.value(x)
            return self.generate(
                shape,
                x.dtype,
                lambda *at: self.load(
                    source,
                    x.dtype,
                    [i * k + s for i, k, s in zip(at, strides, starts, strict=True)],
                ),
            )
        made = tensor.ExtractSliceOp(
            tensor_type(shape, x.dtype),
            self.value(x),
            [],
            [],
            [],
            list(starts),
            list(shape),
            strides,
        )
        return self.tensor(made.result, x.dtype)

    def insert(self, x: Tensor, into: Tensor, starts: Sequence[int]) -> Tensor:
        """`into` with x written at `starts` (contiguous block, static place)."""
        if x.size == 0:
            return into
        made = tensor.InsertSliceOp(
            self.value(x),
            self.value(into),
            [],
            [],
            [],
            list(starts),
            list(x.shape),
            [1] * x.rank,
        )
        return self.tensor(made.result, x.dtype)

    def pad(
        self, x: Tensor, low: Sequence[int], high: Sequence[int], number: Number = 0
    ) -> Tensor:
        """Constant padding, counts not negative."""
        shape = [a + s + b for a, s, b in zip(low, x.shape, high, strict=True)]
        if tuple(shape) == x.shape:
            return x
        return self.insert(x, self.full(shape, number, x.dtype), low)

    def concat(self, parts: Sequence[Tensor], axis: int) -> Tensor:
        rank = parts[0].rank
        axis %= rank
        if len(parts) == 1:
            return parts[0]
        shape = list(parts[0].shape)
        shape[axis] = sum(part.shape[axis] for part in parts)
        whole = Tensor(tuple(shape), parts[0].dtype, self.empty(shape, parts[0].dtype))
        place = 0
        for part in parts:
            starts = [place if d == axis else 0 for d in range(rank)]
            whole = self.insert(part, whole, starts)
            place += part.shape[axis]
        return whole

    def _copy(self, x: Tensor, source: Map, shape: Sequence[int]) -> Tensor:
        out = Tensor(tuple(shape), x.dtype, self.empty(shape, x.dtype))
        if x.size == 1 and x.is_constant:
            return self.full(shape, x.array().reshape(-1)[0].item(), x.dtype)
        return self.generic(
            [(x, source)],
            [(out, Map.get_identity(len(shape)))],
            [PARALLEL] * len(shape),
            lambda s, _: s,
        )[0]


# ---- shapes ----------------------------------------------------------------------


def broadcast(inputs: Sequence[Tensor]) -> tuple[int, ...]:
    """The shape numpy gives to these operands together."""
    return np.broadcast_shapes(*[x.shape for x in inputs])


def broadcast_map(shape: tuple[int, ...], full: tuple[int, ...]) -> Map:
    """From the full index to an operand of `shape` that is broadcast to `full`."""
    lead = len(full) - len(shape)
    places = [
        ir.AffineConstantExpr.get(0)
        if size == 1 and full[lead + d] != 1
        else ir.AffineDimExpr.get(lead + d)
        for d, size in enumerate(shape)
    ]
    return Map.get(len(full), 0, places)


def split_scalars(
    inputs: Sequence[Tensor],
) -> tuple[dict[int, Number], list[Tensor]]:
    """One-element constants by position, and the other tensors in order."""
    inside = {
        i: x.array().reshape(-1)[0].item()
        for i, x in enumerate(inputs)
        if x.is_constant and x.size == 1 and x.value is None
    }
    return inside, [x for i, x in enumerate(inputs) if i not in inside]


__all__ = [
    "PARALLEL",
    "REDUCTION",
    "Body",
    "Builder",
    "Map",
    "broadcast",
    "broadcast_map",
    "compute_type",
    "computed_as",
    "tensor_type",
]
