"""A small part of `make modules`, and that it finds what it looks for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch  # pyright: ignore[reportMissingImports] - an extra

from tests.c_libraries import lend_runtime
from tests.fuzz.cases import Bench
from tests.fuzz.modules.check import EPS, Case, Compared, drawn, exported, traced
from tests.fuzz.modules.reference import Expected, differing

SEED = 1_000_002


def test_a_module_of_a_seed_is_the_same_one() -> None:
    one, other = (drawn(SEED)[0] for _ in range(2))
    assert one.source == other.source and len(one.operators) > 2
    assert all(map(torch.equal, one.calls[0], other.calls[0]))


class Scaled(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.tensor(0))

    def forward(self, x: Any) -> Any:
        self.count += 1
        return (x * self.count).sum(0)


@pytest.mark.parametrize("way", [exported, traced])
def test_a_wrong_result_is_a_finding(way: Any, tmp_path: Path) -> None:
    module = Scaled().eval()
    case = Case("", module, [[torch.randn(n, 3)] for n in (4, 2)], [{0: "N"}], [])
    bench = Bench(tmp_path)
    bench.begin("module")
    lend_runtime(bench.cache)
    for changed in (False, True):
        compared = Compared(module, EPS[torch.float32])
        if changed:
            twins = [x.module for x in (compared.exact, *compared.others)]
            for each in (compared.own, *twins):
                each.count += 1
        outcome = way(case, compared, np.random.default_rng(0), bench)
        assert (outcome.status == "finding") is changed, outcome
    assert outcome.finding is not None and outcome.finding.kind == "difference"


def test_results_are_as_exact_as_their_roundings() -> None:
    exact = torch.tensor([1.0, 2.0], dtype=torch.float64)
    moved = [exact * (1 + 1e-7), exact * (1 - 1e-7)]
    own, eps = exact.float(), 2.0**-23
    wanted = Expected(own, exact, moved)
    assert not differing(own * (1 + 1e-6), wanted, eps)
    assert "numbers" in differing(own * (1 + 1e-4), wanted, eps)
    assert "float64" in differing(exact, wanted, eps)
    assert "shape" in differing(own[:1], wanted, eps)
    whole = Expected(own.int(), own.int(), [own.int()])
    assert "1 of 2 numbers" in differing(
        own.int() + torch.tensor([0, 1]).int(), whole, eps
    )
