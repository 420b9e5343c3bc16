"""How often a model with open dimensions is bound, walked through and cut."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import onnx_ir
import pytest
from onnx import parser

from nanoloom import compile_open
from nanoloom.cache import Cache
from nanoloom.dynamic import sample_walk
from nanoloom.dynamic.sample_walk import Walks
from nanoloom.dynamic.samples import MANY, SHORT
from nanoloom.graph.data_dependent.decisions import Decisions
from nanoloom.inspect.dynamic_sizes import dynamic_sizes

# Rows of the batch become channels: no program of one row does.
MIXED = "c = Conv<strides = [2, 2]>(x, w) t = Transpose<perm = [1, 0, 2, 3]>(c)"
OF_IMAGES = f"""<ir_version: 10, opset_import: ["" : 20]>
g (float[n, 2, 6, 6] x) => (float[a, b, h, k] y)
    <float[2, 2, 1, 1] w = {{1, 2, 3, 4}}>
{{ {MIXED} y = Relu(t) }}"""
OF_WORDS = f"""<ir_version: 10, opset_import: ["" : 20]>
g (float[1, 2, 6, 6] x, float[1, n] z) => (float[a, b, h, k] y)
    <float[2, 2, 1, 1] w = {{1, 2, 3, 4}}, int64[1] axes = {{0}}>
{{ v = Unsqueeze(z, axes) u = AveragePool<kernel_shape = [2], strides = [2]>(v)
   s = ReduceSum<keepdims = 0>(u) {MIXED} y = Add(t, s) }}"""


@pytest.fixture
def cuts(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    found: list[object] = []
    cut = compile_open.partition_model

    def counted(*given: Any) -> object:
        found.append(given)
        return cut(*given)

    monkeypatch.setattr(compile_open, "partition_model", counted)
    return found


@pytest.fixture
def walked(monkeypatch: pytest.MonkeyPatch) -> list[Mapping[str, int]]:
    found: list[Mapping[str, int]] = []
    through = Walks.through

    def noted(self: Walks, samples: Any, *given: Any) -> object:
        found.extend(samples)
        return through(self, samples, *given)

    monkeypatch.setattr(Walks, "through", noted)
    return found


def test_a_batch_of_images_is_cut_as_often_as_proves_sizes(cuts: list[object]) -> None:
    made = parser.parse_model(OF_IMAGES).SerializeToString()
    assert not dynamic_sizes(made, {}, Cache.temporary()).why
    assert len(cuts) == 3


def test_shorter_lengths_are_not_tried_for_windows(
    walked: list[Mapping[str, int]],
) -> None:
    made, cache = parser.parse_model(OF_WORDS).SerializeToString(), Cache.temporary()
    said = dynamic_sizes(made, {}, cache)
    numbers = {sample["n"] for sample in walked}
    assert MANY[0] in numbers
    assert SHORT[0] not in numbers
    walked.clear()
    assert dynamic_sizes(made, {}, cache) == said
    assert SHORT[0] not in {sample["n"] for sample in walked}


def test_other_samples_are_not_cut_behind_one_of_other_calls(
    cuts: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second of three differs from the first."""
    made = parser.parse_model(OF_IMAGES).SerializeToString()

    def refuse(programs: list[object]) -> None:
        if len({*map(id, programs)}) > 1:
            raise compile_open.NotDynamic("they differ")

    monkeypatch.setattr(compile_open, "require_same", refuse)
    assert "they differ" in dynamic_sizes(made, {}, Cache.temporary()).why
    assert len(cuts) == 2


def test_samples_of_images_are_walked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The three of a batch's rows are three of the four of images."""
    made, walks = parser.parse_model(OF_IMAGES).SerializeToString(), list[object]()
    walk = sample_walk.walk_through

    def counted(*given: Any) -> object:
        walks.append(given)
        return walk(*given)

    monkeypatch.setattr(sample_walk, "walk_through", counted)
    assert not dynamic_sizes(made, {}, Cache.temporary()).why
    assert len(walks) == 4


def test_walks_of_other_samples_are_forgotten() -> None:
    bound = parser.parse_model(OF_IMAGES)
    model = compile_open.OpenModel(
        lambda _: onnx_ir.serde.deserialize_model(bound), ({"n": 3},), {}, [["n"]]
    )
    first = model.walks().through([{"n": 3}, {"n": 5}])
    (kept,) = model.walks().through([{"n": 3}])
    assert kept is first[0]
    assert len(model.walked) == 1


def test_branches_that_do_not_run_are_known_of_earlier_walks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def walk(
        _: object, __: object, ___: object, decided: Decisions
    ) -> sample_walk.Walk:
        decided.unfit.add("branch")
        return sample_walk.Walk([], [], decided)

    bound = onnx_ir.serde.deserialize_model(parser.parse_model(OF_IMAGES))
    model = compile_open.OpenModel(lambda _: bound, ({"n": 3},), {}, [["n"]])
    monkeypatch.setattr(sample_walk, "walk_through", walk)
    for _ in range(2):
        walks = model.walks()
        walks.through([{"n": 3}])
        assert walks.unfit == {"branch"}
