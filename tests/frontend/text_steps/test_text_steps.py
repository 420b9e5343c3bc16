"""Models that look into strings: against ONNX Runtime, and Python's own methods."""

from __future__ import annotations

import json
import random
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

import nanoloom
from nanoloom.cache import Cache
from nanoloom.errors import Error, InputError, Unsupported

STRING, FLOAT, INT64 = TensorProto.STRING, TensorProto.FLOAT, TensorProto.INT64
Array = np.ndarray
ALPHABET = ["a", "b", "ab", "A", "1", " ", "  ", ";", "é", "the", "."]
CASES: list[dict[str, Any]] = [
    {"tokenexp": "[a-zA-Z0-9_]+"},
    {"tokenexp": "a|ab|b+"},  # the longest match counts, not the first alternative
    {"tokenexp": "."},
    {"tokenexp": "a*?b?"},
    {"tokenexp": "\\w+", "mincharnum": 2},
    {"tokenexp": "[a-z]+", "mark": 1},
    {"separators": [" ", ";"]},
    {"separators": [" |a"], "mincharnum": 2, "mark": 1},
    {"separators": [""]},
]


def texts(seed: int, *shape: int) -> Array:
    draw = random.Random(seed)
    made = np.empty(int(np.prod(shape)), object)
    made[:] = ["".join(draw.choices(ALPHABET, k=draw.randint(0, 6))) for _ in made]
    return made.reshape(shape)


def model_of(
    nodes: list[onnx.NodeProto],
    outputs: dict[str, tuple[int, list[Any] | None]],
    rank: int = 1,
    tensors: list[onnx.TensorProto] | None = None,
    more: list[onnx.ValueInfoProto] | None = None,
) -> onnx.ModelProto:
    x = helper.make_tensor_value_info("x", STRING, ["n", "m"][:rank])
    made = [helper.make_tensor_value_info(n, *kind) for n, kind in outputs.items()]
    graph = helper.make_graph(nodes, "g", [x, *(more or [])], made, tensors or [])
    sets = [("", 20), ("ai.onnx.ml", 3), ("com.microsoft", 1)]
    opsets = [helper.make_opsetid(*each) for each in sets]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


def tokenizer(x: str, y: str, **how: Any) -> onnx.NodeProto:
    how = {"mark": 0, "mincharnum": 1, "pad_value": "#", **how}
    return helper.make_node("Tokenizer", [x], [y], domain="com.microsoft", **how)


def vectorizer(x: str, y: str, pool: list[str], starts: list[int]) -> onnx.NodeProto:
    count = starts[-1] + (len(pool) - starts[-1]) // len(starts)
    order = list(range(count))[::-1]
    return helper.make_node(
        "TfIdfVectorizer", [x], [y], max_gram_length=len(starts), min_gram_length=1,
        max_skip_count=1, mode="TFIDF", ngram_counts=starts, ngram_indexes=order,
        pool_strings=pool, weights=[0.5 + place for place in order],
    )  # fmt: skip


def compiled(model: onnx.ModelProto) -> nanoloom.Program:
    return nanoloom.compile(model, cache=Cache.temporary())


def runtime(model: onnx.ModelProto, feeds: dict[str, Array]) -> list[Array]:
    session = onnxruntime.InferenceSession(model.SerializeToString())
    return session.run(None, feeds)


@pytest.mark.parametrize("how", CASES, ids=str)
def test_tokens(how: dict[str, Any]) -> None:
    """A batch with more tokens needs no other program; in one and two dimensions."""
    for rank in (1, 2):
        outputs = {"y": (STRING, None)}
        model = model_of([tokenizer("x", "y", **how)], outputs, rank)
        program = compiled(model)
        for seed in range(3):
            x = texts(seed, 5, 2) if rank == 2 else texts(seed, 7)
            made, wanted = program({"x": x})["y"], runtime(model, {"x": x})[0]
            assert made.shape == wanted.shape
            assert made.tolist() == wanted.tolist()


def test_counted_words() -> None:
    """As scikit-learn's vectorizers are exported: words, n-grams, then numbers."""
    pool = ["a", "b", "the", "é", "a", "b", "b", "b"]
    nodes = [
        helper.make_node("Reshape", ["x", "flat"], ["f"]),
        tokenizer("f", "t", tokenexp="[a-z]+|."),
        helper.make_node("Flatten", ["t"], ["tf"]),
        vectorizer("tf", "counts", pool, [0, 4]),
        helper.make_node("Mul", ["counts", "two"], ["y"]),
        helper.make_node("Identity", ["x"], ["same"]),
    ]
    tensors = [
        helper.make_tensor("flat", INT64, [1], [-1]),
        helper.make_tensor("two", FLOAT, [1], [2.0]),
    ]
    outputs = {"y": (FLOAT, [None, 6]), "same": (STRING, ["n", "m"])}
    model = model_of(nodes, outputs, 2, tensors)
    program = compiled(model)
    assert [(x.name, x.is_text) for x in program.inputs] == [("x", True)]
    seen = 0.0
    for seed, rows in enumerate((1, 6, 3)):
        x = texts(seed, rows, 1)
        made = program({"x": x})
        np.testing.assert_array_equal(made["y"], runtime(model, {"x": x})[0])
        assert made["same"].tolist() == x.tolist()
        seen += made["y"].sum()
    assert seen > 0


def test_words_beside_numbers() -> None:
    nodes = [
        tokenizer("x", "t", tokenexp="[a-z]+"),
        vectorizer("t", "counts", ["a", "the"], [0]),
        helper.make_node("Concat", ["counts", "v"], ["y"], axis=1),
    ]
    v = helper.make_tensor_value_info("v", FLOAT, ["n", 1])
    model = model_of(nodes, {"y": (FLOAT, ["n", 3])}, more=[v])
    feeds = {"x": texts(4, 3), "v": np.float32([[1], [2], [3]])}
    program = compiled(model)
    np.testing.assert_array_equal(program(feeds)["y"], runtime(model, feeds)[0])
    with pytest.raises(InputError, match="x is missing"):
        program({"v": feeds["v"]})
    with pytest.raises(
        InputError, match="input x: is float32, the model wants strings"
    ):
        program({**feeds, "x": feeds["v"]})


@pytest.mark.parametrize("change", ["LOWER", "UPPER", "NONE"])
@pytest.mark.parametrize("sensitive", [0, 1])
def test_cases_and_stopwords(change: str, sensitive: int) -> None:
    how = {"case_change_action": change, "is_case_sensitive": sensitive}
    node = helper.make_node("StringNormalizer", ["x"], ["y"], stopwords=["the"], **how)
    program = compiled(model_of([node], {"y": (STRING, None)}))
    x = np.array(["The", "the", "É b", "a"], object)
    dropped = {"the"} if sensitive else {"The", "the"}
    changed = {"LOWER": str.lower, "UPPER": str.upper, "NONE": str}[change]
    wanted = [changed(text) for text in x.tolist() if text not in dropped]
    assert program({"x": x})["y"].tolist() == wanted
    assert program({"x": x[1:2]})["y"].tolist() == [""]


def test_numbers_in_strings() -> None:
    node = helper.make_node("Cast", ["x"], ["y"], to=FLOAT)
    program = compiled(model_of([node], {"y": (FLOAT, ["n"])}))
    made = program({"x": np.array(["1.5", "-2e3", "inf"])})["y"]
    assert made.tolist() == [1.5, -2000.0, np.inf]
    with pytest.raises(InputError, match=r"a string is no number: .*'two'"):
        program({"x": np.array(["two"])})


def test_what_cannot_run_steps_says_so(tmp_path: Any) -> None:
    program = compiled(
        model_of([tokenizer("x", "y", tokenexp="a")], {"y": (STRING, None)})
    )
    with pytest.raises(Error, match="a saved program cannot look into strings, as Tok"):
        program.save(tmp_path / "p.so")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("text", ["\\pL+", "[[:alpha:]]", "("])
def test_patterns_of_re2_alone(text: str) -> None:
    model = model_of([tokenizer("x", "y", tokenexp=text)], {"y": (STRING, None)})
    with pytest.raises(Unsupported, match=r"its pattern .*; write it with what Python"):
        compiled(model)


def test_strings_that_a_model_computes() -> None:
    """Those are numbers already where something looks into them."""
    nodes = [
        helper.make_node("ArgMax", ["v"], ["i"], axis=1, keepdims=0),
        helper.make_node("Gather", ["names", "i"], ["t"]),
        helper.make_node("StringNormalizer", ["t"], ["y"], name="last"),
    ]
    v = helper.make_tensor_value_info("v", FLOAT, ["n", 2])
    names = helper.make_tensor("names", STRING, [2], ["a", "b"])
    graph = helper.make_graph(
        nodes, "g", [v], [helper.make_tensor_value_info("y", STRING, ["n"])], [names]
    )
    opsets = [helper.make_opsetid("", 17)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    with pytest.raises(Unsupported, match=r"node last .*looks into strings"):
        compiled(model)


def test_steps_are_kept_with_the_interface() -> None:
    """A second compilation of the same bytes reads no model."""
    cache = Cache.temporary()
    model = model_of([tokenizer("x", "y", tokenexp="[a-z]+")], {"y": (STRING, None)})
    content, x = model.SerializeToString(), texts(9, 4)
    first = nanoloom.compile(content, cache=cache)({"x": x})["y"]
    again = nanoloom.compile(content, cache=cache)({"x": x})["y"]
    assert json.dumps(first.tolist()) == json.dumps(again.tolist())


@pytest.mark.parametrize("positive", [0, 1])
def test_hashes(positive: int) -> None:
    """Of texts of every length around whole words, some of two bytes a letter."""
    node = helper.make_node(
        "MurmurHash3", ["x"], ["y"], domain="com.microsoft", seed=7, positive=positive
    )
    kind = TensorProto.UINT32 if positive else TensorProto.INT32
    model = model_of([node], {"y": (kind, ["n", "m"])}, rank=2)
    given = np.array(
        [["a" * n for n in range(11)], [*"aébcdefg", "", "éé", "x" * 99]], object
    )
    session = onnxruntime.InferenceSession(model.SerializeToString())
    (theirs,) = session.run(None, {"x": given})
    ours = nanoloom.compile(model).run({"x": given})["y"]
    assert ours.dtype == theirs.dtype
    assert (ours == theirs).all()
    assert len(set(ours[0].tolist())) == 11
