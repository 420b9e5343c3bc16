"""Bodies over the elements of tensors, and the one door to `linalg.generic`.

f16 and bf16 are computed in f32 inside a body and rounded once, when the body yields.
bool is one byte in memory and i1 inside a body.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from nanoloom.ir.make_generic import make_generic
from nanoloom.ir.mlir import arith, ir, linalg, tensor
from nanoloom.linalg.builder.checks import Checks
from nanoloom.linalg.builder.scalar import (
    BFLOAT16,
    BOOL,
    Number,
    Scalar,
    from_index,
    storage_type,
)
from nanoloom.linalg.builder.tensor import Array, Tensor, constant_tensor

Body = Callable[..., Scalar | Sequence[Scalar]]
Map: TypeAlias = ir.AffineMap
FLOAT32 = np.dtype(np.float32)
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
class Generics:
    """Builds linalg at MLIR's current insertion point.

    add_parameter: makes a function argument of a constant array that is too large for
    the IR, one for all that are equal.  checks: of indices, made so far.
    """

    add_parameter: Callable[[Tensor], ir.Value]
    checks: Checks = field(default_factory=Checks)

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
        ways = [m for _, m in (*inputs, *outputs)]
        op = make_generic(ins, outs, ways, iterators).operation
        tensors = [x for x, _ in (*inputs, *outputs)]
        block = op.regions[0].blocks[0]
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
