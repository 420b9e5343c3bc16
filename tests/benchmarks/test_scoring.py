"""The benchmark of tables, and the simulation of many workers."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import scoring
from benchmarks.scoring_growth import Figures, growth, simulated
from nanoloom.cache import Cache
from tests.c_libraries import lend_runtime

ONE = Figures(10.0, 1.0, 100, 1000, 5.0)


def test_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NANOLOOM_CACHE", str(tmp_path))
    lend_runtime(Cache(tmp_path))
    out = tmp_path / "out.json"
    scoring.main(["--quick", "--json", str(out)])
    found = json.loads(out.read_text("utf-8"))
    assert set(found["seconds"]) == set(scoring.WAYS)
    assert all(t > 0 for w in found["seconds"].values() for n in w.values() for t in n)
    assert all(number > 0 for number in found["figures"].values())


def test_one_machine() -> None:
    """The first compiles, the others start behind it; weights are there once."""
    made = simulated(ONE, 4, shared_cache=False, served_bytes=1000, rows=1)
    assert made.ready_seconds == 1 + 10 + 1 and made.machine_bytes == 1000 + 4 * 100
    assert simulated(ONE, 1, shared_cache=False, served_bytes=1000).ready_seconds == 11


def test_machines_read_one_after_the_other() -> None:
    own = {"machine_workers": 1, "served_bytes": 1000.0}
    made = simulated(ONE, 3, shared_cache=False, **own)  # type: ignore[arg-type] - the same words for both
    assert made.ready_seconds == 3 + 10
    shared = simulated(ONE, 3, shared_cache=True, **own)  # type: ignore[arg-type] - the same words for both
    assert shared.ready_seconds == 11 + 1


def test_work_is_shared_by_those_that_are_ready() -> None:
    made = simulated(replace(ONE, artefact_bytes=0), 2, shared_cache=True, rows=1000)
    assert made.total_seconds == pytest.approx((1000 / 5 + 10 + 11) / 2)


def test_the_table_has_a_thousand_workers() -> None:
    assert growth(ONE).rows[-1][0] == "1000"
