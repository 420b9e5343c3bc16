"""Stages within stages, and others' work, add up to what passed."""

from __future__ import annotations

import time

import pytest

from nanoloom.report import Report


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """What time it is, in its only place."""
    now = [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    return now


def test_a_stage_within_another_counts_for_itself(clock: list[float]) -> None:
    report = Report()
    for _ in range(2):
        with report.stage("graph"):
            clock[0] += 1
            with report.waiting("read"):
                clock[0] += 10
                with report.stage("graph"):
                    clock[0] += 100
            clock[0] += 1000
    assert report.passed == {"graph": 2202, "read": 20}
    assert sum(report.passed.values()) == clock[0]


def test_waiting_is_no_work(clock: list[float]) -> None:
    report = Report()
    with report.stage("schedule"):
        clock[0] += 3
    with report.waiting("workers"):
        clock[0] += 5
        report.add({"vector": 4, "llvm": 2})
    report.add({"vector": 1})
    assert report.passed == {"schedule": 3, "workers": 5}
    assert report.seconds == {"schedule": 3, "vector": 5, "llvm": 2}


def test_what_fails_has_taken_its_time(clock: list[float]) -> None:
    report = Report()
    with pytest.raises(ValueError, match="no"), report.waiting("run"):
        clock[0] += 7
        raise ValueError("no")
    assert report.passed == {"run": 7}
