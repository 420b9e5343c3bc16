"""Operators on constants that ONNX's reference computes otherwise than the code does.

In 64-bit floats, rounded once; the reference computes some in the element type, step by
step, and gives others another type or shape.  ScatterND goes from index to index there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import onnx_ir as ir

Array = np.ndarray[Any, np.dtype[Any]]
Rule = Callable[["Own"], Array]
erf = np.vectorize(math.erf, otypes=[np.float64])


@dataclass(frozen=True)
class Own:
    """A node's attributes and arrays."""

    node: ir.Node
    inputs: Sequence[Array | None]

    @property
    def x(self) -> Array:
        found = self.inputs[0]
        assert found is not None  # the model was checked
        return found

    @property
    def wide(self) -> Array:
        return self.x.astype(np.float64)

    def float(self, name: str, default: float) -> float:
        """As models keep it: in f32."""
        found = self.node.attributes.get(name)
        return float(np.float32(default if found is None else found.as_float()))

    def int(self, name: str, default: int) -> int:
        found = self.node.attributes.get(name)
        return default if found is None else found.as_int()

    def text(self, name: str, default: str) -> str:
        found = self.node.attributes.get(name)
        return default if found is None else found.as_string()


def celu(own: Own) -> Array:
    x, alpha = own.wide, own.float("alpha", 1.0)
    return np.maximum(x, 0) + np.minimum(0, alpha * np.expm1(x / alpha))


def elu(own: Own) -> Array:
    x = own.wide
    return np.where(x < 0, own.float("alpha", 1.0) * np.expm1(x), x)


def selu(own: Own) -> Array:
    x, alpha = own.wide, own.float("alpha", 1.67326319217681884765625)
    scale = own.float("gamma", 1.05070102214813232421875)
    return scale * np.where(x > 0, x, alpha * np.expm1(x))


def gelu(own: Own) -> Array:
    x = own.wide
    if own.text("approximate", "none") == "tanh":
        inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)
        return 0.5 * x * (1 + np.tanh(inner))
    return 0.5 * x * (1 + erf(x / math.sqrt(2)))


def hard_swish(own: Own) -> Array:
    x = own.wide
    return x * np.clip(x / 6 + 0.5, 0, 1)


def softplus(own: Own) -> Array:
    return np.logaddexp(own.wide, 0)


def softsign(own: Own) -> Array:
    return own.wide / (1 + abs(own.wide))


def swish(own: Own) -> Array:
    x = own.wide
    return x / (1 + np.exp(-own.float("alpha", 1.0) * x))


def lp_normalization(own: Own) -> Array:
    x, axis = own.wide, own.int("axis", -1)
    if own.int("p", 2) == 1:
        size = abs(x).sum(axis, keepdims=True)
    else:
        size = np.sqrt((x * x).sum(axis, keepdims=True))
    return np.divide(x, size, out=np.zeros_like(x), where=size != 0)


def cumulative_product(own: Own) -> Array:
    given = own.inputs[1]
    assert given is not None
    axis = int(given.reshape(-1)[0])
    x = own.x.astype(np.float64) if own.x.dtype.kind == "f" else own.x
    if own.int("reverse", 0):
        x = np.flip(x, axis)
    made = np.cumprod(x, axis, dtype=x.dtype)
    if own.int("exclusive", 0):
        ones = np.ones_like(np.take(made, [0], axis))
        made = np.concatenate([ones, np.delete(made, -1, axis)], axis)
    return np.flip(made, axis) if own.int("reverse", 0) else made


def bit_cast(own: Own) -> Array:
    kind = ir.DataType(own.int("to", 1)).numpy()
    if kind.itemsize != own.x.dtype.itemsize:
        raise ValueError("other widths")
    return np.asarray(own.x, order="C").view(kind)


def one_hot(own: Own) -> Array:
    """The reference multiplies and adds: its largest number is rounded, or NaN."""
    depth, values = own.inputs[1], own.inputs[2]
    assert depth is not None and values is not None  # the model was checked
    if values.dtype.kind in "OSU":
        raise ValueError("words are no numbers")
    count, indices = int(depth.reshape(-1)[0]), own.x.astype(np.int64)
    axis = own.int("axis", -1) % (indices.ndim + 1)
    places = np.arange(count).reshape(-1, *[1] * (indices.ndim - axis))
    indices = np.expand_dims(np.where(indices < 0, indices + count, indices), axis)
    off, on = values
    return np.where(indices == places, on, off)


def quantize(own: Own) -> Array:
    """The reference converts to int32 first: infinities and large numbers wrap."""
    kind, scale, zero = own.node.outputs[0].dtype, own.inputs[1], own.inputs[2:]
    if kind is None or scale is None or own.int("precision", 0):
        raise ValueError("computed by other arithmetic")
    limits = ml_dtypes.iinfo(kind.numpy())
    whole = np.rint(own.x / placed(own, scale)).astype(np.float64)
    if zero and zero[0] is not None:
        whole = whole + placed(own, zero[0]).astype(np.float64)
    held = np.clip(whole, int(limits.min), int(limits.max))
    return np.where(np.isnan(whole), int(limits.min), held).astype(kind.numpy())


def placed(own: Own, parameter: Array) -> Array:
    """One for all numbers, for each place of an axis or for each block of places."""
    axis, block = own.int("axis", 1), own.int("block_size", 0)
    if parameter.size == 1:
        return parameter.reshape(())
    if block:
        wide = np.repeat(parameter, block, axis)
        return np.take(wide, range(own.x.shape[axis]), axis)
    shape = [1] * own.x.ndim
    shape[axis] = parameter.size
    return parameter.reshape(shape)


SCATTERED = {
    "add": np.add, "max": np.maximum, "min": np.minimum, "mul": np.multiply,
}  # fmt: skip


def scatter_nd(own: Own) -> Array:
    """The reference goes from index to index: seconds for biases of all positions."""
    indices, updates, how = own.inputs[1], own.inputs[2], own.text("reduction", "none")
    assert indices is not None and updates is not None  # the model was checked
    if not indices.shape[-1]:
        raise ValueError("indices of nothing")
    made, at = own.x.copy(), tuple(np.moveaxis(indices, -1, 0))
    if how == "none":
        made[at] = updates  # the last of several that are written to one place
    else:
        SCATTERED[how].at(made, at, updates)
    return made


FLOATS = ("float32", "float64")
INTEGERS = tuple(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))
OF_OTHER_TYPES = ("BitCast", "OneHot", "QuantizeLinear")  # than their first input
RULES: Mapping[str, Rule] = {
    "BitCast": bit_cast, "Celu": celu, "CumProd": cumulative_product, "Elu": elu,
    "Erf": lambda own: erf(own.wide), "Gelu": gelu, "HardSwish": hard_swish,
    "LpNormalization": lp_normalization, "OneHot": one_hot,
    "QuantizeLinear": quantize, "ScatterND": scatter_nd, "Selu": selu,
    "Softplus": softplus, "Softsign": softsign, "Swish": swish,
}  # fmt: skip
KINDS: Mapping[str, tuple[str, ...]] = dict.fromkeys(RULES, FLOATS) | {
    "BitCast": ("float32", "float64", "int32", "int64", "uint32", "uint64"),
    "CumProd": (*FLOATS, "int32", "int64"),
    "OneHot": (*FLOATS, "float16", *INTEGERS),
    "QuantizeLinear": (*FLOATS, "float16", "bfloat16", "int32"),
    "ScatterND": (*FLOATS, "float16", *INTEGERS, "bool"),
}  # of the first input


@dataclass(frozen=True)
class OwnEvaluator:
    """Runs a node as ONNX's reference does."""

    node: ir.Node

    def run(self, names: object, feeds: Mapping[str, Array]) -> list[Array]:
        """feeds: x0, x1 ..., by the places of the inputs."""
        del names
        given = [feeds.get(f"x{i}") for i in range(len(self.node.inputs))]
        made = RULES[self.node.op_type](Own(self.node, given))
        if self.node.op_type in OF_OTHER_TYPES:
            return [made]
        kind = given[0].dtype if given[0] is not None else made.dtype
        with np.errstate(all="ignore"):
            return [np.asarray(made).astype(kind)]


def is_own(node: ir.Node) -> bool:
    """Whether a node of known types is computed here."""
    first = node.inputs[0] if node.inputs else None
    if first is None or first.dtype is None or first.dtype.is_string():
        return False
    if node.op_type == "QuantizeLinear":
        made = node.outputs[0].dtype
        if made is None or not made.is_integer():
            return False
    name = np.dtype(first.dtype.numpy()).name
    return node.domain in ("", "ai.onnx") and name in KINDS.get(node.op_type, ())
