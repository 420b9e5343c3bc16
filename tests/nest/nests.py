"""Nests as values, for what asks no IR."""

from __future__ import annotations

from nanoloom.nest.index import Access, Index
from nanoloom.nest.nest import Buffer, LoopNest, Role
from nanoloom.nest.statement import Axis, AxisKind, Semiring, Statement

MULTIPLY = Semiring("arith.addf", "arith.mulf", ("", ""))


def axes(kind: AxisKind, **extents: int) -> tuple[Axis, ...]:
    return tuple(Axis(name, kind, extent) for name, extent in extents.items())


def access(buffer: str, *indices: str) -> Access:
    """access("image", "n", "y+rz"): sums of axes, each once."""
    found = [Index(tuple((axis, 1) for axis in x.split("+"))) for x in indices]
    return Access(buffer, tuple(found), "f32")


def matmul(m: int = 64, k: int = 48, n: int = 40) -> LoopNest:
    """product[i, j] += x[i, k] * w[k, j]; point[i, j] = f(product[i, j])"""
    outer = axes(AxisKind.PARALLEL, i=m, j=n)
    inner = axes(AxisKind.REDUCTION, k=k)
    fill = Statement("fill", outer, (), (access("fill", "i", "j"),), ("",), ("",))
    product = Statement(
        "product",
        (*outer, *inner),
        (access("x", "i", "k"), access("w", "k", "j")),
        (access("product", "i", "j"),),
        ("0.0",),
        ("fill",),
        MULTIPLY,
    )
    point = Statement(
        "point",
        outer,
        (access("product", "i", "j"),),
        (access("point", "i", "j"),),
        ("",),
        ("",),
    )
    shapes = {"x": (m, k), "w": (k, n), "out": (m, n)}
    roles = {"x": Role.INPUT, "w": Role.CONSTANT, "out": Role.RESULT}
    buffers = [
        Buffer(name, shapes[name], "f32", roles[name], number)
        for number, name in enumerate(shapes)
    ]
    made = [
        Buffer(name, (m, n), "f32", Role.TEMPORARY)
        for name in ("fill", "product", "point")
    ]
    return LoopNest((*buffers, *made), (fill, product, point), ("point",))


def convolution() -> LoopNest:
    """The channeled convolution of MLIR's chapter H, without its first values."""
    outer = axes(AxisKind.PARALLEL, n=5, y=80, x=100, c=128)
    window = axes(AxisKind.REDUCTION, rz=3, ry=3, rx=128)
    conv = Statement(
        "conv",
        (*outer, *window),
        (
            access("filter", "rx", "rz", "ry", "c"),
            access("input", "n", "y+rz", "x+ry", "rx"),
        ),
        (access("conv", "n", "y", "x", "c"),),
        ("0.0",),
        ("",),
        MULTIPLY,
    )
    relu = Statement(
        "relu",
        outer,
        (access("conv", "n", "y", "x", "c"),),
        (access("relu", "n", "y", "x", "c"),),
        ("",),
        ("",),
    )
    shapes = {
        "filter": (128, 3, 3, 128),
        "input": (5, 82, 102, 128),
        "out": (5, 80, 100, 128),
    }
    roles = {"filter": Role.CONSTANT, "input": Role.INPUT, "out": Role.RESULT}
    buffers = [
        Buffer(name, shapes[name], "f32", roles[name], number)
        for number, name in enumerate(shapes)
    ]
    made = [
        Buffer(name, shapes["out"], "f32", Role.TEMPORARY) for name in ("conv", "relu")
    ]
    return LoopNest((*buffers, *made), (conv, relu), ("relu",))
