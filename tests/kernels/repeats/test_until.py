"""Loops that end when the data say: their bodies are kernels, run trip after trip."""

from __future__ import annotations

import re

import numpy as np
import onnx
import onnx.parser
import onnx_ir
import pytest

import nanoloom
from nanoloom.emit import emit_stage
from nanoloom.options import CompileOptions
from nanoloom.target import by_name
from tests.kernels.repeats.ended_loops import HEAD, drawn, reference
from tests.kernels.repeats.whole import compiled
from tests.vector.kernel_harness import shared_cache

# What ends a loop: its condition, a number of trips, and whether the first one runs.
CALLS = (
    (5, 9, True), (1, 9, True), (0, 3, True), (9, 4, True), (70, 60, True),
    (6, 0, True), (6, -2, True), (6, 9, False),
)  # fmt: skip


@pytest.mark.drawn(one_in=6)
@pytest.mark.parametrize("seed", range(24))
def test_drawn_loops(seed: int) -> None:
    """Any numbers of trips, at one thread and at two, in one program."""
    model, feeds, limited = drawn(seed)
    starts = "start" in [x.name for x in model.graph.input]
    programs = [
        nanoloom.compile(model, threads=n, cache=shared_cache()) for n in (1, 2)
    ]
    shown = 0
    for end, given, start in CALLS:
        full = {**feeds, "end": np.array(end, np.float32)}
        full |= {"given": np.array(given)} if limited else {}
        full |= {"start": np.array(start)} if starts else {}
        wanted = reference(model, full)
        for program in programs:
            for made, right in zip(program(full).values(), wanted, strict=True):
                assert made.dtype == right.dtype
                np.testing.assert_array_equal(made, right)
        shown += sum(np.count_nonzero(x) for x in wanted)
    assert shown > 0, "zeros must not pass"
    assert all(len(program.variants) == 1 for program in programs)


PRODUCTS = """products (float[33,40] x, float[40,40] w, float end) => (
    float[33,40] y, float[n] tops) {
  zero = Constant<value_float = 0.0>()  go = Constant<value = bool {1}>()
  n, y, tops = Loop (, go, zero, x) <
    body = step (int64 i, bool k, float before, float[33,40] v) => (more, n2, u, top) {
      one = Constant<value_float = 1.0>()  seven = Constant<value_float = 7.0>()
      n2 = Add(before, one)  more = Less(n2, end)
      p = MatMul(v, w)  u = Mod<fmod = 1>(p, seven)  top = ReduceMax<keepdims = 0>(u)
    }>
}"""


def products() -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    random = np.random.default_rng(8)
    feeds = {name: random.integers(-3, 4, shape).astype(np.float32)
             for name, shape in (("x", (33, 40)), ("w", (40, 40)))}  # fmt: skip
    return onnx.parser.parse_model(HEAD + PRODUCTS), feeds


def test_ten_thousand_trips() -> None:
    model, feeds = products()
    program = nanoloom.compile(model, threads=1, cache=shared_cache())
    for end in (10_000, 3):
        full = {**feeds, "end": np.array(end, np.float32)}
        wanted = reference(model, full)
        for made, right in zip(program(full).values(), wanted, strict=True):
            np.testing.assert_array_equal(made, right)
        assert wanted[1].shape == (end,) and wanted[1].any()


def emitted(model: onnx.ModelProto, stage: str, target: str) -> str:
    texts: list[str] = []
    ending = CompileOptions(by_name(target))
    emit_stage(
        onnx_ir.from_proto(model), stage, ending, lambda *given: texts.append(given[-1])
    )
    return "\n".join(texts)


def bounded() -> onnx.ModelProto:
    """The same with a number of trips, which gives its scan outputs room."""
    text = PRODUCTS.replace("Loop (, go", "Loop (m, go")
    text = text.replace("zero = Con", "m = Constant<value_int = 300>()  zero = Con", 1)
    return onnx.parser.parse_model(HEAD + text)


def test_a_body_is_cut_into_kernels() -> None:
    """The product is one of them, behind it what a trip shows and what ends it."""
    text = emitted(bounded(), "kernels", "x86-64-v3").partition("// calls in order")[2]
    head, _, behind = text.partition("// at most 300 times, as long as arena")
    assert "contraction" not in head
    inside = [line for line in behind.splitlines() if line.startswith("//   ")]
    assert sum("contraction_f32_33x40x40" in line for line in inside) == 1
    assert sum("output1 +4" in line for line in inside) == 1


def test_a_body_is_vectors() -> None:
    text = emitted(bounded(), "asm", "x86-64-v3")
    assert len(re.findall(r"\bvfmadd\d+ps\t.*%ymm", text)) > 20


@pytest.mark.parametrize("given", [0, 1, 6, 7])
def test_what_stands_behind_finds_the_last_state(given: int) -> None:
    """Whether it lies in the first of its two places or in the other."""
    text = """behind (int64 m, int64[21] a, int64[21] b) => (
        int64[21] s, int64[21] t, int64[21] u) {
      go = Constant<value = bool {1}>()
      x, y = Loop (m, go, a, b) <
        body = one (int64 i, bool k, int64[21] p, int64[21] q) => (k2, q2, r) {
          k2 = Identity(k)  q2 = Identity(q)  r = Add(p, q) }>
      s, t = Loop (m, go, y, x) <
        body = two (int64 i, bool k, int64[21] p, int64[21] q) => (k2, q2, r) {
          k2 = Identity(k)  q2 = Identity(q)  r = Sub(p, q) }>
      u = Add(x, y)
    }"""
    model = onnx.parser.parse_model(HEAD + text)
    feeds = {"m": np.array(given), "a": np.arange(1, 22), "b": np.arange(5, 26)}
    for made, right in zip(
        compiled(model, feeds), reference(model, feeds), strict=True
    ):
        np.testing.assert_array_equal(made, right)
        assert right.any()


def test_a_bad_index_in_a_trip_is_told_of() -> None:
    text = """indices (int64[9] x, int64 place, int64 end) => (int64 sum) {
      zero = Constant<value_int = 0>()  go = Constant<value = bool {1}>()
      n, sum = Loop (, go, zero, zero) <
        body = step (int64 i, bool k, int64 before, int64 s) => (more, n2, s2) {
          one = Constant<value_int = 1>()  n2 = Add(before, one)  more = Less(n2, end)
          at = Add(place, i)  found = Gather(x, at)  s2 = Add(s, found) }>
    }"""
    model = onnx.parser.parse_model(HEAD + text)
    program = nanoloom.compile(model, cache=shared_cache())
    feeds = {"x": np.arange(9), "place": np.array(2), "end": np.array(7)}
    assert program(feeds)["sum"] == sum(range(2, 9))
    with pytest.raises(nanoloom.InputError, match=r"\(Gather\): index 9 is outside"):
        program({**feeds, "end": np.array(8)})
    assert program(feeds)["sum"] == sum(range(2, 9))
