"""Slices at places known only at run time: what loops over tensors read and write."""

from __future__ import annotations

from collections.abc import Sequence

from nanoloom.ir.mlir import arith, ir, tensor
from nanoloom.linalg.builder.builder import Builder
from nanoloom.linalg.builder.generic import from_body, to_body
from nanoloom.linalg.builder.scalar import Scalar
from nanoloom.linalg.builder.tensor import Tensor
from nanoloom.linalg.builder.tensor_slices import Number, inserted, sliced


def index(number: int) -> ir.Value:
    return arith.constant(ir.IndexType.get(), number)


def drop_dims(shape: Sequence[int], axes: Sequence[int]) -> list[int]:
    return [s for d, s in enumerate(shape) if d not in axes]


def read(
    b: Builder,
    x: Tensor,
    places: Sequence[Number],
    sizes: Sequence[int],
    drop: Sequence[int] = (),
) -> Tensor:
    """The block of x at `places`; the dimensions in `drop`, of extent 1, go away.

    MLIR refuses a place in a dimension of extent 0, so nothing is read of nothing.
    """
    shape = drop_dims(sizes, drop)
    if 0 in shape:
        return b.tensor(b.empty(shape, x.dtype), x.dtype)
    return b.tensor(sliced(b.value(x), places, sizes, shape=shape), x.dtype)


def write(
    b: Builder,
    x: Tensor,
    into: Tensor,
    places: Sequence[Number],
    sizes: Sequence[int],
) -> Tensor:
    """`into` with its block at `places` replaced by x, which may lack dimensions."""
    if 0 in sizes:
        return into
    return b.tensor(inserted(b.value(x), b.value(into), places, sizes), into.dtype)


def read_at(b: Builder, x: Tensor, axis: int, place: Number) -> Tensor:
    """numpy's x.take(place, axis): one index of an axis, which goes away."""
    places: list[Number] = [place if d == axis else 0 for d in range(x.rank)]
    sizes = [1 if d == axis else s for d, s in enumerate(x.shape)]
    return read(b, x, places, sizes, [axis])


def write_at(b: Builder, x: Tensor, into: Tensor, axis: int, place: Number) -> Tensor:
    """`into` with x, which has one dimension less, at one index of an axis."""
    places: list[Number] = [place if d == axis else 0 for d in range(into.rank)]
    sizes = [1 if d == axis else s for d, s in enumerate(into.shape)]
    return write(b, x, into, places, sizes)


def written(b: Builder, x: Tensor) -> Tensor:
    """x, a number, in the code where it is known: a parameter is no size.

    A program for all sizes has there what the constant is for each
    (dynamic/dynamic_kernel.py).
    """
    if not x.is_constant or x.size != 1:
        return x
    return b.full(x.shape, x.array().item(), x.dtype)


def element(b: Builder, x: Tensor, at: Sequence[ir.Value]) -> Scalar:
    """One element, outside of any body over elements."""
    return to_body(tensor.extract(b.value(x), list(at)), x.dtype)


def with_element(b: Builder, x: Tensor, at: Sequence[ir.Value], new: Scalar) -> Tensor:
    """x with another element at a place."""
    made = tensor.InsertOp(from_body(new, x.dtype), b.value(x), list(at)).result
    return b.tensor(made, x.dtype)
