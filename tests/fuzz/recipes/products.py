"""Operators that multiply and sum: matrices, convolutions, quantized ones."""

from __future__ import annotations

import numpy as np

from tests.fuzz.sketch import F16, F32, F64, I8, I32, U8, Sketch
from tests.fuzz.words import Recipe, words

SPATIAL = (1, 2, 2, 3)


def factors(s: Sketch, x: np.ndarray) -> tuple[int, ...]:
    """The shape of a right operand: a vector, a matrix, a batch that broadcasts."""
    inner = x.shape[-1]
    if s.chance(0.15):
        return (inner,)
    batch = x.shape[:-2] if s.chance(0.6) else ()
    batch = tuple(1 if s.chance(0.3) else d for d in batch)
    return (*batch, inner, s.size(65))


def matmul(s: Sketch, op: str) -> None:
    x = s.operand([F32, F32, F64, F16, I32], range(1, 5), lambda a: a.shape[-1] < 99)
    s.add(op, [x, s.like(factors(s, s[x]), s[x].dtype)])


def gemm(s: Sketch, op: str) -> None:
    dtype = s.dtype([F32, F64, F16])
    m, k, n = s.size(40), s.size(65), s.size(65)
    flip, flop = s.integer(0, 1), s.integer(0, 1)
    x = s.operand([dtype], [2])
    m, k = s[x].shape if not flip else s[x].shape[::-1]
    inputs = [x, s.like((n, k) if flop else (k, n), dtype)]
    if s.chance(0.7):
        full = (m, n)
        shape = s.pick([full, (1, n), (n,), (m, 1), (1,), ()])
        inputs.append(s.like(shape, dtype))
    s.add(
        op,
        inputs,
        transA=flip or None,
        transB=flop or None,
        alpha=s.pick([None, 0.5, 2.0]),
        beta=s.pick([None, 0.25, 2.0]),
    )


EQUATIONS = (
    "ij,jk->ik", "bij,bjk->bik", "ij->ji", "ij->i", "ij,ij->ij", "i,j->ij", "ii->i",
    "bhid,bhjd->bhij", "...ij,...jk->...ik", "ij,kj->ik", "ij->", "i,i->", "bij->bji",
)  # fmt: skip


def einsum(s: Sketch, op: str) -> None:
    equation = s.pick(EQUATIONS)
    sizes = {letter: s.integer(1, 9) for letter in "bhijkd"}
    extra = tuple(s.integer(1, 3) for _ in range(2))
    dtype = s.dtype([F32, F64, I32])
    inputs = []
    for term in equation.split("->")[0].split(","):
        front = extra if "..." in term else ()
        shape = (*front, *(sizes[letter] for letter in term.replace(".", "")))
        inputs.append(s.like(shape, dtype))
    s.add(op, inputs, equation=equation)


def determinant(s: Sketch, op: str) -> None:
    n = s.integer(1, 5)
    s.add(op, [s.like((*s.shape(s.integer(0, 2), 20), n, n), s.pick([F32, F64]))])


# ---- convolutions


def image(s: Sketch, spatial: int, channels: int) -> tuple[int, ...]:
    sides = [s.integer(1, 9 if spatial > 1 else 33) for _ in range(spatial)]
    return (s.size(3), channels, *sides)


def window(s: Sketch, sides: tuple[int, ...], auto: bool = True) -> dict[str, object]:
    """Attributes of a window that fits into an image, with `kernel_shape`."""
    kernel = [s.integer(1, min(4, d)) for d in sides]
    if auto and s.chance(0.15):
        return {
            "kernel_shape": kernel,
            "auto_pad": s.pick(["SAME_UPPER", "SAME_LOWER", "VALID"]),
            "strides": [s.integer(1, 2) for _ in sides],
        }
    pairs = zip(kernel, sides, strict=True)
    dilations = [s.integer(1, 2) if 2 * k <= d else 1 for k, d in pairs]
    pads = [s.integer(0, max(0, k - 1)) for k in (*kernel, *kernel)]
    return {
        "kernel_shape": kernel,
        "strides": [s.integer(1, 3) for _ in sides] if s.chance(0.5) else None,
        "dilations": dilations if s.chance(0.4) else None,
        "pads": pads if s.chance(0.6) else None,
    }


def channels(s: Sketch) -> tuple[int, int, int]:
    """Channels in, channels out, groups."""
    group = s.pick([1, 1, 1, 2, 3, 5, 16])
    into = group * (1 if group > 3 else s.pick([1, 2, 3, 4, 8, 17]))
    out = group * (1 if group > 3 else s.pick([1, 2, 3, 5, 8, 16, 17]))
    return into, out, group


def convolution(s: Sketch, op: str) -> None:
    into, out, group = channels(s)
    spatial = s.pick(SPATIAL)
    dtype = s.dtype([F32, F64, F16])
    fits = s.operand([dtype], [spatial + 2], lambda a: 0 < a.shape[1] < 40)
    x = fits
    if s[x].shape[1] not in (into,) or 0 in s[x].shape:
        if s.chance(0.4) and 0 < s[x].shape[1] < 40 and 0 not in s[x].shape:
            into, group = s[x].shape[1], 1
        else:
            x = s.fresh(s.array(image(s, spatial, into), dtype))
    how = window(s, s[x].shape[2:])
    kernel = how["kernel_shape"]
    assert isinstance(kernel, list)
    w = s.fresh(s.array((out, into // group, *kernel), dtype, -1, 1), parameter=True)
    inputs = [x, w]
    if s.chance(0.5):
        inputs.append(s.fresh(s.array((out,), dtype), parameter=True))
    s.add(op, inputs, group=group if group > 1 else None, **how)


def transposed(s: Sketch, op: str) -> None:
    into, out, group = channels(s)
    spatial = s.pick(SPATIAL)
    dtype = s.dtype([F32, F64])
    shape = (s.integer(1, 2), into, *(s.integer(1, 6) for _ in range(spatial)))
    kernel = [s.integer(1, 4) for _ in range(spatial)]
    steps = [s.integer(1, 3) for _ in range(spatial)]
    w = s.fresh(s.array((into, out // group, *kernel), dtype), parameter=True)
    inputs = [s.like(shape, dtype), w]
    if s.chance(0.5):
        inputs.append(s.fresh(s.array((out,), dtype), parameter=True))
    s.add(
        op,
        inputs,
        group=group,
        strides=steps if s.chance(0.7) else None,
        pads=[s.integer(0, k - 1) for k in kernel * 2] if s.chance(0.4) else None,
        output_padding=[t - 1 for t in steps] if s.chance(0.15) else None,
        dilations=[s.integer(1, 2) for _ in kernel] if s.chance(0.2) else None,
    )


def deformed(s: Sketch, op: str) -> None:
    group, into, out = s.pick([1, 1, 2]), s.pick([2, 4]), s.pick([2, 4, 6])
    x = s.fresh(s.array((s.integer(1, 2), into, 6, 7), F32))
    kernel = [s.integer(1, 3), s.integer(1, 3)]
    w = s.fresh(s.array((out, into // group, *kernel), F32, -1, 1))
    sides = [6 - kernel[0] + 1, 7 - kernel[1] + 1]
    parts = s.pick([1, 2])
    count = parts * kernel[0] * kernel[1]
    offset = s.fresh(s.array((s[x].shape[0], 2 * count, *sides), F32, -1, 1))
    inputs = [x, w, offset, s.fresh(s.array((out,), F32)) if s.chance(0.5) else ""]
    if s.chance(0.5):
        inputs.append(s.fresh(s.array((s[x].shape[0], count, *sides), F32, 0, 1)))
    s.add(op, inputs, group=group, offset_group=parts, kernel_shape=kernel)


# ---- quantized


def quantize(s: Sketch, op: str) -> None:
    """By tensor, by axis, by block."""
    to = s.pick([U8, I8] if s.opset < 21 else [U8, I8, np.dtype("int16"),
                                              np.dtype("uint16")])  # fmt: skip
    into = op == "QuantizeLinear"
    x = s.operand([F32] if into else [to, I32], range(5))
    to = to if into else s[x].dtype
    shape, axis, more = (), None, {}
    if s[x].ndim and s.chance(0.5) and s.opset >= 13:
        axis = s.integer(-s[x].ndim, s[x].ndim - 1)
        shape = (s[x].shape[axis],)
        if s.opset >= 21 and s.chance(0.3) and s[x].size:
            size = s.integer(1, shape[0])
            full = list(s[x].shape)
            full[axis] = -(-full[axis] // size)
            shape, more = tuple(full), {"block_size": size}
    scale = s.fresh(s.array(shape, F32, 0.01, 0.3), parameter=True)
    zero = np.zeros(shape, to) if to == I32 else s.array(shape, to, -3, 9)
    inputs = [x, scale]
    if s.chance(0.8) or (into and to != U8):
        inputs.append(s.fresh(zero, parameter=True))
    s.add(op, inputs, axis=axis, **more)


def dynamically(s: Sketch, op: str) -> None:
    x = s.operand([F32], range(1, 5))
    if s[x].size:  # the scale of no elements is open
        s.add(op, [x], 3)


def integer_matmul(s: Sketch, op: str) -> None:
    one, other = s.pick([U8, I8]), s.pick([U8, I8])
    m, k, n = s.size(33), s.integer(1, 65), s.size(33)
    front = s.pick([(), (), (2,)])
    x = s.fresh(s.array((*front, m, k), one, -128, 255))
    w = s.fresh(s.array((k, n), other, -128, 255), parameter=s.chance(0.7))
    inputs = [x, w]
    if s.chance(0.6):
        inputs.append(s.fresh(s.array((), one, 0, 9), parameter=True))
        if s.chance(0.6):
            shape = s.pick([(), (n,)])
            inputs.append(s.fresh(s.array(shape, other, 0, 9), parameter=True))
    s.add(op, inputs)


def integer_convolution(s: Sketch, op: str) -> None:
    into, out, group = channels(s)
    one, other = s.pick([U8, I8]), s.pick([U8, I8])
    x = s.fresh(s.array(image(s, s.pick([1, 2, 2]), into), one, -128, 255))
    how = window(s, s[x].shape[2:])
    kernel = how["kernel_shape"]
    assert isinstance(kernel, list)
    shape = (out, into // group, *kernel)
    w = s.fresh(s.array(shape, other, -128, 255), parameter=s.chance(0.7))
    zero = s.fresh(s.array((), one, 0, 9), parameter=True)
    inputs = [x, w, zero] if s.chance(0.7) else [x, w]
    s.add(op, inputs, group=group, **how)


def scale_and_zero(s: Sketch, shape: tuple[int, ...], dtype: np.dtype) -> list[str]:
    scale = s.fresh(s.array(shape, F32, 0.01, 0.2), parameter=True)
    return [scale, s.fresh(s.array(shape, dtype, 0, 9), parameter=True)]


def quantized_matmul(s: Sketch, op: str) -> None:
    one = s.pick([U8, I8])
    other, to = s.pick([I8, one]), one
    m, k, n = s.size(33), s.integer(1, 65), s.size(65)
    x = s.fresh(s.array((m, k), one, -128, 255))
    w = s.fresh(s.array((k, n), other, -64, 63), parameter=s.chance(0.7))
    inputs = [x, *scale_and_zero(s, (), one), w]
    inputs += [*scale_and_zero(s, s.pick([(), (n,)]), other)]
    s.add(op, [*inputs, s.scalar(s.real(0.1, 2), F32), s.scalar(3, to)])


def quantized_convolution(s: Sketch, op: str) -> None:
    into, out, group = channels(s)
    one = s.pick([U8, I8])
    other = s.pick([I8, one])
    x = s.fresh(s.array(image(s, s.pick([1, 2, 2]), into), one, -128, 255))
    how = window(s, s[x].shape[2:])
    kernel = how["kernel_shape"]
    assert isinstance(kernel, list)
    w = s.fresh(s.array((out, into // group, *kernel), other, -64, 63), parameter=True)
    shape = s.pick([(), (out,)])
    scale = s.fresh(s.array(shape, F32, 0.01, 0.2), parameter=True)
    zero = s.fresh(np.zeros(shape, other), parameter=True)
    inputs = [x, *scale_and_zero(s, (), one), w, scale, zero]
    inputs += [s.scalar(s.real(0.1, 2), F32), s.scalar(3, one)]
    if s.chance(0.4):
        inputs.append(s.fresh(s.array((out,), I32, -99, 99), parameter=True))
    s.add(op, inputs, group=group, **how)


RECIPES: dict[str, Recipe] = {
    **dict.fromkeys(words("QuantizeLinear DequantizeLinear"), quantize),
    "Conv": convolution,
    "ConvInteger": integer_convolution,
    "ConvTranspose": transposed,
    "DeformConv": deformed,
    "Det": determinant,
    "DynamicQuantizeLinear": dynamically,
    "Einsum": einsum,
    "Gemm": gemm,
    "MatMul": matmul,
    "MatMulInteger": integer_matmul,
    "QLinearConv": quantized_convolution,
    "QLinearMatMul": quantized_matmul,
}
