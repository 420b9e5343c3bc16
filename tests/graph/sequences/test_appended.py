"""Loops that insert into sequences: as loops with scan outputs, or written out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import parser

import nanoloom
from nanoloom.cache import Cache
from nanoloom.compiler import optimized
from nanoloom.frontend.onnx import load
from nanoloom.frontend.symbolic_dims import bind
from nanoloom.options import CompileOptions
from nanoloom.target.host import host

X = np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)


def model(trips: str, inserted: str, after: str, start: str = "") -> str:
    return f"""<ir_version: 10, opset_import: ["" : 18]>
    g (float[3, 4] x, int64 k) => (float[?] y) {{
        trips = Constant <value = int64 {{{trips or 0}}}> ()
        first = Constant <value = int64 {{0}}> ()
        {start or "s = SequenceEmpty ()"}
        t, z = Loop ({"trips" if trips else "k"}, , s, x) <
            body = b (int64 i, bool before, seq(float[3, 4]) q, float[3, 4] u)
                => (bool after, seq(float[3, 4]) r, float[3, 4] v) {{
                after = Identity (before)
                v = Add (u, x)
                r = {inserted}
            }}>
        {after}
    }}"""


def rows(trips: int) -> list[np.ndarray]:
    found, u = list[np.ndarray](), X
    for _ in range(trips):
        u = u + X
        found.append(u)
    return found


@pytest.mark.drawn
@pytest.mark.parametrize("trips", ["5", ""])
@pytest.mark.parametrize("new", [0, 1])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_joined(trips: str, new: int, axis: int, tmp_path: Path) -> None:
    after = f"y = ConcatFromSequence <axis = {axis}, new_axis = {new}> (t)"
    text = model(trips, "SequenceInsert (q, v)", after)
    program = nanoloom.compile(parser.parse_model(text), cache=Cache(tmp_path))
    made = program(
        {"x": X, "k": np.array(5)} if not trips else {"x": X, "k": np.array(1)}
    )
    whole = np.stack if new else np.concatenate
    assert np.array_equal(made["y"], whole(rows(5), axis))


def test_it_stays_a_loop() -> None:
    text = model("100", "SequenceInsert (q, v)", "y = SequenceAt (t, k)")
    bound = bind(load(parser.parse_model(text)), {})
    graph = optimized(bound, CompileOptions(host())).graph
    assert [n.op_type for n in graph if n.op_type in ("Loop", "Add")] == ["Loop"]


OTHERS = {
    "SequenceInsert (q, v, first)": (lambda r: r[::-1], "s = SequenceEmpty ()"),
    "SequenceInsert (q, v)": (lambda r: [X, *r], "s = SequenceConstruct (x)"),
}


@pytest.mark.parametrize("inserted", OTHERS)
def test_written_out(inserted: str, tmp_path: Path) -> None:
    order, start = OTHERS[inserted]
    text = model("3", inserted, "y = ConcatFromSequence <axis = 0> (t)", start)
    program = nanoloom.compile(parser.parse_model(text), cache=Cache(tmp_path))
    made = program({"x": X, "k": np.array(0)})["y"]
    assert np.array_equal(made, np.concatenate(order(rows(3))))
