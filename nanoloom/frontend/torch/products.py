"""Products of matrices, and attention, which keeps its meaning."""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir

from nanoloom.frontend.torch.call import Call
from nanoloom.frontend.torch.elementwise import SHORT
from nanoloom.frontend.torch.writer import INT64

T = ir.DataType


def matmul(first: str, second: str) -> object:
    return lambda call: product(call, call.value(first), call.value(second))


def product(call: Call, a: ir.Value, b: ir.Value) -> ir.Value:
    """ONNX has none of integers of less than 32 bits; torch wraps theirs around."""
    if call.dtype not in SHORT:
        return call.w("MatMul", a, b)
    wide = call.w("MatMul", *(call.w.cast(x, T.INT32) for x in (a, b)))
    return call.w.cast(wide, call.dtype)


def linear(call: Call) -> ir.Value:
    """x @ weight.T + bias."""
    weight = call.value("weight")
    if call.input_rank("weight") > 1:
        weight = call.w("Transpose", weight, perm=[1, 0])
    made = product(call, call.value("input"), weight)
    bias = call.optional("bias")
    return made if bias is None else call.w("Add", made, bias)


def bilinear(call: Call) -> ir.Value:
    """input1 @ each matrix of weight @ input2 + bias: the first as one product."""
    w = call.w
    outs, ins, others = call.fake("weight").shape
    batch = call.fake("input1").shape[:-1]
    beside = w("Transpose", call.value("weight"), perm=[1, 0, 2])
    beside = w.reshape(beside, call.sizes.all([ins, outs * others]))
    rows = product(call, call.value("input1"), beside)
    rows = w.reshape(rows, call.sizes.all([*batch, outs, others]))
    last = w.constant([-1])
    column = w("Unsqueeze", call.value("input2"), last)
    made = w("Squeeze", product(call, rows, column), last)
    bias = call.optional("bias")
    return made if bias is None else w("Add", made, bias)


def times(call: Call, value: ir.Value, factor: object) -> ir.Value:
    if isinstance(factor, int | float) and factor == 1:
        return value
    return call.w("Mul", value, call.of(factor, value.dtype))


def plus_product(first: str, second: str) -> object:
    """beta * self + alpha * (first @ second); self is not looked at where beta is 0."""

    def made(call: Call) -> ir.Value:
        both = product(call, call.value(first), call.value(second))
        both = times(call, both, call["alpha"])
        if call["beta"] == 0:
            return both
        return call.w("Add", both, times(call, call.value("self"), call["beta"]))

    return made


def addcmul(op: str) -> object:
    def made(call: Call) -> ir.Value:
        a, b = (call.value(n, call.dtype) for n in ("tensor1", "tensor2"))
        part = times(call, call.w(op, a, b), call["value"])
        return call.w("Add", call.value("self", call.dtype), part)

    return made


def outer(call: Call) -> ir.Value:
    w, other = call.w, "vec2"
    a = w("Unsqueeze", call.value("self", call.dtype), w.constant([1]))
    op = "And" if call.dtype == T.BOOL else "Mul"
    return w(op, a, call.value(other, call.dtype))


def einsum(call: Call) -> ir.Value:
    equation = str(call["equation"]).replace(" ", "")
    terms = equation.split("->")[0].split(",")
    dtype = T.FLOAT if call.dtype == T.BFLOAT16 else call.dtype  # ONNX has none of it
    tensors = call.tensors("tensors", dtype)
    ranks = [x.dim() for x in call.fakes("tensors")]
    others = [  # axes that "..." stands for
        rank - len(term.replace("...", "")) if "..." in term else 0
        for rank, term in zip(ranks, terms, strict=True)
    ]
    for i, term in enumerate(terms):
        missing = max(others) - others[i]
        if "..." in term and missing:  # torch broadcasts them, ONNX wants as many
            first = term.index("...")
            axes = call.w.constant([*range(first, first + missing)])
            tensors[i] = call.w("Unsqueeze", tensors[i], axes)
    made = call.w("Einsum", *tensors, equation=equation)
    return call.w.cast(made, call.dtype)


def cosine_similarity(call: Call) -> ir.Value:
    w, dtype = call.w, call.dtype
    rank = max(call.input_rank(n) for n in ("x1", "x2"))
    axis = w.constant(np.array([call.axis("dim", rank) - rank] if rank else [], int))
    least = call.of(call["eps"], dtype)
    units: list[ir.Value] = []
    for name in ("x1", "x2"):
        x, other = (call.value(n, dtype) for n in (name, {"x1": "x2"}.get(name, "x1")))
        x = w("Expand", x, w.typed(INT64, "Shape", other))
        units.append(w("Div", x, w("Max", w("ReduceL2", x, axis, keepdims=1), least)))
    return w("ReduceSum", w("Mul", *units), axis, keepdims=0)


# ---- attention


def attention(call: Call) -> ir.Value:
    """softmax(query @ key.T * scale + mask) @ value; a row without any key is 0.

    Scores are f32 at least, as torch's own kernels have them.
    """
    if call["dropout_p"]:
        raise call.refuse("drops numbers at random", hint="call module.eval() first")
    w, dtype = call.w, wide_type(call.dtype)
    q, k, v = (call.value(n) for n in ("query", "key", "value"))
    if call["enable_gqa"]:
        k, v = shared_heads(call, k), shared_heads(call, v)
    rank = call.input_rank("key")
    order = [*range(rank - 2), rank - 1, rank - 2]
    q, k = w.cast(q, dtype), w.cast(k, dtype)
    scores = w("MatMul", q, w("Transpose", k, perm=order))
    scores = w("Mul", scores, scale_of(call, dtype))

    def of_values(scores: ir.Value) -> ir.Value:
        return w("MatMul", w.cast(w("Softmax", scores, axis=-1), call.dtype), v)

    mask = causal(call) if call["is_causal"] else call.optional("attn_mask")
    if mask is None:
        return of_values(scores)
    lowest = w.constant(-np.inf, dtype)
    if mask.dtype == T.BOOL:
        scores = w.typed(dtype, "Where", mask, scores, lowest)
    else:
        scores = w("Add", scores, w.cast(mask, dtype))
    made = of_values(scores)
    if call["is_causal"]:  # the first key is seen by all
        return made
    none = w.constant(0, call.dtype)
    return w.typed(call.dtype, "Where", any_key(call, mask), made, none)


def any_key(call: Call, mask: ir.Value) -> ir.Value:
    """By row of a mask, whether it leaves a key."""
    w = call.w
    last = w.constant([-1])
    if mask.dtype == T.BOOL:
        most = w("ReduceMax", w.cast(mask, T.UINT8), last, keepdims=1)
        return w.cast(most, T.BOOL)
    lowest = w.constant(-np.inf, mask.dtype or T.FLOAT)
    most = w("ReduceMax", mask, last, keepdims=1)
    return w("Not", w.typed(T.BOOL, "Equal", most, lowest))


def wide_type(dtype: ir.DataType) -> ir.DataType:
    return T.FLOAT if dtype.bitwidth < 32 else dtype


def scale_of(call: Call, dtype: ir.DataType) -> ir.Value:
    if call["scale"] is not None:
        return call.value("scale", dtype)
    depth = call.fake("query").shape[-1]
    if isinstance(depth, int):
        return call.w.constant(1 / math.sqrt(depth), dtype)
    size = call.sizes.operand(call.sizes.of(depth))
    return call.w("Reciprocal", call.w("Sqrt", call.w.cast(size, dtype)))


def causal(call: Call) -> ir.Value:
    """A query sees the keys up to its own number."""
    w = call.w
    sizes = [call.fake(n).shape[-2] for n in ("query", "key")]
    shape = w.ints(call.sizes.all(sizes))
    ones = w("Expand", w.constant(1, T.UINT8), shape)
    return w.cast(w("Trilu", ones, upper=0), T.BOOL)


def shared_heads(call: Call, x: ir.Value) -> ir.Value:
    """[batch, heads, length, depth], each head several times: once for each query."""
    w = call.w
    wanted, have = (call.fake(n).shape[-3] for n in ("query", "key"))
    if isinstance(wanted, int) and wanted == have:
        return x
    shape = w.typed(INT64, "Shape", x)
    heads = w.ints([call.size(have), call.size(wanted // have)])
    front = w("Slice", shape, w.constant([0]), w.constant([-3]))
    rest = w("Slice", shape, w.constant([-2]), w.constant([2**62]))
    apart = w("Unsqueeze", x, w.constant([-3]))
    wide = w("Expand", apart, w("Concat", front, heads, rest, axis=0))
    joined = w("Concat", front, w.ints([call.size(wanted)]), rest, axis=0)
    return w("Reshape", wide, joined, allowzero=1)


def flash(call: Call) -> tuple[ir.Value | None, ...]:
    """What AOTAutograd makes of attention on a CPU; only the result is asked for."""
    return (attention(call), *[None] * 8)


def lerp(call: Call) -> ir.Value:
    """start + weight * (end - start), from the nearer end, as torch computes it."""
    w = call.w
    a, b = call.value("self", call.dtype), call.value("end", call.dtype)
    part, one = call.value("weight", call.dtype), w.constant(1, call.dtype)
    gap = w("Sub", b, a)
    near = w("Add", a, w("Mul", part, gap))
    far = w("Sub", b, w("Mul", gap, w("Sub", one, part)))
    half = w.constant(0.5, call.dtype)
    small = w.typed(T.BOOL, "Less", w("Abs", part), half)
    return w.typed(call.dtype, "Where", small, near, far)


OPERATORS = {
    "linear": linear, "bilinear": bilinear,
    "matmul": matmul("self", "other"), "mm": matmul("self", "mat2"),
    "bmm": matmul("self", "mat2"), "mv": matmul("self", "vec"),
    "dot": matmul("self", "tensor"), "addmm": plus_product("mat1", "mat2"),
    "baddbmm": plus_product("batch1", "batch2"), "addmv": plus_product("mat", "vec"),
    "addcmul": addcmul("Mul"), "addcdiv": addcmul("Div"), "outer": outer,
    "einsum": einsum, "cosine_similarity": cosine_similarity,
    "scaled_dot_product_attention": attention,
    "_scaled_dot_product_flash_attention_for_cpu": flash, "lerp": lerp,
}  # fmt: skip
