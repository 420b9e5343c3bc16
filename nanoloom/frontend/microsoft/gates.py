"""Gates and norms of streams, and of branches that lie beside each other."""

from __future__ import annotations

import onnx_ir as ir

from nanoloom.frontend.microsoft.replacement import Refused, Replacement

FLOAT = ir.DataType.FLOAT
EPSILON = 1e-5


def widened(b: Replacement, x: ir.Value) -> ir.Value:
    """These compute in f32, whatever goes in."""
    return x if b.dtype(x) == FLOAT else b.op("Cast", x, to=int(FLOAT))


def narrowed(b: Replacement, x: ir.Value, like: ir.Value) -> ir.Value:
    return x if b.dtype(like) == FLOAT else b.op("CastLike", x, like)


def mean_square_norm(b: Replacement, x: ir.Value, epsilon: float) -> ir.Value:
    """x / sqrt(mean(x^2) + epsilon) along the last axis."""
    mean = b.op("ReduceMean", b.op("Mul", x, x), b.numbers(-1))
    return b.op(
        "Div",
        x,
        b.op("Sqrt", b.op("Add", mean, b.op("CastLike", b.constant_float(epsilon), x))),
    )


def gated_norm(b: Replacement) -> ir.Value:
    """The norm of each group of as many elements as scale has, gated."""
    x, scale, gate = b.input(0), b.input(1), b.input(2)
    name = b.string("activation", "silu")
    if name not in ("silu", "swish", "sigmoid"):
        raise Refused(f"its attribute activation = {name} is not supported")
    wide, shape = widened(b, x), b.op("Shape", x)
    size = b.op(
        "Concat", b.op("Shape", x, end=-1), b.numbers(-1), b.op("Shape", scale), axis=0
    )
    normal = mean_square_norm(
        b, b.op("Reshape", wide, size), b.float("epsilon", EPSILON)
    )
    normal = b.op("Reshape", b.op("Mul", normal, widened(b, scale)), shape)
    opened = widened(b, gate)
    factor = b.op("Sigmoid", opened)
    factor = factor if name == "sigmoid" else b.op("Mul", opened, factor)
    return narrowed(b, b.op("Mul", normal, factor), x)


def gated_add(b: Replacement) -> ir.Value:
    return b.op("Add", b.input(0), b.op("Mul", b.input(1), b.input(2)))


def scaled_silu(b: Replacement) -> ir.Value:
    """z * sigmoid(z) of z = scale * x."""
    x, scale = b.input(0), b.optional(1)
    alpha = b.float("alpha", 1.0)
    if scale is None:
        z = x if alpha == 1.0 else b.op("Mul", x, b.scalar(alpha, x))
    else:
        z = narrowed(b, b.op("Mul", widened(b, x), widened(b, scale)), x)
    return b.op("Mul", z, b.op("Sigmoid", z))


def attention_gates(b: Replacement) -> list[ir.Value | None]:
    """The decay of a state and how much of it is renewed."""
    a, rate = b.input(0), b.optional(3)
    biased = b.op("Add", widened(b, a), b.input(1))
    decay = b.op("Mul", b.op("Softplus", biased), b.input(2))
    renewed = None
    if rate is not None:
        renewed = narrowed(b, b.op("Sigmoid", widened(b, rate)), rate)
    return [narrowed(b, decay, a), renewed]


def branches(b: Replacement, x: ir.Value) -> tuple[ir.Value, int]:
    """[..., branches, width] of x, which may have both in one axis; how many or 0."""
    count = b.int("num_branches", 0)
    if not count:
        return x, 0
    shape = b.op("Concat", b.op("Shape", x, end=-1), b.numbers(count, -1), axis=0)
    return b.op("Reshape", x, shape), count


def branchwise_norm(b: Replacement) -> ir.Value:
    x, scale = b.input(0), b.optional(1)
    apart, count = branches(b, widened(b, x))
    made = mean_square_norm(b, apart, b.float("epsilon", EPSILON))
    if scale is not None:
        rows = widened(b, scale)
        if b.rank(scale) == 1:
            rows = b.op(
                "Reshape",
                rows,
                b.op("Concat", b.numbers(-1), b.op("Shape", apart, start=-1), axis=0),
            )
        made = b.op("Mul", made, rows)
    made = made if not count else b.op("Reshape", made, b.op("Shape", x))
    return narrowed(b, made, x)


def factors(b: Replacement, given: ir.Value, apart: ir.Value, rank: int) -> ir.Value:
    """One for each branch, or for each element of it: of the rank of `apart`.

    rank: of the streams with their branches apart.
    """
    wide = widened(b, given)
    if b.rank(given) == rank:
        return wide
    count = b.op("Shape", apart, start=-2, end=-1)
    shape = b.op("Concat", b.op("Shape", given, end=-1), count, b.numbers(-1), axis=0)
    return b.op("Reshape", wide, shape)


def pre_mix(b: Replacement) -> ir.Value:
    """The weighted sum of the branches."""
    x = b.input(0)
    apart, count = branches(b, widened(b, x))
    rank = b.rank(x) + (count > 0)
    weighted = b.op("Mul", apart, factors(b, b.input(1), apart, rank))
    made = b.op("ReduceSum", weighted, b.numbers(-2), keepdims=0)
    if (scale := b.float("reduction_scale", 1.0)) != 1.0:
        made = b.op("Mul", made, b.constant_float(scale))
    return narrowed(b, made, x)


def post_mix(b: Replacement) -> ir.Value:
    """Branches mixed with each other, and one more output added to each."""
    x, added, mix = b.input(0), b.input(1), b.optional(3)
    apart, count = branches(b, widened(b, x))
    rank = b.rank(x) + (count > 0)
    one = b.op("Unsqueeze", widened(b, added), b.numbers(-2))
    share = b.op("Mul", factors(b, b.input(2), apart, rank), one)
    if mix is not None:
        wide = widened(b, mix)
        order = list(range(b.rank(mix)))
        order[-2:] = order[:-3:-1]
        apart = b.op("MatMul", b.op("Transpose", wide, perm=order), apart)
    made = b.op("Add", apart, share)
    made = made if not count else b.op("Reshape", made, b.op("Shape", x))
    return narrowed(b, made, x)


OPERATORS = {
    "BranchwiseRMSNorm": branchwise_norm,
    "GatedAdd": gated_add,
    "GatedRMSNorm": gated_norm,
    "HyperConnectionPostMix": post_mix,
    "HyperConnectionPreMix": pre_mix,
    "LinearAttentionGate": attention_gates,
    "ScaledSiLU": scaled_silu,
}
