"""nanoloom explain: reports as text and JSON, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import pytest

from nanoloom.cli.failures import AT_FAULT, DONE
from nanoloom.cli.main import main
from tests.explain.models import SLOW, model


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("model") / "slow.onnx"
    onnx.save(model(SLOW), place)
    return place


def test_the_text_says_what_limits_and_what_is_slow(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", str(path), "--repeat", "3", "-t", "1"]) == DONE
    said = capsys.readouterr()
    assert "a run (median of 3 runs, 1 thread)" in said.out
    for word in ("measured", "predicted", "limit", "fused", "not fused", "MatMul_0"):
        assert f"  {word}" in said.out or word in said.out
    assert "  ! scalar loop: " in said.out
    assert "random" in said.err


def test_one_layer_has_its_assembly(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["explain", str(path), "--layer", "MatMul_0", "--target", "icelake-server"]
    assert main(words) == DONE
    said = capsys.readouterr().out
    assert "not measured" in said and "vfmadd" in said and "Nanokernel" in said
    assert "Exp_4" not in said.replace("nodes that", "")


def test_json_is_a_report_again(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", str(path), "--target", "skylake-avx512", "--json"]) == DONE
    kept = tmp_path / "kept.json"
    kept.write_text(capsys.readouterr().out)
    assert main(["explain", str(kept), "--json"]) == DONE
    assert capsys.readouterr().out == kept.read_text()
    assert json.loads(kept.read_text())["target"] == "skylake-avx512"


def test_a_layer_that_is_not_there(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", str(path), "--layer", "None_7"]) == AT_FAULT
    assert "there is no layer None_7" in capsys.readouterr().err


def test_a_page_is_written(path: Path, tmp_path: Path) -> None:
    place = tmp_path / "report.html"
    words = ["explain", str(path), "--target", "skylake-avx512", "-o", str(place)]
    assert main(words) == DONE
    assert "MatMul_0" in place.read_text("utf-8")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["-o", "report.pdf"], "report.pdf does not end in .html"),
        (["-o", "none/report.html"], "make the folder first"),
        (["{path}", "-o", "x.html"], "a comparison is no page"),
        (["{path}", "--target", "skylake-avx512"], "was not measured"),
    ],
)
def test_what_is_refused(
    words: list[str], said: str, path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [word.format(path=path) for word in words]
    assert main(["explain", str(path), *given]) != DONE
    assert said in " ".join(capsys.readouterr().err.split())


def test_two_are_compared(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", str(path), "--repeat", "3", "--json"]) == DONE
    kept = tmp_path / "kept.json"
    kept.write_text(capsys.readouterr().out)
    assert main(["explain", str(kept), str(kept)]) == DONE
    said = capsys.readouterr().out
    assert "within the spread" in said and "MatMul_0" in said
    assert main(["explain", str(kept), str(kept), "--json"]) == DONE
    changes = json.loads(capsys.readouterr().out)["changes"]
    assert all(each["before"] == each["after"] for each in changes)


@pytest.mark.parametrize("other", ["gone.json", "gone.onnx", "empty.onnx"])
def test_a_second_model_is_read_before_the_first_is_measured(
    path: Path,
    tmp_path: Path,
    other: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def measured(*_: object, **__: object) -> None:
        raise AssertionError("the first model was explained")

    monkeypatch.setattr("nanoloom.explain.explain.explain", measured)
    (tmp_path / "empty.onnx").touch()
    assert main(["explain", str(path), str(tmp_path / other)]) == AT_FAULT
    assert other in capsys.readouterr().err
