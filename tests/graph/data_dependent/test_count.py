"""Numbers that the program computes, and the inputs that messages name for them."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir
import pytest

from nanoloom.graph import types
from nanoloom.graph.data_dependent.count import counts_of
from tests.graph.models import operators, optimized

MOVED = """g (float[6,4] x, bool[6] k) => (float[a] y)
    { some = Compress<axis=0>(x, k) part = Relu(some) where = NonZero(part)
      rows = Transpose<perm=[1,0]>(where) y = GatherND(x, rows) }"""


def test_only_messages_look_for_the_inputs_that_decide(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The way back to them is as long as the graph."""
    asked: list[Sequence[ir.Value | None]] = []
    found = types.integer_sources

    def noted(values: Sequence[ir.Value | None]) -> tuple[str, ...]:
        asked.append(values)
        return found(values)

    monkeypatch.setattr(types, "integer_sources", noted)
    graph = optimized(MOVED)
    assert "GatherND" in operators(graph)
    assert not asked


def test_the_inputs_that_decide_are_found() -> None:
    graph = optimized("""g (float[6,4] x, bool[6] k) => (float[a,4] y)
        { some = Compress<axis=0>(x, k) y = Relu(some) }""")
    (count,) = counts_of(graph.outputs[0]).values()
    assert count.most == 6
    assert count.sources == ("k",)
