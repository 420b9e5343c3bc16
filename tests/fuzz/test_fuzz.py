"""A small part of `make fuzz`, and that it finds what it looks for."""

from __future__ import annotations

from pathlib import Path

from nanoloom.linalg.operators import OPERATORS
from tests.fuzz.cases import Outcome
from tests.fuzz.exceptions import NOT_DRAWN
from tests.fuzz.families import FAMILIES
from tests.fuzz.pool import Case, Worker, run_cases
from tests.fuzz.recipes.table import RECIPES

GRAPHS, DAMAGED = 4, 16
SEED = 11_000_000


def test_a_small_part(tmp_path: Path) -> None:
    cases = [Case("graph", SEED + i) for i in range(GRAPHS)]
    cases += [Case("damage", SEED + i) for i in range(DAMAGED)]
    cases += [Case(family, 0) for family in (*FAMILIES, "old", "types")]
    found: list[str] = []
    statuses: list[str] = []

    def note(case: Case, outcome: Outcome, folder: Path) -> None:
        statuses.append(f"{case.kind} {outcome.status}")
        if outcome.status == "finding" and outcome.finding is not None:
            found.append(f"{case}: {outcome.finding.kind}: {outcome.finding.text}")

    run_cases(iter(cases), tmp_path, 1, note)
    assert not found, "\n".join(found)
    assert len(statuses) == len(cases)
    assert statuses.count("graph passed") > 0.8 * GRAPHS
    assert statuses.count("damage passed") > 0.1 * DAMAGED
    assert statuses.count("damage refused") > 0.1 * DAMAGED
    assert {f"{family} passed" for family in FAMILIES} <= {*statuses}


def test_what_must_not_be_is_found(tmp_path: Path) -> None:
    """And that a child goes on behind each, or another one begins."""
    goes_on = Case("damage", SEED)
    worker = Worker(tmp_path / "worker")
    usual = worker.seconds
    try:
        for seed, kind in ((2, "foreign"), (0, "crash"), (1, "hang")):
            assert worker.run(goes_on).status in ("passed", "refused")
            if kind == "hang":  # of a child that has begun before time is short
                worker.seconds = 3
            outcome = worker.run(Case("broken", seed))
            worker.seconds = usual
            assert outcome.status == "finding"
            assert outcome.finding is not None and outcome.finding.kind == kind
            assert "while: nowhere" in outcome.finding.text
        assert worker.run(Case("graph", SEED)).status == "passed"
    finally:
        worker.close()


def test_every_operator_is_drawn() -> None:
    assert set(OPERATORS) - set(RECIPES) == set(NOT_DRAWN)
