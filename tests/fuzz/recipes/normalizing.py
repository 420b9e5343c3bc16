"""Normalizations, attention and losses."""

from __future__ import annotations

from tests.fuzz.recipes.shaping import axis_of
from tests.fuzz.recipes.windows import image_of
from tests.fuzz.sketch import F16, F32, F64, I32, I64, Sketch
from tests.fuzz.words import Recipe, words


def by_batch(s: Sketch, op: str) -> None:
    x = s.operand([F32, F64], range(2, 6), lambda a: 0 not in a.shape)
    each = s.opset < 9 and s.chance(0.3)  # an average of its own at every place
    dtype, c = s[x].dtype, s[x].shape[1:] if each else (s[x].shape[1],)
    rows = [s.fresh(s.array(c, dtype), parameter=True) for _ in range(3)]
    spread = s.fresh(s.array(c, dtype, 0.1, 4), parameter=True)
    s.add(op, [x, *rows, spread], epsilon=s.pick([None, 1e-3]),
          spatial=0 if each else None)  # fmt: skip


def by_instance(s: Sketch, op: str) -> None:
    x = image_of(s, s.pick([1, 2, 3]), [F32])
    c = (s[x].shape[1],)
    rows = [s.fresh(s.array(c, s[x].dtype), parameter=True) for _ in range(2)]
    s.add(op, [x, *rows], epsilon=s.pick([None, 1e-3]))


def by_group(s: Sketch, op: str) -> None:
    groups = s.integer(1, 4)
    channels = groups * s.integer(1, 5)
    shape = (s.integer(1, 3), channels, *s.shape(s.integer(1, 2), 60))
    x = s.fresh(s.array(shape, F32))
    c = (channels if s.opset >= 21 else groups,)
    rows = [s.fresh(s.array(c, F32), parameter=True) for _ in range(2)]
    s.add(op, [x, *rows], num_groups=groups, epsilon=s.pick([None, 1e-3]))


def by_layer(s: Sketch, op: str) -> None:
    x = s.operand([F32, F32, F64, F16], range(1, 5), lambda a: 0 not in a.shape)
    axis = axis_of(s, s[x].ndim)
    shape = s[x].shape[axis:]
    shape = tuple(1 if s.chance(0.1) else d for d in shape)
    rows = [s.fresh(s.array(shape, s[x].dtype), parameter=True) for _ in range(2)]
    if op == "RMSNormalization":
        s.add(op, [x, rows[0]], axis=axis, epsilon=s.pick([None, 1e-3]))
        return
    outputs = s.pick([1, 1, 3])
    s.add(op, [x, *rows[: s.integer(1, 2)]], outputs, axis=axis,
          epsilon=s.pick([None, 1e-3]))  # fmt: skip


def by_mean_and_variance(s: Sketch, op: str) -> None:
    x = image_of(s, 2, [F32])
    s.add(op, [x], axes=s.pick([None, [0, 2, 3], [2, 3], [1]]))


def attention(s: Sketch, op: str) -> None:
    b, heads, q, kv, d = (s.integer(1, 3), s.pick([1, 2, 4]), s.integer(1, 17),
                          s.integer(1, 17), s.pick([4, 8, 16]))  # fmt: skip
    less = s.pick([1, 1, heads])  # heads of keys: all of them, or one for all
    keys = heads // less
    dtype = s.pick([F32, F32, F16])
    if s.chance(0.5):
        shapes = [(b, heads, q, d), (b, keys, kv, d), (b, keys, kv, d)]
        counts = {}
    else:
        shapes = [(b, q, heads * d), (b, kv, keys * d), (b, kv, keys * d)]
        counts = {"q_num_heads": heads, "kv_num_heads": keys}
    inputs = [s.fresh(s.array(shape, dtype, -1, 1)) for shape in shapes]
    if s.chance(0.4):
        inputs.append(s.fresh(s.array((q, kv), dtype)))
    s.add(
        op,
        inputs,
        is_causal=s.pick([None, 0, 1]),
        scale=s.pick([None, 0.5]),
        softcap=s.pick([None, None, 2.0]),
        **counts,
    )


def rotary(s: Sketch, op: str) -> None:
    b, length, heads, d = s.integer(1, 3), s.integer(1, 9), s.integer(1, 3), 8
    four = s.chance(0.5)
    shape = (b, heads, length, d) if four else (b, length, heads * d)
    x = s.fresh(s.array(shape, F32))
    if s.chance(0.5):
        caches = [s.fresh(s.array((20, d // 2), F32, -1, 1)) for _ in range(2)]
        caches.append(s.fresh(s.array((b, length), I64, 0, 19), parameter=True))
    else:
        caches = [s.fresh(s.array((b, length, d // 2), F32, -1, 1)) for _ in range(2)]
    s.add(op, [x, *caches], interleaved=s.pick([None, 1]),
          num_heads=None if four else heads)  # fmt: skip


def loss(s: Sketch, op: str) -> None:
    n, c = s.integer(1, 9), s.integer(1, 7)
    sides = s.pick([(), (), (3,), (2, 4)])
    scores = s.fresh(s.array((n, c, *sides), s.pick([F32, F64])))
    target = s.fresh(s.array((n, *sides), s.pick([I64, I32]), 0, c - 1))
    inputs = [scores, target]
    if s.chance(0.4):
        inputs.append(s.fresh(s.array((c,), s[scores].dtype, 0.1, 2)))
    ignored = s.pick([None, s.integer(0, c - 1)])
    way = s.pick([None, "none", "sum", "mean"])
    if op == "SoftmaxCrossEntropyLoss":
        s.add(op, inputs, s.pick([1, 2]), reduction=way, ignore_index=ignored)
    else:
        s.add(op, inputs, reduction=way, ignore_index=ignored)


def linear_attention(s: Sketch, op: str) -> None:
    b, length, heads, d = s.integer(1, 2), s.integer(1, 9), s.pick([1, 2]), 4
    rows = [s.fresh(s.array((b, length, heads * d), F32, -1, 1)) for _ in range(3)]
    s.add(op, rows, 2, q_num_heads=heads, kv_num_heads=heads, update_rule="linear")


def causal_convolution(s: Sketch, op: str) -> None:
    b, c, length, k = s.integer(1, 2), s.integer(1, 5), s.integer(1, 9), s.integer(1, 4)
    inputs = [s.fresh(s.array((b, c, length), F32)), s.fresh(s.array((c, 1, k), F32))]
    if s.chance(0.5):
        inputs.append(s.fresh(s.array((c,), F32)))
    s.add(op, inputs, 2, activation=s.pick([None, "silu"]))


RECIPES: dict[str, Recipe] = {
    **dict.fromkeys(words("LayerNormalization RMSNormalization"), by_layer),
    **dict.fromkeys(words("NegativeLogLikelihoodLoss SoftmaxCrossEntropyLoss"), loss),
    "Attention": attention,
    "BatchNormalization": by_batch,
    "CausalConvWithState": causal_convolution,
    "GroupNormalization": by_group,
    "InstanceNormalization": by_instance,
    "LinearAttention": linear_attention,
    "MeanVarianceNormalization": by_mean_and_variance,
    "RotaryEmbedding": rotary,
}
