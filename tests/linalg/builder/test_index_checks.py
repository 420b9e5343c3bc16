"""Indices out of range: every operator that has any refuses them, and only them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx_ir
import pytest

import nanoloom
from nanoloom.cache import Cache
from nanoloom.errors import InputError, ModelError
from nanoloom.graph.stage import optimize
from nanoloom.ir import mlir
from nanoloom.kernels.program import Program
from nanoloom.linalg.operators import OPERATORS
from nanoloom.linalg.stage import lower
from tests.linalg.single import model_of
from tests.vector.kernel_harness import cut

X = np.arange(20, dtype=np.float32).reshape(4, 5)
IMAGE = np.arange(18, dtype=np.float32).reshape(2, 1, 3, 3)
SEQUENCE = np.ones((3, 2, 4), np.float32)  # three steps, a batch of two


def ints(*values: Any, dtype: type = np.int64) -> np.ndarray:
    return np.array(values, dtype)


@dataclass(frozen=True)
class Case:
    """A node whose input `at` has indices in low .. high, each at some place of it."""

    op: str
    inputs: tuple[np.ndarray | None, ...]
    at: int
    low: int
    high: int
    what: str = "index"
    attributes: dict[str, Any] = field(default_factory=dict[str, Any])
    version: int = 22
    place: Any = -1  # of the index that is changed, in the flat input
    domain: str = ""

    def with_index(self, value: int) -> list[np.ndarray | None]:
        made = list(self.inputs)
        changed = np.array(made[self.at])
        changed.reshape(-1)[self.place] = value
        made[self.at] = changed
        return made

    def sentence(self, value: int) -> str:
        return (
            f"node tested ({self.op}): {self.what} {value} is outside "
            f"{self.low}..{self.high}"
        )


UPDATES = np.ones((2, 5), np.float32)
LOSS = (X, ints(0, 4, 2, 1))
ROIS = np.array([[0, 0, 2, 2], [0, 0, 1, 1]], np.float32)
CASES = [
    Case("Gather", (X, ints([0, -4], [3, 1])), 1, -4, 3),
    Case("Gather", (X, ints(0, 2, dtype=np.int32)), 1, -5, 4, attributes={"axis": 1}),
    Case("Gather", (X, ints(2).reshape(())), 1, -4, 3),
    Case("GatherElements", (X, np.zeros((2, 5), np.int64)), 1, -4, 3, place=3),
    Case("GatherND", (X, ints([0, 0], [3, -5])), 1, -5, 4),
    Case("GatherND", (X, ints([0, 0], [3, -5])), 1, -4, 3, place=0),
    Case("GatherND", (X, ints([1], [2], [0], [1])), 1, -5, 4,
         attributes={"batch_dims": 1}),
    Case("ReverseSequence", (X, ints(0, 1, 2, 3, 4)), 1, 0, 4, "length"),
    Case("Scatter", (X, np.zeros((2, 5), np.int64), UPDATES), 1, -4, 3, version=10),
    Case("ScatterElements", (X, np.zeros((2, 5), np.int64), UPDATES), 1, -4, 3),
    Case("ScatterND", (X, ints([0], [3]), UPDATES), 1, -4, 3),
    Case("ScatterND", (X, ints([0, 1], [3, 2]), UPDATES[0, :2]), 1, -5, 4),
    Case("TensorScatter", (X, UPDATES[:1, :2].repeat(4, 0), ints(0, 1, 2, 3)), 2, 0, 3,
         "write index", {"axis": 1}, 24),
    Case("NegativeLogLikelihoodLoss", LOSS, 1, 0, 4, "target"),
    Case("NegativeLogLikelihoodLoss", LOSS, 1, 0, 4, "target", {"ignore_index": -1}),
    Case("SoftmaxCrossEntropyLoss", LOSS, 1, 0, 4, "target", {"ignore_index": 255}),
    Case("MaxUnpool", (IMAGE[:, :, :1, :1], ints(0, 5).reshape(2, 1, 1, 1)), 1, 0, 7,
         attributes={"kernel_shape": [2, 2], "strides": [2, 2]}),
    Case("RoiAlign", (IMAGE, ROIS, ints(0, 1)), 2, 0, 1, "batch index",
         {"output_height": 1, "output_width": 1}),
    Case("MaxRoiPool", (IMAGE, np.eye(2, 5, 3, np.float32)), 1, 0, 1, "batch index",
         {"pooled_shape": [1, 1]}, place=0),
    Case("RNN", (SEQUENCE, np.ones((1, 2, 4), np.float32),
                 np.ones((1, 2, 2), np.float32), None, ints(3, 0, dtype=np.int32)),
         4, 0, 3, "sequence length", {"hidden_size": 2}),
    Case("ArrayFeatureExtractor", (X, ints([0, 4])), 1, -5, 4,
         domain="ai.onnx.ml"),
]  # fmt: skip


@pytest.fixture(scope="module")
def cache() -> Cache:
    return Cache.temporary()


def compiled(
    case: Case, cache: Cache, *, checked: bool = True, threads: int = 1
) -> nanoloom.Program:
    model = model_of(
        case.op,
        case.inputs,
        case.attributes,
        version=case.version,
        domain=case.domain,
    )[0]
    return nanoloom.compile(model, cache=cache, checked=checked, threads=threads)


def feeds(values: list[np.ndarray | None]) -> dict[str, np.ndarray]:
    return {f"x{i}": x for i, x in enumerate(values) if x is not None}


@pytest.mark.drawn(one_in=2)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.op)
def test_the_ends_of_the_range_and_beyond(case: Case, cache: Cache) -> None:
    program = compiled(case, cache)
    for value in (case.low, case.high):
        program(feeds(case.with_index(value)))
    wide = 2**31 - 1 if case.inputs[case.at].dtype == np.int32 else 2**63 - 1  # type: ignore[union-attr]
    far = [wide, -wide - 1] if case.op != "MaxRoiPool" else [1000, -1000]
    for value in (case.low - 1, case.high + 1, *far):
        if value == case.attributes.get("ignore_index", case.low):
            program(feeds(case.with_index(value)))
            continue
        with pytest.raises(InputError) as caught:
            program(feeds(case.with_index(value)))
        assert str(caught.value) == case.sentence(value)
    program(feeds(list(case.inputs)))


KNOWN = [c for c in CASES if c.op != "MaxRoiPool"]


@pytest.mark.parametrize("case", KNOWN, ids=lambda case: case.op)
def test_known_indices_are_refused_while_compiling(case: Case, cache: Cache) -> None:
    inputs = case.with_index(case.high + 1)
    model, _ = model_of(
        case.op,
        inputs,
        case.attributes,
        constants=[case.at],
        version=case.version,
        domain=case.domain,
    )
    if case.attributes.get("ignore_index") == case.high + 1:
        return
    with pytest.raises(ModelError, match=re.escape(case.sentence(case.high + 1))):
        nanoloom.compile(model, cache=cache)


def test_unchecked_indices_are_clamped(cache: Cache) -> None:
    case = CASES[0]
    program = compiled(case, cache, checked=False)
    values = feeds(case.with_index(400))
    want = np.take(X, np.clip(values["x1"], -4, 3), axis=0)
    np.testing.assert_array_equal(program(values)["y0"], want)


def test_indices_that_onnx_allows_anywhere(cache: Cache) -> None:
    """OneHot gives zeros for what is out of range; a circular cache begins anew."""
    hot = Case("OneHot", (ints(0, 9, -9, -1), ints(4), X[0, :2]), 0, 0, 0)
    model, _ = model_of("OneHot", hot.inputs, {}, constants=[1])
    got = nanoloom.compile(model, cache=cache)(feeds([hot.inputs[0], None, X[0, :2]]))
    want = np.zeros((4, 4))
    want[[0, 3], [0, 3]] = 1
    np.testing.assert_array_equal(got["y0"], want)
    inputs = (X, UPDATES[:1, :2].repeat(4, 0), ints(0, 4, 5, 13))
    attributes = {"axis": 1, "mode": "circular"}
    ring = Case("TensorScatter", inputs, 2, 0, 0, "", attributes, 24)
    want = X.copy()
    for row, start in enumerate((0, 4, 5, 13)):
        want[row, [start % 5, (start + 1) % 5]] = 1
    got = compiled(ring, cache)(feeds(list(ring.inputs)))
    np.testing.assert_array_equal(got["y0"], want)


def test_an_empty_dimension_has_no_index(cache: Cache) -> None:
    case = Case("Gather", (np.zeros((0, 5), np.float32), ints(0)), 1, 0, 0)
    with pytest.raises(ModelError, match="its index: the dimension is empty"):
        compiled(case, cache)(feeds(list(case.inputs)))
    nothing = Case("Gather", (np.zeros((0, 5), np.float32), ints()), 1, 0, 0)
    assert compiled(nothing, cache)(feeds(list(nothing.inputs)))["y0"].shape == (0, 5)


FOLDABLE = [
    (Case("NegativeLogLikelihoodLoss", LOSS, 1, 0, 4, "target"), -1),
    (Case("MaxUnpool", CASES[16].inputs, 1, 0, 7, attributes=CASES[16].attributes), -1),
    (Case("GatherElements", (X, np.zeros((2, 5), np.int64)), 1, -4, 3), 4),
    (Case("Gather", (np.zeros((40, 50), np.float32), np.zeros(500, np.int64)), 1, -40,
          39), 40),
]  # fmt: skip


@pytest.mark.parametrize(
    ("case", "value"), FOLDABLE, ids=lambda x: getattr(x, "op", "")
)
def test_what_is_all_constant(case: Case, value: int, cache: Cache) -> None:
    """The reference counts some from the end; a large result is computed late."""
    inputs = case.with_index(value)
    constants = range(len(inputs))
    model, _ = model_of(case.op, inputs, case.attributes, constants=constants)
    with pytest.raises(ModelError, match=re.escape(case.sentence(value))):
        nanoloom.compile(model, cache=cache)
    model, _ = model_of(case.op, case.inputs, case.attributes, constants=constants)
    made = nanoloom.compile(model, cache=cache)({})["y0"]
    given, feed = model_of(case.op, case.inputs, case.attributes)
    np.testing.assert_array_equal(
        made, nanoloom.compile(given, cache=cache)(feed)["y0"]
    )


# ---- the text


def lowered(case: Case, *, checked: bool) -> tuple[str, Program]:
    model, _ = model_of(case.op, case.inputs, case.attributes)
    graph = optimize(onnx_ir.from_proto(model), OPERATORS.keys())
    with mlir.context():
        made = lower(graph, checked=checked)
        text = str(made.module)
        return text, cut(made)


def test_a_check_is_a_small_reduction_of_its_own() -> None:
    plain, bare = lowered(CASES[0], checked=False)
    text, program = lowered(CASES[0], checked=True)
    assert "arith.maxui" not in plain and bare.checks == ()
    assert text.count("arith.maxui") == 1
    assert len(program.calls) == len(bare.calls) + 1
    (word,) = program.checks
    limits = word.limits
    assert (limits.low, limits.high, limits.where) == (-4, 3, "node tested (Gather)")
    assert program.buffers[word.buffer] == 8


def test_the_range_is_not_in_the_kernel() -> None:
    """Tables of different lengths share it: a word says nothing of the range."""
    texts: list[set[str]] = []
    for rows in (4, 7):
        x = np.zeros((rows, 5), np.float32)
        _, program = lowered(Case("Gather", (x, ints(1, 2)), 1, 0, 0), checked=True)
        texts.append({k for k in program.kernels if k.startswith("reduction")})
    assert texts[0] == texts[1] and len(texts[0]) == 1
