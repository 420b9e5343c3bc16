"""nanoloom reproduce oml-vect: tables and files of a tiny run."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from nanoloom.cache import Cache
from nanoloom.target.host import host
from nanoloom_papers.reproduce import oml_riscv, oml_vect
from nanoloom_papers.reproduce.oml_case import Case, case_of
from nanoloom_papers.reproduce.oml_claims import Claim, claims
from nanoloom_papers.reproduce.oml_models import TINY, Layer, draw
from nanoloom_papers.reproduce.oml_results import (
    COSTS,
    FOUND,
    MEMORY,
    OURS,
    RISCV,
    SECONDS,
    SHARE,
    STATIC,
    STRIDES,
    TABLE,
    WHOLE_MODELS,
    X86,
    Result,
    mean,
    ratio,
)
from nanoloom_papers.reproduce.oml_vect import COMPARED, CONFIGURATIONS, PEERS
from nanoloom_papers.reproduce.oml_whole import Whole
from tests.c_libraries import lend
from tests.cli.conftest import Command
from tests.cli.test_refusals import refused

WORDS = ("reproduce", "oml-vect", "--quick", "--folder")


@pytest.fixture
def with_libraries(cache: Path) -> None:
    """The C library of the emulated machine."""
    lend("riscv64", Cache(cache))


@pytest.mark.usefixtures("with_libraries")
def test_a_tiny_run(
    tmp_path: Path, plugin: Path, nanoloom: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of one layer, whose kernels the whole model has, too."""
    monkeypatch.setattr(oml_vect, "QUICK", TINY[:1])
    monkeypatch.setattr(oml_vect, "QUICK_WHOLE", (Whole(TINY[0], 1, 40),))
    monkeypatch.setattr(oml_riscv, "build_plugin", lambda folder: plugin)
    monkeypatch.setattr(oml_vect, "MEASURED", {OURS: CONFIGURATIONS[OURS]})
    folder = tmp_path / "made"
    said = nanoloom(*WORDS, folder)
    assert said.status == 0, said
    for title in ("Table I: found", "Figure 7: reductions", "Figure 8: seconds"):
        assert title in said.out
    assert "in the paper" in said.out
    with (folder / "results.csv").open() as file:
        found = list(csv.DictReader(file))
    times = [r for r in found if r["figure"] == X86 and r["layer"] == "tiny"]
    assert [each["contender"] for each in times] == [*CONFIGURATIONS, *PEERS]
    seconds = [r for r in found if r["quantity"] == "seconds" and is_there(r["note"])]
    assert seconds and all(float(r["value"]) > 0 for r in seconds)
    counts = {r["contender"]: r["value"] for r in found if r["figure"] == FOUND}
    # Six products, two reductions of softmax and two of the normalization, which are
    # all that MLIR sees.
    assert (counts["nanoloom"], counts["mlir"]) == ("10", "2")
    counted = {
        (r["layer"], r["contender"], r["quantity"]): int(r["value"])
        for r in found
        if r["figure"] == RISCV and "vlen" in r["quantity"]
    }
    for name in CONFIGURATIONS:
        every, loads, stores = (
            counted["tiny", name, f"{what}, vlen 512"]
            for what in ("instructions", "vector loads", "vector stores")
        )
        assert every > loads + stores and loads > 0
        assert stores >= 7 * 36 // 128  # registers of 16 numbers in groups of 8
    costs(found)
    told = json.loads((folder / "results.json").read_text())
    assert len(told["results"]) == len(found)
    assert {"figure-3.png", "figure-7.png", "figure-8.png"} <= {
        path.name for path in folder.iterdir()
    }


def costs(found: list[dict[str, str]]) -> None:
    """Section VI-C of a tiny layer: everybody has a number that can be one."""
    given = {
        (r["quantity"], r["contender"]): r
        for r in found
        if (r["figure"], r["layer"]) == (COSTS, "tiny")
    }
    row = given[MEMORY, OURS]
    assert 100 < int(row["value"]) < 100_000 if row["value"] else row["note"]
    for name in COMPARED:
        assert float(given[SECONDS.format("riscv64"), name]["value"]) > 0
        assert int(given[STATIC, name]["value"]) > 100
    assert 0 < float(given[SHARE.format("x86-64"), OURS]["value"]) < 1
    cycles = [r for r in found if "cycles" in r["quantity"]]
    assert cycles and all(r["value"] or "llvm-mca" in r["note"] for r in cycles)
    whole = [r for r in found if r["figure"] == WHOLE_MODELS]
    assert len(whole) == len((*CONFIGURATIONS, *PEERS))


def test_reductions_of_other_forms(tmp_path: Path) -> None:
    """Relative places are two more products; a GRU has both, those of gates apart."""
    counts = list[list[float | None]]()
    for layer in TINY[1:]:
        model = case_of(layer, tmp_path).model
        found = oml_vect.found_in(layer, model, host())
        counts.append([each.value for each in found])
    assert counts[0] == [12, 2]
    ours, theirs = counts[1]
    assert ours and theirs is not None and ours > theirs


def test_the_kinds_that_mlir_does_not_see(tmp_path: Path, nanoloom: Command) -> None:
    """Table I: multiply-adds, and extremes that are written as comparisons."""
    from nanoloom_papers.reproduce.oml_reductions import kinds

    found = {(r.layer, r.contender): r.value for r in kinds()}
    assert {value for (_, who), value in found.items() if who == "nanoloom"} == {1}
    missed = {
        kind for (kind, who), value in found.items() if who == "mlir" and not value
    }
    assert {"math.fma", "arith.cmpf, arith.select"} <= missed
    assert "arith.addf" not in missed


def test_a_wrong_result_is_named_and_not_timed(
    tmp_path: Path, nanoloom: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everybody is compared with what is right for other numbers."""
    wrong = Case.wrong
    monkeypatch.setattr(Case, "wrong", lambda self, got: wrong(self, -got))
    monkeypatch.setattr(oml_vect, "QUICK", TINY[:1])
    monkeypatch.setattr(oml_vect, "QUICK_WHOLE", ())
    monkeypatch.setattr(oml_vect, "interleaved", lambda runs, turns: [])
    for each in ("emulated", "memory", "compilation", "inner_loops_of"):
        monkeypatch.setattr(oml_vect, each, lambda *words: iter(()))
    said = nanoloom(*WORDS, tmp_path, "--json")
    assert said.status == 1, said
    found = [r for r in json.loads(said.out)["results"] if r["figure"] == X86]
    assert all(each["value"] is None for each in found)
    there = [each["note"] for each in found if is_there(each["note"])]
    assert len(there) > len(CONFIGURATIONS)
    assert all("wrong result" in note for note in there)


def is_there(note: str) -> bool:
    """Whether a contender ran: OpenVINO is no dependency of the tests."""
    return not note.startswith("OpenVINO is not installed")


def results(figure: str, quantity: str, **given: float) -> list[Result]:
    return [Result(figure, "a", "", n, quantity, value) for n, value in given.items()]


def test_claims_without_times() -> None:
    counts = results(FOUND, "reductions", nanoloom=10, mlir=5)
    found = {claim.what: claim for claim in claims(counts)}
    assert found["reductions found, of MLIR's"].here == pytest.approx(2)
    assert found["reductions found, of MLIR's"].holds is False
    assert sum(claim.holds is None for claim in found.values()) == len(found) - 1


def test_claims_of_at_most() -> None:
    assert Claim("", 0.5, 0.4, most=True).holds and not Claim("", 0.5, 0.4).holds
    slower = results(STRIDES, "seconds", none=1.0, forced=2.0)
    (claim,) = (c for c in claims(slower) if "forced" in c.what)
    assert claim.here == pytest.approx(0.5) and claim.holds
    assert Claim("", 0.5, 0.6, most=True).holds is False


def test_only_layers_of_both_count() -> None:
    some = results(TABLE, "found", nanoloom=4.0)
    assert ratio(some, TABLE, "found", "nanoloom", "loops") is None
    assert mean([2.0, 8.0]) == pytest.approx(4)


def test_the_numbers_are_seeded() -> None:
    one, other = draw(TINY[2]), draw(TINY[2])
    assert all((one[name] == other[name]).all() for name in one)
    assert not np.allclose(one["wi"], draw(TINY[2], seed=1)["wi"])


FORMS = (
    TINY[1],
    Layer("tiny-distilbert", 24, 2, "distilbert", 9),
    Layer("tiny-plain", 24, 2, "plain", 9),
)


@pytest.mark.drawn(one_in=2)
@pytest.mark.parametrize("layer", FORMS, ids=lambda layer: layer.name)
def test_every_form_by_every_strategy(layer: Layer, tmp_path: Path) -> None:
    """Against ONNX's reference, as the others in the tiny run."""
    case = case_of(layer, tmp_path)
    found = list(oml_vect.times(case, host(), tmp_path, lambda _: None, 1, X86))
    assert not [each.note for each in found if each.note and is_there(each.note)]


@pytest.mark.parametrize("layer", (*TINY, *FORMS[1:]), ids=lambda layer: layer.name)
def test_numbers_of_another_place_are_wrong(layer: Layer, tmp_path: Path) -> None:
    case = case_of(layer, tmp_path)
    assert case.wrong(np.roll(case.wanted, 1, -1)) and not case.wrong(case.wanted)


@pytest.mark.parametrize("words", [("--threads", "2"), ("--against", "none")])
def test_what_it_does_not_have(words: tuple[str, str], nanoloom: Command) -> None:
    refused(nanoloom("reproduce", "oml-vect", *words), "with one thread", status=2)
