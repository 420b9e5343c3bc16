"""A few of the written modules of `make modules`, and that a wrong result is found."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest
import torch  # pyright: ignore[reportMissingImports] - an extra

from tests.c_libraries import lend_runtime
from tests.fuzz.cases import Bench
from tests.fuzz.written.check import KINDS, check_written, differing, written


def first_of(kind: str) -> int:
    """The least seed whose module is of a kind."""
    return next(seed for seed in count() if written(seed)[1] == kind)


@pytest.mark.parametrize("kind", ["keywords", "derived", "promoted", "views"])
def test_a_module_of_a_kind_is_right(kind: str, tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.begin("written")
    lend_runtime(bench.cache)
    outcome = check_written(first_of(kind), bench)
    assert outcome.status == "passed", outcome
    assert outcome.operators == [kind]


def test_a_module_of_a_seed_is_the_same_one_and_all_kinds_are_drawn() -> None:
    one, other = (written(7)[0] for _ in range(2))
    assert one.source == other.source
    drawn = {written(seed)[1] for seed in range(300)}
    assert drawn == {kind.__name__ for kind in KINDS}


def test_results_that_differ_are_told() -> None:
    x = torch.tensor([1.0, 2.0])
    assert not differing(["spec", x, 1], ["spec", x * (1 + 1e-6), 1])
    assert "result 0" in differing(["spec", x], ["spec", x * 1.01])
    assert "float64" in differing(["spec", x.double()], ["spec", x])
    assert "spec" in differing(["spec"], ["other"])
    assert "2 where 3" in differing(["spec", 2], ["spec", 3])
    assert "1 results" in differing(["spec", x], ["spec", x, x])
