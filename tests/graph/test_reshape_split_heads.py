"""A batch and heads in one axis are two again: relative attention is one kernel."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper, parser
from onnx_ir import serde

import nanoloom
from nanoloom.graph.reshape_products import split_of
from nanoloom.graph.stage import optimize
from nanoloom.linalg.operators import OPERATORS

EPS = float(np.finfo(np.float32).eps)
BATCH, HEADS, LENGTH, SIZE, PLACES = 2, 3, 17, 16, 40
# DeBERTa-v2 as its exporters write it: scores of contents, of contents and places, and
# of places and contents, [b h, m, n] each; the mask is [b, 1, m, n].
TEXT = """
<ir_version: 8, opset_import: ["" : 17]>
g (float[6, 17, 16] q, float[6, 17, 16] k, float[6, 17, 16] v, float[2, 1, 17, 17] mask)
    => (float[2, 3, 17, 16] y)
{
    four = Constant<value = int64[4] {2, 3, 17, 17}>()
    three = Constant<value = int64[3] {6, 17, 17}>()
    rows = Constant<value = int64[4] {2, 3, 17, 16}>()
    twice = Constant<value = int64[3] {2, 1, 1}>()
    scale = Constant<value = float {0.14}>()
    kt = Transpose<perm = [0, 2, 1]>(k)
    contents = MatMul(q, kt)
    keys = Tile(key_places, twice)
    keys_t = Transpose<perm = [0, 2, 1]>(keys)
    c2p_all = MatMul(q, keys_t)
    c2p = GatherElements<axis = -1>(c2p_all, forward)
    queries = Tile(query_places, twice)
    queries_t = Transpose<perm = [0, 2, 1]>(queries)
    p2c_all = MatMul(k, queries_t)
    p2c_turned = GatherElements<axis = -1>(p2c_all, back)
    p2c = Transpose<perm = [0, 2, 1]>(p2c_turned)
    both = Add(c2p, p2c)
    all = Add(contents, both)
    scaled = Mul(all, scale)
    apart = Reshape(scaled, four)
    masked = Add(apart, mask)
    p = Softmax<axis = -1>(masked)
    joined = Reshape(p, three)
    out = MatMul(joined, v)
    y = Reshape(out, rows)
}
"""


def model(text: str = TEXT) -> onnx.ModelProto:
    made = parser.parse_model(text)
    rises = np.arange(LENGTH)[:, None] - np.arange(LENGTH)[None, :]
    random = np.random.default_rng(1)
    for name, sign in (("forward", 1), ("back", -1)):
        places = np.clip(sign * rises + PLACES // 2, 0, PLACES - 1).astype(np.int64)
        shape = (BATCH * HEADS, LENGTH, LENGTH)
        array = np.broadcast_to(places, shape).copy()
        made.graph.initializer.append(numpy_helper.from_array(array, name))
    for name in ("key_places", "query_places"):
        array = random.standard_normal((HEADS, PLACES, SIZE)).astype(np.float32)
        made.graph.initializer.append(numpy_helper.from_array(array, name))
    return made


def arrays() -> dict[str, Any]:
    random = np.random.default_rng(2)
    made = {
        name: random.standard_normal((BATCH * HEADS, LENGTH, SIZE)).astype(np.float32)
        for name in "qkv"
    }
    mask = np.zeros((BATCH, 1, LENGTH, LENGTH), np.float32)
    mask[1, ..., -4:] = -1e9
    return made | {"mask": mask}


def exact(given: dict[str, Any], made: onnx.ModelProto) -> tuple[Any, Any]:
    """The result and the scores, [b h, m, n], in float64."""
    known = {x.name: numpy_helper.to_array(x) for x in made.graph.initializer}
    q, k, v = (given[name].astype(np.float64) for name in "qkv")
    keys, queries = (
        np.tile(known[name], (BATCH, 1, 1)).swapaxes(1, 2).astype(np.float64)
        for name in ("key_places", "query_places")
    )
    c2p = np.take_along_axis(q @ keys, known["forward"], 2)
    p2c = np.take_along_axis(k @ queries, known["back"], 2).swapaxes(1, 2)
    scores = q @ k.swapaxes(1, 2) + c2p + p2c
    shape = (BATCH, HEADS, LENGTH, LENGTH)
    grown = np.exp((scores * np.float32(0.14)).reshape(shape) + given["mask"])
    shares = (grown / grown.sum(-1, keepdims=True)).reshape(scores.shape)
    return (shares @ v).reshape(BATCH, HEADS, LENGTH, SIZE), scores


def operators(given: onnx.ModelProto) -> list[onnx.NodeProto]:
    made = optimize(serde.deserialize_model(given), OPERATORS.keys())
    return list(serde.serialize_model(made).graph.node)


def test_relative_attention_is_one_kernel_and_its_numbers() -> None:
    """A score is a sum of three of at most 60 each; a row's shares are 1 together."""
    given, made = arrays(), model()
    program = nanoloom.compile(made, threads=1)
    (got,) = program(given).values()
    want, _ = exact(given, made)
    room = 2 * (3 * 60 * (SIZE + 4) + 2 * LENGTH) * EPS * abs(given["v"]).max()
    assert (abs(got - want) <= room).all()
    assert not (abs(np.roll(got, 1, 1) - want) <= room).all()
    roots = Counter(name.split("_")[0] for name in program.nests())
    assert roots["contractions"] == 1
    assert roots["contraction"] == 1  # called for the scores of places, both ways


def test_what_a_batch_repeats_is_there_once() -> None:
    found = operators(model())
    names = [node.op_type for node in found]
    assert "Tile" not in names and names.count("MatMul") == 4
    (softmax,) = (node for node in found if node.op_type == "Softmax")
    (reader,) = (node for node in found if softmax.output[0] in node.input)
    assert reader.op_type == "MatMul"  # no Reshape between


def test_a_product_that_is_read_elsewhere_stays() -> None:
    text = TEXT.replace("y)\n{", "y, float[6, 17, 17] all)\n{", 1)
    made = model(text)
    got = nanoloom.compile(made, threads=1)(arrays())
    for y, want in zip(got.values(), exact(arrays(), made), strict=True):
        assert np.allclose(y, want, atol=1e-4)
    assert "Reshape" in [node.op_type for node in operators(made)]


@pytest.mark.parametrize(
    ("joined", "wanted", "split"),
    [
        ((6, 5, 7), (2, 3, 5, 7), (2, 3)),
        ((6, 5, 7), (6, 1, 5, 7), (6, 1)),
        ((6, 5, 7), (2, 3, 7, 5), None),
        ((6, 5, 7), (6, 35), None),
        ((6, 35), (2, 3, 5, 7), None),
    ],
)
def test_which_reshapes_take_a_batch_and_heads_apart(
    joined: tuple[int, ...], wanted: tuple[int, ...], split: tuple[int, int] | None
) -> None:
    assert split_of(joined, wanted) == split
