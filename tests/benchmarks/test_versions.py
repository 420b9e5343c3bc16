"""Two versions of this code in turns: times that are made up, and one real layer."""

from __future__ import annotations

import json
import math
import random
import statistics
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from benchmarks import versions
from benchmarks.version_processes import Version
from benchmarks.version_tasks import KINDS, tasks_of
from benchmarks.versions import LEAST, LONGER, in_turns, interval, sheet
from nanoloom.errors import Error
from nanoloom_papers.reproduce.timing import Pace

PACE = Pace(rounds=9, pause=0.0)


@pytest.mark.parametrize("count", [9, 11, 25, 44])
def test_the_interval_holds_the_median_as_often_as_it_says(count: int) -> None:
    drawn, trials = random.Random(count), 2000
    truth, held = math.log(2), 0
    for _ in range(trials):
        low, high = interval([drawn.expovariate(1) for _ in range(count)])
        held += low <= truth <= high
    noise = 3 * math.sqrt(0.05 * 0.95 / trials)
    assert held / trials >= 0.95 - noise
    assert interval([1.0, 2.0, 3.0]) == (1.0, 3.0)


class Slowed:
    """A version whose calls take so many seconds, more or less."""

    def __init__(self, seconds: float, seed: int, noise: float = 0.01) -> None:
        self.remote, self.bursts = self, 0
        self._seconds, self._noise = seconds, noise
        self._drawn = random.Random(seed)

    def time(self, calls: int, warm_ups: int) -> list[float]:
        del warm_ups
        most = 1 + self._noise
        return [self._seconds * self._drawn.uniform(1, most) for _ in range(calls)]

    def burst(self, calls: int, pace: Pace) -> float:
        del pace
        self.bursts += 1
        return statistics.median(self.time(min(calls, 5), 1))


@pytest.mark.parametrize(
    ("before", "after", "is_slower"),
    [(1.0, 1.0, False), (1.0, 0.5, False), (1.0, 1.1, True), (0.5, 0.52, True)],
)
def test_what_is_slower_is_told(before: float, after: float, is_slower: bool) -> None:
    one, other = (cast("Version", Slowed(s, k)) for k, s in enumerate((before, after)))
    old, new, speeds = in_turns(one, other, PACE)
    made = versions.Compared("gemm", "a", 1, old, new, speeds, False, (2.0, 1.0))
    assert made.is_slower is is_slower
    assert abs(made.speed - before / after) < 0.02
    text = sheet([made], "abc1234")
    assert ("slower" in text.rows[0]) is is_slower
    assert text.notes[-1] == "compiled in 2.0 s before, in 1.0 s now"


def test_what_seems_slower_is_measured_longer() -> None:
    """Noise of a third about a loss of three percent: the interval is wide."""
    one, other = Slowed(1.0, 0, noise=0.6), Slowed(1.03, 1, noise=0.6)
    _, _, speeds = in_turns(cast("Version", one), cast("Version", other), PACE)
    assert one.bursts == other.bursts == len(speeds)
    seems = statistics.median(speeds) < LEAST <= interval(speeds)[1]
    assert len(speeds) == PACE.rounds * LONGER if seems else len(speeds) >= PACE.rounds


@pytest.mark.parametrize(
    ("times", "speed", "is_slower"),
    [
        (((1.0, 1.3), (1.0, 1.0)), 1.0, False),  # the first one's memory lay badly
        (((1.0, 1.3), (1.3, 1.4), (1.1, 1.3)), 1 / 1.3, True),
        (((1.0, 1.3),), 1 / 1.3, True),
    ],
)
def test_processes_are_several_where_one_is_slower(
    times: tuple[tuple[float, float], ...], speed: float, is_slower: bool
) -> None:
    found = [
        versions.Compared("gemm", "a", 1, old, new, (old / new,), False, (1.0, 1.0))
        for old, new in times
    ]
    made = versions.fastest(found)
    assert (made.speed, made.is_slower) == (speed, is_slower)


@pytest.mark.parametrize("kind", KINDS[:3])
def test_models_of_a_kind(kind: str, tmp_path: Path) -> None:
    task = next(tasks_of(kind, [], tmp_path))
    assert task.path.exists()
    assert all(np.isfinite(x.astype(float)).all() for x in task.inputs.values())


def test_a_layer_in_two_versions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = tmp_path / "rows.json"
    words = ["HEAD", "--of", "layers", "--only", "16x1x1 8", "--quick"]
    versions.main([*words, "--json", str(rows)])
    (row,) = cast("list[dict[str, Any]]", json.loads(rows.read_text()))
    assert row["name"] == "pointwise 16x1x1 8 1x1" and not row["differs"]
    assert "layers: " in capsys.readouterr().out
    with pytest.raises(Error, match="nothing was compared"):
        versions.main(["HEAD", "--of", "layers", "--only", "no such"])
