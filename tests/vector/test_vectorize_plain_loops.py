"""Bodies of a model's own loops have vectors where their width is any."""

from __future__ import annotations

import re

import pytest

from nanoloom.target import by_name
from tests.vector.test_scalable import shown

RUNNING = """r (float[70, 31] x) => (float[70, 31] y)
    { a = Constant<value_int = 1>() y = CumSum(x, a) }"""
WITHIN = r"scf.for (?:(?!scf.for)[\s\S])*memref.load .*\n.*memref.load .*\n.*arith.addf"


@pytest.mark.parametrize("name", ["rv64gcv", "armv9-sve2"])
def test_running_sums_along_rows_are_of_many_rows(name: str) -> None:
    text = shown(RUNNING, "vector", by_name(name))
    assert "vector.gather" in text and "vector.scatter" in text
    assert re.search(r"arith.addf .*vector<\[\d+\]xf32>", text)
    assert not re.search(WITHIN, text)


def test_llvm_makes_those_of_a_known_width() -> None:
    text = shown(RUNNING, "vector", by_name("x86-64-v4"))
    assert re.search(WITHIN, text) and "vector.gather" not in text
