"""Cases that are drawn: every value is among them, and all are where all are asked."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given, strategies

from tests.drawn_cases import Asked, drawn, few_examples, is_size, sampled

pytest_plugins = ("pytester",)
CASES = [
    {"target": target, "kind": kind, "rows": rows}
    for target, kind, rows in itertools.product("abcdefg", "0123", (1, 6))
]
TEST = """
import pytest

@pytest.mark.drawn
@pytest.mark.parametrize("target", "abcdefghi")
@pytest.mark.parametrize("kind", range(3))
def test_some(target, kind):
    assert target != "e"

@pytest.mark.drawn(one_in=4, kind=lambda number: number == 7)
@pytest.mark.parametrize("number", range(16))
def test_a_list(number):
    assert number != 7

@pytest.mark.parametrize("kind", range(3))
def test_all(kind):
    pass
"""


@pytest.mark.parametrize("seed", ["a", "b", "c"])
def test_every_value_is_there(seed: str) -> None:
    chosen = [CASES[number] for number in drawn(CASES, seed)]
    assert len(chosen) == 7  # as many as the longest parameter has values
    for name in CASES[0]:
        assert {case[name] for case in chosen} == {case[name] for case in CASES}
    assert drawn(CASES, seed) == drawn(CASES, seed)


@pytest.mark.parametrize("seed", ["a", "b", "c"])
def test_of_many_sizes_a_third_is_there(seed: str) -> None:
    """Of few all, and of what is no size."""
    sizes = [((m, 3), 0.5) for m in range(12)]
    params = itertools.product(sizes, "abcde", (1, 2, 3), (True, False))
    names = ("size", "kind", "few", "packed")
    cases = [dict(zip(names, values, strict=True)) for values in params]
    chosen = [cases[number] for number in drawn(cases, seed)]
    assert len(chosen) == 5  # as many as there are kinds
    for name in names[1:]:
        assert {case[name] for case in chosen} == {case[name] for case in cases}
    assert 4 <= len({case["size"] for case in chosen}) <= 5


def test_what_a_size_is() -> None:
    @dataclass(frozen=True)
    class Image:
        high: int
        windows: tuple[int, int]
        kind: str | int = 0

    sizes = 3, 0.5, (), (1, (2, 3)), [4], Image(3, (4, 5))
    assert all(map(is_size, sizes))
    others = True, "3", None, (1, "same"), (1, False), Image(3, (4, 5), "f32"), Image
    assert not any(map(is_size, others))


@pytest.mark.parametrize(("every", "most"), [(False, 3), (True, 5)])
def test_examples(every: bool, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Asked, "all_cases", every)
    seen: list[int] = []

    @few_examples(5, derandomize=True)
    @given(strategies.integers())
    def look(number: int) -> None:
        seen.append(number)

    look()
    assert len(seen) == most


def test_other_seeds_draw_others() -> None:
    assert len({tuple(drawn(CASES, str(seed))) for seed in range(20)}) > 10
    assert len({tuple(sampled(CASES, str(seed), 9)) for seed in range(20)}) > 10


def kind_of(target: str, kind: str, rows: int) -> tuple[str, bool]:
    return target, kind == "0" and rows == 1


@pytest.mark.parametrize("seed", ["a", "b", "c"])
@pytest.mark.parametrize(
    ("one_in", "some"), [(1, 56), (3, 19), (4, 14), (8, 14), (56, 14)]
)
def test_every_kind_is_there(one_in: int, some: int, seed: str) -> None:
    """As many as there are kinds, where that is more."""
    chosen = [CASES[number] for number in sampled(CASES, seed, one_in, kind_of)]
    assert len(chosen) == some
    assert {kind_of(**case) for case in chosen} == {kind_of(**case) for case in CASES}
    assert len(sampled(CASES, seed, one_in)) == -(-len(CASES) // one_in)


@pytest.mark.parametrize(
    ("words", "some"), [((), (9, 4)), (("--all-cases",), (27, 16))]
)
def test_a_run(
    pytester: pytest.Pytester, words: tuple[str, ...], some: tuple[int, int]
) -> None:
    """A value or a kind that fails is found in either of them."""
    conftest = Path(__file__).with_name("conftest.py").read_text("utf-8")
    start = conftest.index("def pytest_addoption")
    stop = conftest.index("def pytest_configure")
    pytester.makeconftest(
        "import pytest\nfrom tests.drawn_cases import keep_drawn\n"
        + conftest[start:stop]
    )
    pytester.makeini("[pytest]\nmarkers = drawn\n")
    pytester.makepyfile(TEST)
    done = pytester.runpytest_inprocess("-q", "-n0", *words)
    failed, left_out = some[0] // 9 + 1, 27 + 16 - sum(some)
    done.assert_outcomes(
        passed=3 + sum(some) - failed, failed=failed, deselected=left_out
    )
