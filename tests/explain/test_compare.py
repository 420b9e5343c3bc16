"""Two reports beside each other: groups by nodes in common, verdicts by spreads."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nanoloom.errors import Error
from nanoloom.explain.compare import ALIKE, FASTER, SLOWER, compare
from tests.explain.reports import PRODUCT, REPORT, SLOW


def slower(factor: float) -> object:
    """The report with a product that takes so much longer."""
    times = {k: getattr(PRODUCT, k) * factor for k in ("measured", "low", "high")}
    product = replace(PRODUCT, reason="tiles of 1x4 vectors", **times)
    return replace(REPORT, kernels=(product, SLOW))


@pytest.mark.parametrize(
    ("factor", "verdict"), [(2.0, SLOWER), (0.5, FASTER), (1.05, ALIKE)]
)
def test_verdicts(factor: float, verdict: str) -> None:
    changes = {each.layers[0]: each for each in compare(REPORT, slower(factor))}
    found = changes["MatMul_0"]
    assert found.verdict == verdict and found.ratio == pytest.approx(factor)
    assert found.differences == (
        "schedule: tiles of 5x4 vectors, now tiles of 1x4 vectors",
    )
    assert changes["Exp_4"].verdict == ALIKE and not changes["Exp_4"].differences


def test_what_got_slower_by_most_is_first() -> None:
    assert compare(REPORT, slower(9.0))[0].layers == ("MatMul_0",)
    assert compare(REPORT, slower(0.1))[-1].layers == ("MatMul_0",)


def test_kernels_that_were_cut_otherwise_are_one_group() -> None:
    one = replace(PRODUCT, nodes=("MatMul_0",), measured=0.0004)
    rest = replace(PRODUCT, name="relu", nodes=("Relu_1", "Exp_4"), measured=0.0007)
    (change,) = compare(REPORT, replace(REPORT, kernels=(one, rest)))
    assert change.before == pytest.approx(0.004)
    assert change.after == pytest.approx(0.0011)
    assert "slow: scalar loop" in " ".join(change.differences)


def test_what_cannot_be_compared() -> None:
    with pytest.raises(Error, match="was not measured"):
        compare(REPORT, replace(REPORT, measured=None))
    other = replace(PRODUCT, nodes=("Conv_0",))
    with pytest.raises(Error, match="have no node in common"):
        compare(REPORT, replace(REPORT, kernels=(other,)))
