"""nanoloom run: what is computed, what is printed, what is written."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.cli import models
from tests.cli.conftest import Command

X = np.array([[1.5, -2.0, 3.0], [-0.5, 0.25, -8.0]], np.float32)


def saved(folder: Path, array: np.ndarray, name: str = "x.npy") -> Path:
    np.save(folder / name, array)
    return folder / name


def test_given_inputs_give_their_outputs(tmp_path: Path, nanoloom: Command) -> None:
    model = models.write(tmp_path, models.RELU)
    x, y = saved(tmp_path, X), tmp_path / "y.npy"
    said = nanoloom("run", model, "--input", f"x={x}", "--output", f"y={y}")
    assert (said.status, said.err) == (0, "")
    np.testing.assert_array_equal(np.load(y), np.maximum(X, 0))
    assert "float32 2x3" in said.out and str(y) in said.out.replace("\n", "")


def test_products_are_right(tmp_path: Path, nanoloom: Command) -> None:
    model = models.write(tmp_path, models.DENSE)
    random = np.random.default_rng(7)
    x = random.standard_normal((3, 7), np.float32)
    w = random.standard_normal((7, 5), np.float32)
    files = f"x={saved(tmp_path, x)}", f"w={saved(tmp_path, w, 'w.npy')}"
    words = ("-i", files[0], "-i", files[1], "-o", tmp_path / "out")
    assert nanoloom("run", model, *words).status == 0
    exact = x.astype(np.float64) @ w.astype(np.float64)
    bound = 9 * np.finfo(np.float32).eps * (abs(x) @ abs(w))  # K + 2 roundings
    got = np.load(tmp_path / "out" / "y.npy")
    assert (abs(got - np.maximum(exact, 0)) <= bound).all()
    assert not (abs(0 * got - np.maximum(exact, 0)) <= bound).all()
    z = np.load(tmp_path / "out" / "z.npy")
    np.testing.assert_allclose(z.sum(1), 1, atol=6e-7)


def test_missing_inputs_are_random_and_it_is_said(
    tmp_path: Path, nanoloom: Command
) -> None:
    model = models.write(tmp_path, models.DENSE)
    said = nanoloom("run", model, "--dim", "batch=3")
    assert said.status == 0
    assert "nanoloom: inputs x, w are random (seed 0)" in said.err
    again = nanoloom("run", model, "--dim", "batch=3")
    assert again.out == said.out
    other = nanoloom("run", model, "--dim", "batch=3", "--seed", "1")
    assert other.out != said.out and "(seed 1)" in other.err


def test_json_is_all_of_it(tmp_path: Path, nanoloom: Command) -> None:
    model, x = models.write(tmp_path, models.RELU), saved(tmp_path, X)
    said = nanoloom("run", model, "-i", f"x={x}", "--json", "--threads", "1")
    found = json.loads(said.out)
    assert found["threads"] == 1 and found["seconds"]["run"] > 0
    assert found["inputs"] == [
        {"name": "x", "dtype": "float32", "shape": [2, 3], "random": False}
    ]
    (output,) = found["outputs"]
    assert output["min"] == 0 and output["max"] == 3 and output["nan"] == 0
    assert output["first"] == [1.5, 0, 3, 0, 0.25, 0] and output["file"] is None
    assert output["mean"] == pytest.approx(np.maximum(X, 0).mean())


def test_what_is_not_finite_is_counted(tmp_path: Path, nanoloom: Command) -> None:
    model = models.write(tmp_path, models.RELU)
    x = np.array([[np.nan, np.inf, 2]], np.float32)
    words = ("run", model, "-i", f"x={saved(tmp_path, x)}")
    said = nanoloom(*words)
    assert "1 nan" in said.out and "1 inf" in said.out
    (output,) = json.loads(nanoloom(*words, "--json").out)["outputs"]
    assert (output["nan"], output["inf"], output["max"]) == (1, 1, 2)
    assert output["first"] == ["nan", "inf", 2]


def test_dimensions_of_zero(tmp_path: Path, nanoloom: Command) -> None:
    model = models.write(tmp_path, models.RELU)
    said = nanoloom("run", model, "--dim", "batch=0")
    assert said.status == 0 and "float32 0x3" in said.out
    x = saved(tmp_path, np.empty((0, 3), np.float32))
    y = tmp_path / "y.npy"
    assert nanoloom("run", model, "-i", f"x={x}", "-o", f"y={y}").status == 0
    assert np.load(y).shape == (0, 3)


def test_no_inputs(tmp_path: Path, nanoloom: Command) -> None:
    said = nanoloom("run", models.write(tmp_path, models.NO_INPUT))
    assert said.status == 0 and "1.5 -2" in said.out and said.err == ""


def test_shapes_that_depend_on_values(tmp_path: Path, nanoloom: Command) -> None:
    model = models.write(tmp_path, models.BY_VALUE)
    n, q = saved(tmp_path, np.array(5, np.int64)), tmp_path / "q.npy"
    assert nanoloom("run", model, "-i", f"x={n}").status == 1
    assert nanoloom("run", model, "-i", f"n={n}", "-o", f"q={q}").status == 0
    np.testing.assert_array_equal(np.load(q), np.arange(5))


def test_a_compiled_library_runs(tmp_path: Path, nanoloom: Command) -> None:
    model, library = models.write(tmp_path, models.DENSE), tmp_path / "dense.so"
    assert nanoloom("compile", model, "-o", library, "-d", "batch=3").status == 0
    one = nanoloom("run", model, "-d", "batch=3", "--json")
    other = nanoloom("run", library, "--json")
    outputs = [json.loads(said.out)["outputs"] for said in (one, other)]
    assert outputs[0] == outputs[1]
    wrong = nanoloom("run", library, "-d", "batch=3")
    assert wrong.status == 2 and "numbers already" in wrong.told


UNITS = {"s": 1, "ms": 1e-3, "us": 1e-6}


@pytest.mark.compiles_anew
def test_the_time_report(tmp_path: Path, nanoloom: Command) -> None:
    model = models.write(tmp_path, models.DENSE)
    said = nanoloom("run", model, "-d", "batch=2", "--time-report", "--no-cache")
    here, workers = said.err.split("in workers")
    rows = [line.split() for line in here.splitlines()[2:] if "─" not in line]
    passed = {row[0]: float(row[1]) * UNITS[row[2]] for row in rows if len(row) > 2}
    whole = passed.pop("whole")
    assert sum(passed.values()) == pytest.approx(whole, rel=0.01)
    known = "read start graph linalg kernels schedule workers runtime weights link load"
    assert passed.keys() == {*known.split(), "run", "rest"}
    assert {line.split()[0] for line in workers.splitlines()[2:]} >= {"vector", "llvm"}
    assert "kernels, 0 from the cache" in workers


def test_no_cache_leaves_the_cache_alone(
    tmp_path: Path, nanoloom: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, folder = models.write(tmp_path, models.RELU), tmp_path / "cache"
    monkeypatch.setenv("NANOLOOM_CACHE", str(folder))
    assert nanoloom("run", model, "-d", "batch=2", "--no-cache").status == 0
    assert not folder.exists()


def test_the_cache_option_wins(
    tmp_path: Path, nanoloom: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, chosen = models.write(tmp_path, models.NO_INPUT), tmp_path / "chosen"
    monkeypatch.setenv("NANOLOOM_CACHE", str(tmp_path / "variable"))
    assert nanoloom("run", model, "--cache", chosen).status == 0
    assert (chosen / "models").is_dir() and not (tmp_path / "variable").exists()


@pytest.mark.parametrize("name", ["out", "out/"])
def test_outputs_in_a_folder(tmp_path: Path, nanoloom: Command, name: str) -> None:
    text = models.RELU.replace(" y", " a1").replace("{ y", "{ a1")
    model = models.write(tmp_path, text)
    folder = f"{tmp_path}/{name}"
    assert nanoloom("run", model, "-d", "batch=1", "-o", folder).status == 0
    assert [p.name for p in Path(folder).iterdir()] == ["a1.npy"]


def test_the_only_output_goes_to_a_file(tmp_path: Path, nanoloom: Command) -> None:
    model = models.write(tmp_path, models.RELU)
    out = tmp_path / "p.npy"
    said = nanoloom("run", model, "-d", "batch=2", "-o", out)
    assert said.status == 0 and out.is_file(), said
    assert np.load(out).shape == (2, 3)


def test_one_file_is_not_for_two_outputs(tmp_path: Path, nanoloom: Command) -> None:
    model = models.write(tmp_path, models.DENSE)
    said = nanoloom("run", model, "-d", "batch=2", "-o", tmp_path / "p.npy")
    assert said.status == 2 and "there are 2 outputs" in said.told
    assert not (tmp_path / "p.npy").exists()


NAMES_ALIKE = """g (float[2] x) => (float[2] "a/b", float[2] "a_b") {
  "a/b" = Neg(x)  "a_b" = Abs(x) }"""


@pytest.mark.parametrize("words", [["y=p", "z=./p"], ["y=p", "z=link"], ["y=m.onnx"]])
def test_no_output_is_written_over_another_or_the_model(
    tmp_path: Path, nanoloom: Command, words: list[str]
) -> None:
    model = models.write(tmp_path, models.DENSE)
    (tmp_path / "m.onnx").symlink_to(model)
    (tmp_path / "link").symlink_to("p")
    before, files = model.read_bytes(), [x.split("=") for x in words]
    outs = [x for name, file in files for x in ("-o", f"{name}={tmp_path}/{file}")]
    said = nanoloom("run", model, "-d", "batch=2", *outs)
    reason = "is for output y and for output z" if words[1:] else "is the model itself"
    assert said.status == 1 and reason in said.err, said
    assert model.read_bytes() == before and not (tmp_path / "p").exists()


def test_names_that_are_one_file_name(tmp_path: Path, nanoloom: Command) -> None:
    model = models.write(tmp_path, NAMES_ALIKE)
    said = nanoloom("run", model, "-o", tmp_path / "all")
    assert said.status == 1 and "is for output a/b and for output a_b" in said.err, said
    outs = ["-o", "a/b=/dev/null", "-o", "a_b=/dev/null"]
    assert nanoloom("run", model, *outs).status == 0


def test_all_outputs_in_one_file(tmp_path: Path, nanoloom: Command) -> None:
    model, out = models.write(tmp_path, models.DENSE), tmp_path / "p.npz"
    said = nanoloom("run", model, "-d", "batch=2", "-o", out, "--json")
    assert said.status == 0, said
    told = {x["name"]: x for x in json.loads(said.out)["outputs"]}
    with np.load(out) as arrays:
        assert {*arrays} == {*told} and len(told) == 2
        for name, array in arrays.items():
            assert list(array.shape) == told[name]["shape"]
            assert told[name]["file"] == str(out)


@pytest.mark.parametrize("word", ["-", "{name}=-", "{name}=p.npz"])
def test_what_no_array_is_written_to(
    tmp_path: Path, nanoloom: Command, word: str
) -> None:
    model = models.write(tmp_path, models.RELU)
    said = nanoloom("run", model, "-d", "batch=2", "-o", word.format(name="y"))
    assert said.status == 2 and "--output" in said.err, said
