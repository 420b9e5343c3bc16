"""The dataflow paper's layers, the search through dataflows, and its findings."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest

import nanoloom
from nanoloom.schedule.dataflow.dataflow import Dataflow, parse
from nanoloom.target import by_name
from nanoloom.target.host import host
from nanoloom_papers.reproduce import flow_search, yflows
from nanoloom_papers.reproduce.flow_layers import FlowLayer, draw, right, written
from nanoloom_papers.reproduce.flow_search import Ranked, nanoseconds, search
from nanoloom_papers.reproduce.yflows import (
    Row,
    findings,
    gain,
    layers,
    to_output,
    tried,
)
from nanoloom_papers.reproduce.yflows_files import as_csv, from_csv, records
from nanoloom_papers.reproduce.yflows_pictures import pictures
from tests.vector.kernel_harness import shared_cache

ODD = FlowLayer(3, 11, 5, 2, 1, 7)
BYTES = FlowLayer(3, 11, 5, 2, 1, 150, "int8")


@pytest.mark.parametrize("layer", [ODD, BYTES], ids=["f32", "int8"])
def test_what_is_right(layer: FlowLayer) -> None:
    """By plain loops, as nanoloom computes it; and what is wrong is seen."""
    numbers = draw(layer)
    image, weights = numbers["image"].astype(float), numbers["weights"].astype(float)
    good = np.zeros(layer.result)
    for k, y, x in np.ndindex(*layer.result):
        part = image[2 * y : 2 * y + 3, 2 * x : 2 * x + 3]
        good[k, y, x] = (part * weights[k]).sum()
    wanted = right(layer, numbers)
    np.testing.assert_allclose(wanted.value, good, atol=1e-12)
    program = nanoloom.compile(written(layer), cache=shared_cache())
    assert wanted.complaint(program(numbers)["made"]) == ""
    moved = np.roll(good, 1, 2).astype(layer.dtypes[2])
    assert wanted.complaint(moved).startswith("wrong result")


def test_the_layers_of_the_paper() -> None:
    found = layers(by_name("x86-64-v3"), quick=False)
    assert len(found) == len(set(found)) == 2 * 3 * 3 * 2 * 3 * 2
    assert found[0] == FlowLayer(3, 56, 128, 1, 1, 8)
    assert found[-2] == FlowLayer(5, 112, 512, 2, 4, 32)
    assert found[-1] == FlowLayer(5, 112, 512, 2, 4, 128, "int8")
    assert found[0].name == "(3, 56, 128), stride 1, registers 1, f32"
    assert {flow.anchor for flow in tried(ODD, host())} == {"output", "weight", "input"}


@pytest.mark.drawn(one_in=2)
@pytest.mark.parametrize("layer", [ODD, BYTES], ids=["f32", "int8"])
def test_a_search_ranks_what_is_right(layer: FlowLayer) -> None:
    """Channels that fill no vector: the rest is masked."""
    flows = [parse("output; weight 2"), parse("weight"), parse("input; output 1")]
    found = search(layer, flows, host(), rounds=2)
    assert {x.flow for x in found} == set(flows)
    times = [x.seconds for x in found if x.seconds is not None]
    assert len(times) == len(flows) and min(times) > 0 and times == sorted(times)


def test_who_is_refused_is_last_and_says_why() -> None:
    """A window of so many steps is more than may stand behind each other."""
    flows = [Dataflow("output"), Dataflow("output", unroll=64)]
    layer = FlowLayer(5, 9, 2, 1, 1, 8)
    *_, last = search(layer, flows, host(), rounds=1)
    assert (last.flow, last.seconds) == (flows[1], None)
    assert "1600 points behind each other, 1024 at most" in last.absent


def test_a_search_through_a_model(tmp_path: Path) -> None:
    model = onnx.parser.parse_model("""
        <ir_version: 10, opset_import: ["": 21]>
        depthwise (float[1, 9, 8, 8] image, float[9, 1, 3, 3] weights)
          => (float[1, 9, 6, 6] made) { made = Conv <group = 9> (image, weights) }
    """)
    onnx.save(model, tmp_path / "depthwise.onnx")
    (found,) = search(tmp_path / "depthwise.onnx", [parse("output")], host(), rounds=1)
    assert found.seconds and not found.absent


def test_a_wrong_result_is_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    from nanoloom.target.cached_host import to_dict
    from nanoloom_papers.reproduce.jobs import Job

    def shifted(layer: FlowLayer, numbers: dict[str, np.ndarray]) -> object:
        wanted = right(layer, numbers)
        return type(wanted)(wanted.value + 1, wanted.allowed)

    monkeypatch.setattr(flow_search, "right", shifted)
    facts = {
        "flows": ["output"], "target": to_dict(host()), "kernels": "contraction_*",
        "layer": [3, 6, 1, 1, 1, 8], "cache": str(shared_cache().root),
    }  # fmt: skip
    ready = flow_search.open_flows(Job(1, facts=facts))
    assert ready.facts["absent"]["output"].startswith("wrong result: 1e+02 %")
    assert ready.steps() == []
    assert nanoseconds(lambda: None) >= 0


# ---- the findings --------------------------------------------------------------------


def row(**seconds: float) -> Row:
    """Seconds of dataflows, by names like output_weight for weights kept first."""
    ranked: list[Ranked] = []
    for name, value in seconds.items():
        anchor, _, operand = name.partition("_")
        kept = ((operand, 3),) if operand else ()
        ranked.append(Ranked(Dataflow(anchor, kept), value))
    return Row(FlowLayer(3, 56, 128, 1, 1, 8), tuple(ranked))


PAPER = {
    "output": 2.0, "output_weight": 1.0, "output_input": 1.02,
    "input": 4.0, "input_output": 2.0, "input_weight": 2.2,
    "weight": 8.0, "weight_output": 7.5, "weight_input": 7.6,
}  # fmt: skip
OTHERWISE = {
    "output": 2.0, "output_weight": 1.9, "output_input": 1.0,
    "input": 1.0, "input_output": 0.9, "input_weight": 0.5,
    "weight": 1.8, "weight_output": 0.8, "weight_input": 0.5,
}  # fmt: skip


def test_findings_hold_or_do_not() -> None:
    assert [x.holds for x in findings([row(**PAPER)])] == [True] * 5
    assert [x.holds for x in findings([row(**OTHERWISE)])] == [False] * 5
    assert [x.holds for x in findings([])] == [None] * 5
    one, other = row(**PAPER), row(**OTHERWISE)
    bytes_ = replace(other, layer=replace(other.layer, element="int8"))
    found = findings([one, bytes_])
    assert [(x.element, x.holds) for x in found] == [("f32", True)] * 5 + [
        ("int8", False)
    ] * 5


def test_figures() -> None:
    made = row(**PAPER)
    assert (gain(made, "input"), to_output(made, "weight")) == (2.0, 7.5)
    found = records([made])
    assert found[2]["dataflow"] == "output; input 3"
    assert (found[2]["of_basic"], found[2]["of_output"]) == (0.51, 1.02)
    text = as_csv([made])
    assert text.splitlines()[1].startswith("3,56,128,1,1,8,f32,output,output,2,")
    assert from_csv(text) == [made] and from_csv("filter,size\n3,56\n") == []


def test_what_is_there_is_not_measured_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two layers one is given, the other is searched."""
    monkeypatch.setattr(yflows, "layers", lambda target, quick: [ODD, BYTES])
    ranked = (Ranked(Dataflow("output"), 1.0),)
    monkeypatch.setattr(yflows, "search", lambda *given, **words: ranked)
    done = Row(ODD, (Ranked(Dataflow("input"), 2.0),))
    asked: list[str] = []
    told = yflows.run(
        host(), lambda name, *_: asked.append(name), quick=True, done=[done]
    )
    assert list(told) == [done, Row(BYTES, ranked)] and asked == [BYTES.name]


def test_a_picture_of_each_figure() -> None:
    made = pictures([row(**PAPER)])
    names = [f"figure-{number}-f32.png" for number in ("2", "7a", "7b")]
    assert sorted(made) == names
    assert all(data.startswith(b"\x89PNG") for data in made.values())
