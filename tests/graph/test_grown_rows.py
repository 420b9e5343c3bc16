"""Loops that lengthen tensors: one program, however many trips the data want."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx
import onnx.parser
import onnx_ir
import pytest

import nanoloom
from nanoloom.graph.stage import optimize
from nanoloom.linalg.operators import OPERATORS
from tests.kernels.repeats.ended_loops import HEAD, reference
from tests.vector.kernel_harness import shared_cache

TYPES = {"float": np.float32, "int64": np.int64, "int32": np.int32}


@dataclass(frozen=True)
class Grown:
    """A tensor that every trip adds to: along which axis, and on which side."""

    dtype: str
    shape: tuple[int, ...]
    axis: int
    in_front: bool

    def lines(self, i: int, first: str) -> list[str]:
        """A trip adds what was there first, and its number to it."""
        parts = f"p{i}, g{i}" if self.in_front else f"g{i}, p{i}"
        return [
            f"n{i} = CastLike(trip, {first}) p{i} = Add({first}, n{i})",
            f"h{i} = Concat<axis = {self.axis}>({parts})",
        ]


def drawn(random: np.random.Generator) -> list[Grown]:
    made: list[Grown] = []
    for _ in range(random.integers(1, 4)):
        rank = int(random.integers(1, 5))
        shape = tuple(int(n) for n in random.integers(1, 4, rank))
        axis, dtype = int(random.integers(-rank, rank)), random.choice([*TYPES])
        made.append(Grown(str(dtype), shape, axis, bool(random.integers(2))))
    return made


def model(grown: list[Grown], trips: str, rows: str = "") -> onnx.ModelProto:
    """trips: "given" for an input, "" for none but the condition, or a number.

    rows: the name of an open dimension, that of the first axis of all.
    """
    inputs, formals, outputs, body = ["int64 end"], [], [], []
    inputs += ["int64 given"] if trips == "given" else []
    for i, x in enumerate(grown):
        sizes = [*map(str, x.shape)]
        sizes[0] = rows or sizes[0]
        shape = f"{x.dtype}[{','.join(sizes)}]"
        grows = sizes.copy()
        grows[x.axis] = f"any{i}"
        inputs.append(f"{shape} x{i}")
        formals.append(f"{x.dtype}[{','.join(grows)}] g{i}")
        outputs.append(f"{x.dtype}[{','.join(grows)}] y{i}")
        body += x.lines(i, f"x{i}")
    count, limit = range(len(grown)), trips if trips in ("", "given") else "most"
    constant = f"most = Constant<value_int = {trips}>()" if limit == "most" else ""
    ends = "more = Less(trip, end)" if trips == "" else "more = Identity(k)"
    names = {word: ", ".join(f"{word}{i}" for i in count) for word in "xyh"}
    return onnx.parser.parse_model(f"""{HEAD}
    grown ({", ".join(inputs)}) => ({", ".join(outputs)}) {{
      go = Constant<value = bool {{1}}>() {constant}
      {names["y"]} = Loop({limit}, go, {names["x"]}) <
        body = step (int64 trip, bool k, {", ".join(formals)}) => (more, {names["h"]})
        {{ {" ".join(body)} {ends} }}>
    }}""")


def feeds(
    grown: list[Grown], names: set[str], end: int, rows: int, seed: int
) -> dict[str, np.ndarray]:
    random = np.random.default_rng(seed)
    given = {"end": np.array(end), "given": np.array(end)}
    for i, x in enumerate(grown):
        shape = (rows, *x.shape[1:]) if rows else x.shape
        given[f"x{i}"] = random.integers(-9, 9, shape).astype(TYPES[x.dtype])
    return {name: array for name, array in given.items() if name in names}


@pytest.mark.parametrize("trips", ["given", "", "40"])
@pytest.mark.parametrize("rows", ["", "rows"])
def test_numbers(trips: str, rows: str) -> None:
    """Exact, by ONNX Runtime; more trips than there is room for at first."""
    seed = len(trips) * 2 + len(rows)
    random = np.random.default_rng(seed)
    grown = drawn(random)
    made = model(grown, trips, rows)
    names = {x.name for x in made.graph.input}
    program = nanoloom.compile(made, threads=1, cache=shared_cache())
    shapes: set[int] = set()
    for end in (3, 150, 1, 64):
        number = int(random.integers(1, 6)) if rows else 0
        given = feeds(grown, names, end, number, seed)
        wanted = reference(made, given)
        for found, right in zip(program(given).values(), wanted, strict=True):
            np.testing.assert_array_equal(found, right)
            assert right.any()
        shapes.add(number)
    assert len(program.variants) == len(shapes)


def test_nothing_is_written_out() -> None:
    """Of a thousand trips the body is there once, and its rows are a scan output."""
    graph = onnx_ir.from_proto(
        model([Grown("float", (2, 3), 1, in_front=False)], "1000")
    )
    optimize(graph, OPERATORS.keys())
    (loop,) = [node for node in graph.graph if node.op_type == "Loop"]
    assert loop.outputs[0].shape == onnx_ir.Shape([1000, 2, 3])
    assert graph.graph.outputs[0].shape == onnx_ir.Shape([2, 3003])
    assert len(list(graph.graph)) < 9


def test_no_trip() -> None:
    """What was there before is left."""
    grown = [Grown("int64", (2, 3), 0, in_front=True)]
    program = nanoloom.compile(model(grown, "given"), cache=shared_cache())
    x = np.arange(6).reshape(2, 3)
    for given in (0, 2, -1):
        found = program({"end": np.array(0), "given": np.array(given), "x0": x})
        wanted = [x + i for i in reversed(range(max(given, 0)))]
        assert np.array_equal(found["y0"], np.concatenate([*wanted, x]))


def test_what_is_read_in_the_loop_is_written_out() -> None:
    """A trip that looks at all that was added sees another shape each time."""
    text = f"""{HEAD} read (float[1,2] x) => (float[n,2] y) {{
      go = Constant<value = bool {{1}}>() most = Constant<value_int = 20>()
      axis = Constant<value_ints = [0]>()
      y = Loop(most, go, x) < body = step (int64 i, bool k, float[m,2] g) => (k2, h) {{
        s = ReduceMean(g, axis) h = Concat<axis = 0>(g, s) k2 = Identity(k) }}>
    }}"""
    program = nanoloom.compile(onnx.parser.parse_model(text), cache=shared_cache())
    x = np.array([[1, -2]], np.float32)
    assert np.array_equal(program({"x": x})["y"], np.repeat(x, 21, axis=0))


@pytest.mark.parametrize("parts", ["g, x", "x, g"])
def test_rows_from_outside(parts: str) -> None:
    """A trip adds what the graph around it has, to two tensors the same."""
    text = f"""{HEAD} grown (float[2] x, int64 m) => (float[n] y, float[n] z) {{
      go = Constant<value = bool {{1}}>()
      y, z = Loop(m, go, x, x) <
        body = step (int64 i, bool k, float[a] g, float[b] f) => (k2, h, e)
        {{ h = Concat<axis = 0>({parts}) e = Concat<axis = 0>(f, x) k2 = Identity(k) }}>
    }}"""
    program = nanoloom.compile(onnx.parser.parse_model(text), cache=shared_cache())
    x = np.array([1, -2], np.float32)
    for trips in (3, 0):
        made = program({"x": x, "m": np.array(trips)})
        assert made["y"].tolist() == made["z"].tolist() == [1, -2] * (trips + 1)
