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


def windows(
    rows: int = 7, columns: int = 6, *, step: int = 2, reach: int = 3
) -> LoopNest:
    """t[y, x] = f(a[y, x]);  b[y, x] = t[y, x] + t[y + 1, x]
    p[i, j] = largest of b[step i + r, step j + s], r and s below `reach`"""
    high, wide = (step * (n - 1) + reach for n in (rows, columns))

    def made(name: str, read: tuple[Access, ...], **extents: int) -> Statement:
        outer = axes(AxisKind.PARALLEL, **extents)
        write = access(name, *extents)
        return Statement(name, outer, read, (write,), ("",), ("",))

    first = made("t", (access("a", "y", "x"),), y=high + 1, x=wide)
    below = Access("t", (Index((("y", 1),), 1), Index((("x", 1),))), "f32")
    second = made("b", (access("t", "y", "x"), below), y=high, x=wide)
    places = (("i", "r"), ("j", "s"))
    read = Access("b", tuple(Index(((a, step), (w, 1))) for a, w in places), "f32")
    pool = Statement(
        "p",
        (
            *axes(AxisKind.PARALLEL, i=rows, j=columns),
            *axes(AxisKind.REDUCTION, r=reach, s=reach),
        ),
        (read,),
        (access("p", "i", "j"),),
        ("-inf",),
        ("",),
        Semiring("arith.maximumf"),
    )
    shapes = {"a": (high + 1, wide), "out": (rows, columns)}
    roles = {"a": Role.INPUT, "out": Role.RESULT}
    buffers = [
        Buffer(name, shapes[name], "f32", roles[name], number)
        for number, name in enumerate(shapes)
    ]
    between = {"t": (high + 1, wide), "b": (high, wide), "p": (rows, columns)}
    held = [Buffer(name, x, "f32", Role.TEMPORARY) for name, x in between.items()]
    return LoopNest((*buffers, *held), (first, second, pool), ("p",))
