"""Networks of signs, as PyTorch exports them, and what they compute exactly."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

Array = np.ndarray

# How s is made of x: ONNX text; the value of s where x is 0, and its magnitude.
FORMS = {
    "where": ("c = GreaterOrEqual(x, zero) s = Where(c, one, minus)", 1, 1.0),
    "greater": ("c = Greater(x, zero) s = Where(c, one, minus)", -1, 1.0),
    "less": ("c = Less(x, zero) s = Where(c, minus, one)", 1, 1.0),
    "swapped": ("c = LessOrEqual(zero, x) s = Where(c, half, minushalf)", 1, 0.5),
    "negative": ("c = Greater(x, zero) s = Where(c, minus, one)", -1, -1.0),
    "cast": ("c = GreaterOrEqual(x, zero) f = Cast<to=1>(c) t = Mul(f, two) "
             "s = Sub(t, one)", 1, 1.0),
    "not": ("d = Less(x, zero) c = Not(d) s = Where(c, one, minus)", 1, 1.0),
    "twice": ("u = Sign(x) t = Add(u, tenth) s = Sign(t)", 1, 1.0),
    "sign": ("s = Sign(x)", 0, 1.0),
    "halved": ("u = Sign(x) s = Mul(u, half)", 0, 0.5),
    "straight": ("u = Sign(x) t = Clip(x, minus, one) d = Sub(u, t) "
                 "v = Clip(x, minus, one) s = Add(d, v)", 0, 1.0),
    "tanh": ("c = GreaterOrEqual(x, zero) u = Where(c, one, minus) t = Tanh(x) "
             "d = Add(u, t) s = Sub(d, t)", 1, 1.0),
}  # fmt: skip
NUMBERS = {
    "zero": 0, "one": 1, "minus": -1, "two": 2, "half": 0.5, "minushalf": -0.5,
    "tenth": 0.1, "large": 1000,
}  # fmt: skip


@dataclass(frozen=True)
class Binary:
    """One product of signs: x [n, c, high, wide] by w [f, c / groups, k, k].

    Without taps, x [n, c] by w: MatMul, or Gemm of w [f, c] with `turned`.
    """

    form: str = "where"
    n: int = 1
    c: int = 16
    f: int = 5
    size: tuple[int, ...] = (6, 7)
    kernel: tuple[int, ...] = (3, 3)
    pads: tuple[int, ...] = (1, 1, 1, 1)
    strides: tuple[int, ...] = (1, 1)
    dilations: tuple[int, ...] = (1, 1)
    group: int = 1
    bias: bool = True
    turned: bool = False
    seed: int = 0

    def x(self) -> Array:
        """Numbers of both signs, zeros of both among them."""
        r = np.random.default_rng(self.seed + 1)
        made = r.standard_normal((self.n, self.c, *self.size)).astype(np.float32)
        flat = made.reshape(-1)
        flat[::7], flat[::11] = 0.0, -0.0
        return made

    def w(self) -> Array:
        r = np.random.default_rng(self.seed + 2)
        shape = (self.f, self.c // self.group, *self.kernel)
        signs = np.where(r.standard_normal(shape) > 0, 1, -1)
        scale = r.uniform(0.1, 2, (self.f, *(1,) * (len(shape) - 1)))
        made = (signs * scale.astype(np.float32)).astype(np.float32)
        return made if self.turned or self.kernel else np.ascontiguousarray(made.T)

    def b(self) -> Array:
        r = np.random.default_rng(self.seed + 3)
        return r.standard_normal(self.f).astype(np.float32)

    def signs(self) -> Array:
        """What s is, in float64."""
        _, zero, scale = FORMS[self.form]
        x = self.x()
        return np.where(x > 0, 1, np.where(x < 0, -1, zero)) * scale


def model(case: Binary, weights: Array | None = None) -> onnx.ModelProto:
    """float x -> float y."""
    text, _, _ = FORMS[case.form]
    w = case.w() if weights is None else weights
    inputs = ", ".join(["s", "w", *(["b"] if case.bias else [])])
    attributes = (
        f"<kernel_shape={list(case.kernel)}, pads={list(case.pads)}, "
        f"strides={list(case.strides)}, dilations={list(case.dilations)}, "
        f"group={case.group}>"
    )
    product = f"y = Conv{attributes}({inputs})"
    if not case.kernel:
        product = f"y = Gemm<transB=1>({inputs})"
        if not case.turned:
            product = f"p = MatMul(s, w) y = {'Add(p, b)' if case.bias else 'Neg(p)'}"
    shape = ",".join(map(str, (case.n, case.c, *case.size)))
    made = onnx.parser.parse_model(
        '<ir_version: 10, opset_import: ["" : 20]>'
        f"signs (float[{shape}] x) => (float y) {{ {text} {product} }}"
    )
    del made.graph.output[:]
    made.graph.output.append(
        helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    )
    held = {k: np.asarray(v, np.float32) for k, v in NUMBERS.items()}
    held |= {"w": w, "b": case.b()}
    used = {name for node in made.graph.node for name in node.input}
    tensors = (numpy_helper.from_array(v, k) for k, v in held.items() if k in used)
    made.graph.initializer.extend(tensors)
    return made


def exact(case: Binary) -> tuple[Array, Array]:
    """What y is in float64, and how far float32 may be from it.

    The sum of signs is exact; it is scaled and the bias added, with a rounding each.
    """
    w = case.w().astype(np.float64)
    if not case.kernel:
        products = case.signs() @ (w.T if case.turned else w)
        added = case.b() if case.bias else 0
    else:
        products = convolved(case, case.signs(), w)
        added = case.b()[:, None, None] if case.bias else 0
    signed = -1 if not case.kernel and not case.bias and not case.turned else 1
    eps = np.finfo(np.float32).eps
    bound = 2 * eps * (abs(products) + abs(np.float64(added)))
    return signed * products + added, bound


def convolved(case: Binary, x: Array, w: Array) -> Array:
    """The convolution, tap by tap, zeros around it."""
    top, left, below, right = case.pads
    padded = np.pad(x, ((0, 0), (0, 0), (top, below), (left, right)))
    spans = [(k - 1) * d + 1 for k, d in zip(case.kernel, case.dilations, strict=True)]
    sizes = [
        (p - span) // s + 1
        for p, span, s in zip(padded.shape[2:], spans, case.strides, strict=True)
    ]
    made = np.zeros((case.n, case.f, *sizes))
    many, parts = case.f // case.group, case.c // case.group
    for place in range(prod(case.kernel)):
        tap = np.unravel_index(place, case.kernel)
        at = tuple(
            slice(int(t) * d, int(t) * d + (size - 1) * s + 1, s)
            for t, d, size, s in zip(
                tap, case.dilations, sizes, case.strides, strict=True
            )
        )
        for g in range(case.group):
            some = padded[(slice(None), slice(g * parts, (g + 1) * parts), *at)]
            filters = w[g * many : (g + 1) * many, :, tap[0], tap[1]]
            made[:, g * many : (g + 1) * many] += np.einsum(
                "nchw,fc->nfhw", some, filters
            )
    return made
