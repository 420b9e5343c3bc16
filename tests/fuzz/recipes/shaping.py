"""Operators that move elements and change shapes."""

from __future__ import annotations

import math

import numpy as np

from tests.fuzz.sketch import ALL, BOOL, FLOATS, I32, I64, Sketch
from tests.fuzz.words import Recipe, words


def axis_of(s: Sketch, rank: int) -> int:
    """An axis, from the front or from the back."""
    return s.integer(-rank, rank - 1)


def axes_of(s: Sketch, rank: int, count: int | None = None) -> list[int]:
    """Some axes, each once, counted from either end."""
    wanted = s.integer(1, rank) if count is None else count
    chosen = s.rng.permutation(rank)[:wanted]
    return [int(a) - (rank if s.chance(0.3) else 0) for a in chosen]


def reshape(s: Sketch, op: str) -> None:
    x = s.operand(s.types(op))
    shape, size = s[x].shape, s[x].size
    if not size:
        sizes = [*s.rng.permutation(shape)] if s.chance(0.7) else [0, s.size()]
        s.add(op, [x, s.numbers(*map(int, sizes))], allowzero=1)
        return
    parts: list[int] = []
    left = size
    while left > 1 and len(parts) < 4:
        part = s.pick([d for d in range(1, min(left, 40) + 1) if left % d == 0])
        parts.append(part)
        left //= part
    parts.append(left)
    made = [int(d) for d in s.rng.permutation(parts)]
    if s.chance(0.4):
        made[s.integer(0, len(made) - 1)] = -1
    elif s.chance(0.2) and shape and made[0] == shape[0]:
        made[0] = 0
    s.add(op, [x, s.numbers(*made)])


def transpose(s: Sketch, op: str) -> None:
    x = s.operand(s.types(op))
    order = [int(a) for a in s.rng.permutation(s[x].ndim)]
    s.add(op, [x], perm=order if order and s.chance(0.85) else None)


def squeeze(s: Sketch, op: str) -> None:
    x = s.operand(s.types(op), accept=lambda a: 1 in a.shape)
    ones = [i for i, d in enumerate(s[x].shape) if d == 1]
    if not ones or s.chance(0.3):
        if not (s.opset < 13 and s[x].ndim == 0):
            s.add(op, [x])
        return
    s.add(op, [x, s.numbers(*ones[: s.integer(1, len(ones))])])


def unsqueeze(s: Sketch, op: str) -> None:
    x = s.operand(s.types(op))
    count = s.integer(1, 2)
    axes = axes_of(s, s[x].ndim + count, count)
    if s.opset < 13:
        axes = sorted(a % (s[x].ndim + count) for a in axes)
    s.add(op, [x, s.numbers(*axes)])


def flatten(s: Sketch, op: str) -> None:
    x = s.operand(s.types(op))
    s.add(op, [x], axis=s.integer(-s[x].ndim, s[x].ndim))


def expand(s: Sketch, op: str) -> None:
    x = s.operand(s.types(op), accept=lambda a: a.size < 500)
    shape = [s.size(6) if d == 1 else s.pick([d, 1]) for d in s[x].shape]
    front = [s.size(4) for _ in range(s.integer(0, 2))]
    s.add(op, [x, s.numbers(*front, *shape)])


def tile(s: Sketch, op: str) -> None:
    x = s.operand(s.types(op), accept=lambda a: a.size < 500)
    s.add(op, [x, s.numbers(*(s.integer(0, 3) if s.chance(0.1) else s.integer(1, 3)
                              for _ in s[x].shape))])  # fmt: skip


def cut(s: Sketch, op: str) -> None:
    x = s.operand(s.types(op), range(1, 6))
    axes = axes_of(s, s[x].ndim)
    starts, ends, steps = [], [], []
    for axis in axes:
        d = s[x].shape[axis]
        step = s.pick([1, 1, 2, 3, -1, -2]) if s.opset >= 10 else 1
        first, last = s.integer(-d - 1, d + 1), s.integer(-d - 1, d + 1)
        if s.chance(0.7):
            first, last = (0, max(1, d - 1)) if step > 0 else (d - 1, -d - 1)
        if s.chance(0.1):
            last = 2**31 - 1 if step > 0 else -(2**31)
        starts.append(first)
        ends.append(last)
        steps.append(step)
    kind = s.pick([I64, I64, I32])
    whole = (starts, ends, axes, steps)[: 4 if s.opset >= 10 else 3]
    s.add(op, [x, *(s.numbers(*row, dtype=kind) for row in whole)])


def split(s: Sketch, op: str) -> None:
    x = s.operand(s.types(op), range(1, 6))
    axis = axis_of(s, s[x].ndim)
    d = s[x].shape[axis]
    count = s.integer(1, min(4, max(1, d)))
    bounds = sorted(s.integer(0, d) for _ in range(count - 1))
    sizes = np.diff([0, *bounds, d]).tolist()
    even = d % count == 0
    if s.opset >= 18 and s.chance(0.4):
        s.add(op, [x], count, axis=axis, num_outputs=count)
    elif s.opset < 18 and even and s.chance(0.4):
        s.add(op, [x], count, axis=axis)
    else:
        s.add(op, [x, s.numbers(*sizes)], count, axis=axis)


def concat(s: Sketch, op: str) -> None:
    x = s.operand(s.types(op), range(1, 6))
    axis = axis_of(s, s[x].ndim)
    parts = [x]
    for _ in range(s.integer(0, 3)):
        shape = list(s[x].shape)
        shape[axis] = s.size(9)
        parts.append(x if s.chance(0.2) else s.like(shape, s[x].dtype))
    s.add(op, [s.pick(parts) for _ in parts], axis=axis)


def pad(s: Sketch, op: str) -> None:
    mode = s.pick(["constant", "reflect", "edge", "wrap"])
    if mode == "wrap" and s.opset < 19:
        mode = "edge"
    types = s.types(op)
    x = s.operand(types, range(1, 5), lambda a: a.size < 2000 and 0 not in a.shape)
    shape = s[x].shape
    limits = [min(d - 1, 4) if mode != "constant" else 4 for d in shape]
    low = -1 if mode == "constant" and s.chance(0.2) else 0
    pads = [s.integer(min(low, max(0, k)), max(0, k)) for k in limits * 2]
    inputs = [x, s.numbers(*pads)]
    if mode == "constant" and s.chance(0.6):
        inputs.append(s.fresh(s.array((), s[x].dtype), parameter=True))
    if s.opset >= 18 and s.chance(0.3):
        axes = axes_of(s, len(shape))
        both = [pads[a % len(shape) + k * len(shape)] for k in (0, 1) for a in axes]
        inputs[1] = s.numbers(*both)
        inputs = [*inputs, *[""] * (3 - len(inputs)), s.numbers(*axes)]
    s.add(op, inputs, mode=mode)


def shape_of(s: Sketch, op: str) -> None:
    x = s.operand(s.types(op))
    if op == "Shape" and s.opset >= 15 and s.chance(0.5):
        ends = {"start": s.integer(-3, 3), "end": s.pick([None, s.integer(-3, 4)])}
        s.add(op, [x], **ends)
        return
    made = s.add(op, [x])
    if op == "Shape" and s[x].ndim and s.chance(0.5):
        s.add("Reshape", [s.operand([s[x].dtype], [s[x].ndim]), *made], allowzero=1)


def blocks(s: Sketch, op: str) -> None:
    size, dtype = s.integer(1, 3), s.dtype(s.types(op))
    n, c, h, w = s.size(3), s.size(5), s.size(7), s.size(7)
    if op == "DepthToSpace":
        shape, mode = (n, c * size * size, h, w), s.pick([None, "DCR", "CRD"])
    else:
        shape, mode = (n, c, h * size, w * size), None
    s.add(op, [s.like(shape, dtype)], blocksize=size, mode=mode)


def crop_or_pad(s: Sketch, op: str) -> None:
    x = s.operand(s.types(op), range(1, 5))
    axes = axes_of(s, s[x].ndim)
    sizes = [max(1, s[x].shape[a] + s.integer(-3, 3)) for a in axes]
    s.add(op, [x, s.numbers(*sizes)], axes=axes)


def reverse(s: Sketch, op: str) -> None:
    x = s.operand(s.types(op), range(2, 5), lambda a: 0 not in a.shape[:2])
    time = s.integer(0, 1)
    length, batch = s[x].shape[time], s[x].shape[1 - time]
    lengths = [s.integer(1, max(1, length)) for _ in range(batch)]
    s.add(op, [x, s.numbers(*lengths)], time_axis=time, batch_axis=1 - time)


def triangle(s: Sketch, op: str) -> None:
    x = s.operand(s.types(op), range(2, 5))
    inputs = [x, s.scalar(s.integer(-5, 5))] if s.chance(0.6) else [x]
    s.add(op, inputs, upper=s.pick([None, 0, 1]))


def eye(s: Sketch, op: str) -> None:
    x = s.operand(s.types(op), [2])
    kind = s.pick([None, 1, 6, 7, 11])
    s.add(op, [x], k=s.pick([None, 1, -2, 7]), dtype=kind)


def filled(s: Sketch, op: str) -> None:
    import onnx

    value = s.array((1,), s.dtype([x for x in ALL if x != BOOL]))
    tensor = onnx.numpy_helper.from_array(value)
    shape = s.shape(s.integer(1, 4), 500)
    s.add(op, [s.numbers(*shape)], value=tensor if s.chance(0.8) else None)


def numbered(s: Sketch, op: str) -> None:
    dtype = s.dtype(s.types(op))
    step = s.pick([1, 2, 3]) * (s.pick([1, -1]) if dtype.kind != "u" else 1)
    start, count = s.integer(0, 9), s.integer(0, 40)
    ends = (start, start + step * count, step)
    s.add(op, [s.scalar(x, dtype) for x in ends])


def one_hot(s: Sketch, op: str) -> None:
    depth = s.integer(1, 9)
    indices = s.array(s.shape(s.integer(0, 3), 200), s.pick([I64, I32]), -depth - 1,
                      depth + 1)  # fmt: skip
    values = s.array((2,), s.dtype([*FLOATS[:1], I64, I32]))
    s.add(
        op,
        [s.fresh(indices), s.scalar(depth), s.fresh(values, parameter=True)],
        axis=s.integer(-indices.ndim - 1, indices.ndim),
    )


def dropout(s: Sketch, op: str) -> None:
    """As it is when nothing is trained."""
    x = s.operand(s.types(op))
    if s.opset >= 12 and s.chance(0.3):
        s.add(op, [x, s.scalar(0.5, np.dtype(np.float32))], s.integer(1, 2))
    else:
        s.add(op, [x], s.integer(1, 2) if s.opset >= 12 else 1)


def col2im(s: Sketch, op: str) -> None:
    image = (s.integer(3, 9), s.integer(3, 9))
    block = (s.integer(1, 3), s.integer(1, 3))
    steps = (s.integer(1, 2), s.integer(1, 2))
    count = math.prod((i - b) // t + 1 for i, b, t in zip(image, block, steps,
                                                          strict=True))  # fmt: skip
    shape = (s.size(3), math.prod(block) * s.integer(1, 3), count)
    inputs = [s.like(shape, s.dtype(s.types(op)))]
    s.add(op, [*inputs, s.numbers(*image), s.numbers(*block)], strides=steps)


RECIPES: dict[str, Recipe] = {
    **dict.fromkeys(words("Shape Size"), shape_of),
    **dict.fromkeys(words("DepthToSpace SpaceToDepth"), blocks),
    "CenterCropPad": crop_or_pad,
    "Col2Im": col2im,
    "Concat": concat,
    "ConstantOfShape": filled,
    "Dropout": dropout,
    "Expand": expand,
    "EyeLike": eye,
    "Flatten": flatten,
    "OneHot": one_hot,
    "Pad": pad,
    "Range": numbered,
    "Reshape": reshape,
    "ReverseSequence": reverse,
    "Slice": cut,
    "Split": split,
    "Squeeze": squeeze,
    "Tile": tile,
    "Transpose": transpose,
    "Trilu": triangle,
    "Unsqueeze": unsqueeze,
}
