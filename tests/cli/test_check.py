"""nanoloom check: all problems at once, grouped for readers, single in JSON."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.cli import models
from tests.cli.conftest import Command
from tests.cli.test_refusals import BAD_MODELS

FINE = {
    "relu": models.RELU,
    "dense": models.DENSE,
    "by value": models.BY_VALUE,
    "no input": models.NO_INPUT,
    "random": models.RANDOM,
    "dead code": "g (float[2] x) => (float[2] y) { y = Relu(x) n = NonZero(x) }",
    "nanoloom's own": "g (float[2] x) => (y) { y = nanoloom.Erfcx(x) }",
    "zero sized": "g (float[0, 3] x) => (float[0, 3] y) { y = Relu(x) }",
}


@pytest.mark.parametrize("name", FINE)
def test_models_that_compile(tmp_path: Path, nanoloom: Command, name: str) -> None:
    model = models.write(tmp_path, FINE[name])
    said = nanoloom("check", model)
    assert said.status == 0 and "model.onnx: compiles" in said.out
    found = json.loads(nanoloom("check", model, "--json").out)
    assert found["compiles"] and found["problems"] == []


@pytest.mark.parametrize("name", BAD_MODELS)
def test_models_that_do_not(tmp_path: Path, nanoloom: Command, name: str) -> None:
    make, _ = BAD_MODELS[name]
    said = nanoloom("check", make(tmp_path))
    assert said.status == 1 and said.err == ""
    assert ": 1 problem\n" in said.out
    assert "->" in said.out, "every problem says what to do"


def test_all_problems_at_once(tmp_path: Path, nanoloom: Command) -> None:
    model = models.write(tmp_path, models.MANY_PROBLEMS)
    said = nanoloom("check", model)
    assert said.status == 1
    assert "Sampling_0, Sampling_1 (com.microsoft::Sampling)" in said.out
    for word in ("Foo_3", "Rellu_4", "did you mean Relu?", "MatMul_5", "fit together"):
        assert word in said.out, said.out
    found = json.loads(nanoloom("check", model, "--json").out)
    nodes = [problem["node"] for problem in found["problems"]]
    assert sorted(nodes) == [
        "Foo_3", "MatMul_5", "Rellu_4", "Sampling_0", "Sampling_1",
    ]  # fmt: skip
    for problem in found["problems"]:
        assert set(problem) == {"node", "operator", "reason", "hint"}
        assert problem["reason"] and problem["hint"] and problem["operator"]


def test_what_follows_a_refused_node_is_looked_at(
    tmp_path: Path, nanoloom: Command
) -> None:
    text = """
        g (float[2, 3] x) => (float[2, 3] y, float z) <float[2, 3] a> {
          a = my.ops.Foo(x)
          b = MatMul(a, a)
          y = Relu(x)
          z = Rellu(b)
        }
    """
    found = json.loads(nanoloom("check", models.write(tmp_path, text), "--json").out)
    nodes = {problem["node"] for problem in found["problems"]}
    assert {"Foo_0", "Rellu_3"} <= nodes


def test_problems_inside_of_branches(tmp_path: Path, nanoloom: Command) -> None:
    text = """
        g (bool c, float[2] x) => (float[2] y) {
          y = If (c) <
            then_branch = a () => (float[2] p) { p = my.ops.Foo(x) },
            else_branch = b () => (float[2] q) { q = Rellu(x) }
          >
        }
    """
    said = nanoloom("check", models.write(tmp_path, text))
    assert said.status == 1
    assert "my.ops::Foo" in said.out and "Rellu" in said.out


def test_dimensions_without_a_number_are_assumed(
    tmp_path: Path, nanoloom: Command
) -> None:
    model = models.write(tmp_path, models.DENSE)
    said = nanoloom("check", model)
    assert "note: looked at with batch=8; --dim gives other sizes" in said.out
    assert "note: compiled once for all sizes of batch" in said.out
    given = nanoloom("check", model, "--dim", "batch=3", "--json")
    found = json.loads(given.out)
    assert found["dims"] == {"batch": 3} and found["assumed_dims"] == []
    wrong = nanoloom("check", model, "--dim", "bach=3")
    assert wrong.status == 1 and "no dimension bach" in wrong.err


def test_other_sizes_are_tried(tmp_path: Path, nanoloom: Command) -> None:
    text = """
        g (float[n, 3] x, float[1, 3] w) => (float[1, 6] y) {
          c = Concat<axis = 1>(x, w)
          y = Relu(c)
        }
    """
    found = json.loads(nanoloom("check", models.write(tmp_path, text), "--json").out)
    assert found["compiles"] and found["dims"] == {"n": 1}


def test_sizes_that_are_compiled_each(tmp_path: Path, nanoloom: Command) -> None:
    text = """
        g (float[1, n, 2] x) => (float[1, n, 2] y) { y = DFT(x) }
    """
    model = models.write(tmp_path, text)
    said = " ".join(nanoloom("check", model).out.split())
    assert "each size of n is compiled on its own: node" in said
    assert "(DFT): a size along the axis that it transforms" in said
    found = json.loads(nanoloom("check", model, "--json").out)
    assert found["sizes"] == [] and "DFT" in found["not_sizes"]


def test_inputs_that_decide_about_shapes_are_named(
    tmp_path: Path, nanoloom: Command
) -> None:
    said = nanoloom("check", models.write(tmp_path, models.BY_VALUE))
    assert "the values of n decide about shapes" in " ".join(said.out.split())


def test_check_agrees_with_compiling(tmp_path: Path, nanoloom: Command) -> None:
    """A model that check passes compiles; the input it found is the one that counts."""
    model = models.write(tmp_path, models.BY_VALUE)
    np.save(tmp_path / "n.npy", np.array(4, np.int64))
    assert nanoloom("run", model, "-i", f"n={tmp_path / 'n.npy'}").status == 0


def test_quantized_layers_in_floats(tmp_path: Path, nanoloom: Command) -> None:
    text = """g (uint8[4, 4] x) => (uint8[4, 4] y) <float s = {0.05}, uint8 z = {3}> {
        d = DequantizeLinear(x, s, z) a = Softmax(d) y = QuantizeLinear(a, s, z) }"""
    model = models.write(tmp_path, text)
    said = nanoloom("check", model)
    assert said.status == 0 and "model.onnx: compiles" in said.out
    assert "1 quantized layer computed in floats" in said.out
    assert "(Softmax)" in said.out and "no integer form" in said.out
    (layer,) = json.loads(nanoloom("check", model, "--json").out)["in_floats"]
    assert layer["operator"] == "Softmax" and layer["reason"]


def test_binary_layers(tmp_path: Path, nanoloom: Command) -> None:
    text = """g (float[3, 8] x) => (float[3, 1] y, float[3, 1] z)
        <float[8, 1] w = {2, -2, 2, 2, 2, -2, -2, 2},
         float[8, 1] v = {2, -2, 2, 2, 2, -2, -2, 1}> {
        s = Sign(x) y = MatMul(s, w) z = MatMul(s, v) }"""
    model = models.write(tmp_path, text)
    said = nanoloom("check", model)
    assert said.status == 0
    assert "1 binary layer, computed in bits:" in said.out
    assert "1 layer of signs computed in floats:" in said.out
    assert "one magnitude" in said.out
    found = json.loads(nanoloom("check", model, "--json").out)
    (layer,), (other,) = found["in_bits"], found["signs_in_floats"]
    assert layer != other["node"] and other["reason"]
