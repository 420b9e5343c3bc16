"""Reports: what is in a kernel, what it takes, why it is slow; and their JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

import nanoloom
from nanoloom.cache import Cache
from nanoloom.errors import Error
from nanoloom.explain.report import ARITHMETIC, Explanation, KernelReport, read
from nanoloom.options import CompileOptions
from nanoloom.target import by_name
from tests.explain.models import FLOATS, SLOW, TWO_DEPTHS, model


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Cache:
    return Cache(tmp_path_factory.mktemp("cache"))


def program(text: str, cache: Cache, **how: object) -> nanoloom.Program:
    return nanoloom.compile(model(text), cache=cache, threads=1, **how)


def arrays(program: nanoloom.Program) -> Mapping[str, np.ndarray]:
    random = np.random.default_rng(3)
    return {
        x.name: (10 * random.standard_normal(x.shape)).astype(x.dtype)
        for x in program.inputs
    }


def with_node(report: Explanation, node: str) -> KernelReport:
    (found,) = [kernel for kernel in report.kernels if node in kernel.nodes]
    return found


def test_nodes_and_kernels_name_each_other(cache: Cache) -> None:
    report = program(SLOW, cache).explain()
    product = with_node(report, "MatMul_0")
    assert {"MatMul_0", "Relu_1"} <= {*product.nodes}
    for node in report.nodes:
        own = {k.name for k in report.kernels if node.name in k.nodes}
        assert {*node.kernels} == own, node
    assert "MatMul" in {node.operator for node in report.nodes if node.kernels}


def test_what_was_fused_and_what_was_not(cache: Cache) -> None:
    """The epilogue spares the product's result on its way out and back."""
    report = program(SLOW, cache).explain()
    product = with_node(report, "MatMul_0")
    spared = [each for each in product.fused if each.producer == "product"]
    assert [each.saved for each in spared] == [2 * 4 * 37 * 71]
    assert all(each.again == 0 for each in product.fused)
    said = [each for kernel in report.kernels for each in kernel.not_fused]
    assert said and all(each.why and each.readers for each in said)


def test_fallbacks_are_named(cache: Cache) -> None:
    slow = [
        text for k in program(SLOW, cache).explain().kernels for text in k.fallbacks
    ]
    assert any("math.sin has no form on vectors" in text for text in slow)
    assert not with_node(program(SLOW, cache).explain(), "MatMul_0").fallbacks
    report = program(FLOATS, cache).explain()
    assert any(
        text.startswith("in floats: Softmax_1: ")
        for kernel in report.kernels
        for text in kernel.fallbacks
    )


def test_work_is_that_of_all_calls(cache: Cache) -> None:
    """A kernel for several lengths of a sum is asked of each call's own length."""
    made = program(TWO_DEPTHS, cache, options=None)
    report = made.explain()
    assert len(report.kernels) < 2 or {k.calls for k in report.kernels} == {1}
    least = 2 * 40 * 48 * (33 + 65)
    assert sum(kernel.operations for kernel in report.kernels) == least


def test_measured_is_what_was_run(cache: Cache) -> None:
    made = program(SLOW, cache)
    report = made.explain(arrays(made), runs=7)
    assert report.runs == 7 and report.measured
    for kernel in report.kernels:
        assert kernel.low is not None and kernel.high is not None
        assert kernel.low <= (kernel.measured or 0) <= kernel.high
        rates = {each.resource: each.rate for each in kernel.demands}
        assert rates["L2"] and rates["memory"]
        assert kernel.demands[0].resource == ARITHMETIC
    product = with_node(report, "MatMul_0")
    assert product.operations >= 2 * 37 * 53 * 71
    assert product.predicted and product.share and product.limit
    whole = sum(kernel.measured or 0 for kernel in report.kernels)
    assert 0 < whole < 2 * report.measured


def test_the_chosen_schedule_is_among_those_weighed(cache: Cache) -> None:
    report = program(SLOW, cache).explain()
    for kernel in report.kernels:
        (chosen,) = [each for each in kernel.candidates if each.chosen]
        assert chosen.cost == kernel.cost and chosen.reason == kernel.reason
        assert kernel.loops and kernel.directives and kernel.assembly


def test_one_layer_of_it(cache: Cache) -> None:
    made = program(SLOW, cache)
    report = made.explain(layer="MatMul*")
    assert [kernel.layers for kernel in report.kernels] == [("MatMul_0",)]
    assert "Exp_4" not in {node.name for node in report.nodes}
    with pytest.raises(Error, match="there is no layer MatMul_9"):
        made.explain(layer="MatMul_9")


def test_another_cpu_is_explained_without_being_run(cache: Cache) -> None:
    options = CompileOptions(by_name("neoverse-v2"))
    report = program(SLOW, cache, options=options).explain(layer="MatMul_0")
    (product,) = report.kernels
    assert report.measured is product.measured is product.share is None
    assert "fmla" in product.assembly and product.limit


def test_json_brings_it_back(cache: Cache, tmp_path: Path) -> None:
    made = program(SLOW, cache)
    report = made.explain(arrays(made), runs=2)
    place = tmp_path / "report.json"
    place.write_text(json.dumps(report.to_dict()))
    assert read(place) == report


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is no report"),
        ("[1]", "is no report"),
        ('{"kernels": [], "format": 0}', "is a report of another format"),
        ('{"kernels": [{}], "format": 1}', "is a damaged report"),
        ('{"kernels": 3, "format": 1}', "is a damaged report"),
    ],
)
def test_what_is_no_report(text: str, said: str, tmp_path: Path) -> None:
    place = tmp_path / "report.json"
    place.write_text(text)
    with pytest.raises(Error, match=said):
        read(place)


def test_a_report_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(Error, match="no such report"):
        read(tmp_path / "none.json")
