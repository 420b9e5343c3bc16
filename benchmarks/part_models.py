"""The parts of an encoder between its matrix products, each a small ONNX model.

Every part has its inputs, what it must give (float64, by numpy), the bytes that it must
at least move, and the names of the same work in bert-base.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET, IR_VERSION = 20, 9  # the first opset with Gelu
EPSILON = 1e-12
Array = np.ndarray
Arrays = Mapping[str, Array]


@dataclass(frozen=True)
class Sizes:
    """Of bert-base, one sentence."""

    sequence: int = 128
    heads: int = 12
    head: int = 64
    inner: int = 3072
    words: int = 30522

    @property
    def hidden(self) -> int:
        return self.heads * self.head


TINY = Sizes(sequence=7, heads=3, head=5, inner=13, words=29)


@dataclass(frozen=True)
class Part:
    """nodes: of the model, from `inputs` and `constants` to y.

    function: of benchmarks.part_torch.  pattern: of the names of bert-base's steps that
    do this work, a regular expression; "" where it is fused into others.
    flops: of its products.  touched: bytes of inputs that are read, if not all of them.
    """

    name: str
    nodes: Sequence[onnx.NodeProto]
    inputs: Arrays
    expected: Array
    function: str
    pattern: str = ""
    constants: Arrays = field(default_factory=dict[str, Array])
    flops: int = 0
    touched: int | None = None

    @property
    def bytes(self) -> int:
        """Read and written at least once: inputs, constants, the result in f32."""
        read = [*self.inputs.values(), *self.constants.values()]
        size = sum(array.nbytes for array in read)
        return (size if self.touched is None else self.touched) + 4 * self.expected.size

    def model(self) -> onnx.ModelProto:
        infos = [
            helper.make_tensor_value_info(
                name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
            )
            for name, array in self.inputs.items()
        ]
        y = helper.make_tensor_value_info("y", TensorProto.FLOAT, self.expected.shape)
        weights = [numpy_helper.from_array(a, n) for n, a in self.constants.items()]
        graph = helper.make_graph(list(self.nodes), "part", infos, [y], weights)
        opsets = [helper.make_opsetid("", OPSET)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION)


def node(kind: str, inputs: str, output: str, **attributes: object) -> onnx.NodeProto:
    return helper.make_node(kind, inputs.split(), [output], name=output, **attributes)


def normal(rng: np.random.Generator, *shape: int) -> Array:
    return rng.standard_normal(shape, np.float32)


def softmax(x: Array) -> Array:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def wide(x: Array) -> Array:
    return x.astype(np.float64)


# ---- attention


def attention(sizes: Sizes, rng: np.random.Generator) -> Part:
    """softmax(q @ k^T / sqrt(head)) @ v, heads apart: [1, heads, sequence, head]."""
    return attention_part(sizes, rng, masked=False)


def masked_attention(sizes: Sizes, rng: np.random.Generator) -> Part:
    """The same with a mask [1, 1, 1, sequence] that hides the last quarter."""
    return attention_part(sizes, rng, masked=True)


def attention_part(sizes: Sizes, rng: np.random.Generator, *, masked: bool) -> Part:
    shape = (1, sizes.heads, sizes.sequence, sizes.head)
    inputs = {name: normal(rng, *shape) for name in "qkv"}
    scale = np.float32(1 / math.sqrt(sizes.head))
    nodes = [
        node("Transpose", "k", "turned", perm=[0, 1, 3, 2]),
        node("MatMul", "q turned", "scores"),
        node("Mul", "scores scale", "scaled"),
    ]
    last, hidden = "scaled", np.zeros(sizes.sequence)
    if masked:
        hidden[-(sizes.sequence // 4) :] = -10000.0
        inputs["mask"] = hidden.astype(np.float32).reshape(1, 1, 1, -1)
        nodes.append(node("Add", "scaled mask", "masked"))
        last = "masked"
    nodes += [
        node("Softmax", last, "weights", axis=-1),
        node("MatMul", "weights v", "y"),
    ]
    q, k, v = (wide(inputs[name]) for name in "qkv")
    scores = q @ k.swapaxes(-1, -2) * float(scale) + hidden
    return Part(
        "attention, masked" if masked else "attention",
        nodes,
        inputs,
        softmax(scores) @ v,
        "attention",
        r"attention/self/(?!(query|key|value)/)" if masked else "",
        {"scale": scale},
        flops=4 * sizes.heads * sizes.sequence**2 * sizes.head,
    )


# ---- rows


def softmax_rows(sizes: Sizes, rng: np.random.Generator) -> Part:
    """Over the last dimension of [1, heads, sequence, sequence]."""
    x = normal(rng, 1, sizes.heads, sizes.sequence, sizes.sequence)
    nodes = [node("Softmax", "x", "y", axis=-1)]
    return Part("softmax", nodes, {"x": x}, softmax(wide(x)), "softmax", "Softmax")


def layer_norm(sizes: Sizes, rng: np.random.Generator) -> Part:
    """Over the last dimension of [1, sequence, hidden], with scale and bias."""
    return norm_part(sizes, rng, added=False)


def added_layer_norm(sizes: Sizes, rng: np.random.Generator) -> Part:
    """The same of a sum, as behind attention and behind the inner layer."""
    return norm_part(sizes, rng, added=True)


def norm_part(sizes: Sizes, rng: np.random.Generator, *, added: bool) -> Part:
    shape = (1, sizes.sequence, sizes.hidden)
    inputs = {name: normal(rng, *shape) for name in ("xr" if added else "x")}
    constants = {name: normal(rng, sizes.hidden) for name in ("scale", "bias")}
    nodes = [node("Add", "x r", "sum")] if added else []
    given = f"{'sum' if added else 'x'} scale bias"
    nodes.append(node("LayerNormalization", given, "y", axis=-1, epsilon=EPSILON))
    x = sum(wide(array) for array in inputs.values())
    centred = x - x.mean(axis=-1, keepdims=True)
    spread = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + EPSILON)
    expected = centred / spread * wide(constants["scale"]) + wide(constants["bias"])
    name = "add, layer norm" if added else "layer norm"
    pattern = r"layer.*LayerNorm" if added else ""
    return Part(name, nodes, inputs, expected, "layer_norm", pattern, constants)


# ---- elements


def gelu(sizes: Sizes, rng: np.random.Generator) -> Part:
    """x / 2 * (1 + erf(x / sqrt(2))) on [1, sequence, inner]."""
    x = normal(rng, 1, sizes.sequence, sizes.inner)
    erf = np.vectorize(math.erf)(wide(x) / math.sqrt(2))
    nodes = [node("Gelu", "x", "y", approximate="none")]
    expected = wide(x) / 2 * (1 + erf)
    return Part("GELU, erf", nodes, {"x": x}, expected, "gelu", "act_fn")


def gelu_tanh(sizes: Sizes, rng: np.random.Generator) -> Part:
    """x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))) on the same."""
    x = normal(rng, 1, sizes.sequence, sizes.inner)
    z = wide(x)
    inner = math.sqrt(2 / math.pi) * (z + 0.044715 * z**3)
    nodes = [node("Gelu", "x", "y", approximate="tanh")]
    expected = z / 2 * (1 + np.tanh(inner))
    return Part("GELU, tanh", nodes, {"x": x}, expected, "gelu_tanh")


def embedding(sizes: Sizes, rng: np.random.Generator) -> Part:
    """Rows [hidden] of a table [words, hidden] for [1, sequence] numbers."""
    table = normal(rng, sizes.words, sizes.hidden)
    ids = rng.integers(0, sizes.words, (1, sizes.sequence))
    return Part(
        "embedding",
        [node("Gather", "table ids", "y", axis=0)],
        {"ids": ids},
        wide(table[ids]),
        "embedding",
        r"/embeddings/",
        {"table": table},
        touched=ids.nbytes + 4 * ids.size * sizes.hidden,
    )


def transpose(name: str, order: tuple[int, ...], *shape: int) -> Part:
    """Nothing but a change of the order of dimensions."""
    x = np.arange(math.prod(shape), dtype=np.float32).reshape(shape)
    nodes = [node("Transpose", "x", "y", perm=list(order))]
    turned = wide(x.transpose(order))
    return Part(f"transpose, {name}", nodes, {"x": x}, turned, "transpose")


def heads_apart(sizes: Sizes, rng: np.random.Generator) -> Part:
    """[1, sequence, heads, head] -> [1, heads, sequence, head]."""
    del rng
    shape = (1, sizes.sequence, sizes.heads, sizes.head)
    return transpose("heads apart", (0, 2, 1, 3), *shape)


def keys_turned(sizes: Sizes, rng: np.random.Generator) -> Part:
    """[1, heads, sequence, head] -> [1, heads, head, sequence]."""
    del rng
    shape = (1, sizes.heads, sizes.sequence, sizes.head)
    return transpose("keys turned", (0, 1, 3, 2), *shape)


PARTS: tuple[Callable[[Sizes, np.random.Generator], Part], ...] = (
    attention,
    masked_attention,
    softmax_rows,
    layer_norm,
    added_layer_norm,
    gelu,
    gelu_tanh,
    embedding,
    heads_apart,
    keys_turned,
)


def make_parts(sizes: Sizes, seed: int = 0) -> list[Part]:
    """Every part, its numbers drawn from a seed."""
    rng = np.random.default_rng(seed)
    return [make(sizes, rng) for make in PARTS]
