"""Slices at places known only at run time: what loops over tensors read and write."""

from __future__ import annotations

from collections.abc import Sequence

from nanoloom.ir.mlir import arith, ir, tensor
from nanoloom.linalg.builder.builder import Builder, tensor_type
from nanoloom.linalg.builder.generic import from_body, to_body
from nanoloom.linalg.builder.scalar import Scalar
from nanoloom.linalg.builder.tensor import Tensor

Place = int | ir.Value
DYNAMIC = ir.ShapedType.get_dynamic_size()


def index(number: int) -> ir.Value:
    return arith.constant(ir.IndexType.get(), number)


def split_places(places: Sequence[Place]) -> tuple[list[ir.Value], list[int]]:
    """Run-time offsets, and static offsets with a mark where they are."""
    dynamic = [p for p in places if not isinstance(p, int)]
    return dynamic, [p if isinstance(p, int) else DYNAMIC for p in places]


def drop_dims(shape: Sequence[int], axes: Sequence[int]) -> list[int]:
    return [s for d, s in enumerate(shape) if d not in axes]


def read(
    b: Builder,
    x: Tensor,
    places: Sequence[Place],
    sizes: Sequence[int],
    drop: Sequence[int] = (),
) -> Tensor:
    """The block of x at `places`; the dimensions in `drop`, of extent 1, go away.

    MLIR refuses a place in a dimension of extent 0, so nothing is read of nothing.
    """
    shape = drop_dims(sizes, drop)
    if 0 in shape:
        return b.tensor(b.empty(shape, x.dtype), x.dtype)
    dynamic, static = split_places(places)
    made = tensor.ExtractSliceOp(
        tensor_type(shape, x.dtype),
        b.value(x),
        dynamic,
        [],
        [],
        static,
        list(sizes),
        [1] * x.rank,
    )
    return b.tensor(made.result, x.dtype)


def write(
    b: Builder,
    x: Tensor,
    into: Tensor,
    places: Sequence[Place],
    sizes: Sequence[int],
) -> Tensor:
    """`into` with its block at `places` replaced by x, which may lack dimensions."""
    if 0 in sizes:
        return into
    dynamic, static = split_places(places)
    made = tensor.InsertSliceOp(
        b.value(x),
        b.value(into),
        dynamic,
        [],
        [],
        static,
        list(sizes),
        [1] * into.rank,
    )
    return b.tensor(made.result, into.dtype)


def read_at(b: Builder, x: Tensor, axis: int, place: Place) -> Tensor:
    """numpy's x.take(place, axis): one index of an axis, which goes away."""
    places: list[Place] = [place if d == axis else 0 for d in range(x.rank)]
    sizes = [1 if d == axis else s for d, s in enumerate(x.shape)]
    return read(b, x, places, sizes, [axis])


def write_at(b: Builder, x: Tensor, into: Tensor, axis: int, place: Place) -> Tensor:
    """`into` with x, which has one dimension less, at one index of an axis."""
    places: list[Place] = [place if d == axis else 0 for d in range(into.rank)]
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
