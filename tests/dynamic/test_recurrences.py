"""Recurrences whose steps and batch are sizes: compiled once, right for any of them."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper, parser
from onnx.reference import ReferenceEvaluator

import nanoloom
from nanoloom.cache import Cache
from nanoloom.options import CompileOptions
from nanoloom.target import by_name
from tests.c_libraries import lend
from tests.dynamic import models
from tests.linalg.recurrences import DEFAULTS, FORMULAS, GATES, reference
from tests.linalg.recurrent_cases import check
from tests.vector.kernel_harness import shared_cache

F32 = np.dtype(np.float32)
WIDTH, HIDDEN = 5, 21
# Steps and batch: odd and even numbers of trips end in different places.
SIZES = ((1, 1), (2, 3), (5, 1), (6, 18))
REVERSE = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}


def weights(op: str, directions: int) -> dict[str, np.ndarray]:
    """Small enough that a step does not enlarge errors: sum |R| < 1."""
    random, rows = np.random.default_rng(GATES[op]), GATES[op] * HIDDEN
    made = {
        "w": random.uniform(-1, 1, (directions, rows, WIDTH)),
        "r": random.uniform(-1, 1, (directions, rows, HIDDEN)) / (4 * HIDDEN),
        "b": random.uniform(-1, 1, (directions, 2 * rows)),
    }
    return {name: array.astype(F32) for name, array in made.items()}


def inputs(directions: int, steps: int, batch: int) -> dict[str, np.ndarray]:
    random = np.random.default_rng(steps + 10 * batch)
    shapes = {"x": (steps, batch, WIDTH), "h": (directions, batch, HIDDEN)}
    made = {k: random.uniform(-1, 1, shape).astype(F32) for k, shape in shapes.items()}
    return made | {"lengths": random.integers(0, steps, batch, np.int32, endpoint=True)}


def model(op: str, direction: str) -> onnx.ModelProto:
    """x [steps, batch, 5], lengths [batch] and initial states -> all outputs."""
    count = len(REVERSE[direction])
    float32, int32 = onnx.TensorProto.FLOAT, onnx.TensorProto.INT32
    given = [
        helper.make_tensor_value_info("x", float32, ["steps", "batch", WIDTH]),
        helper.make_tensor_value_info("h", float32, [count, "batch", HIDDEN]),
        helper.make_tensor_value_info("lengths", int32, ["batch"]),
    ]
    outputs = ["y", "last", "cell"][: 3 if op == "LSTM" else 2]
    node = helper.make_node(
        op, ["x", "w", "r", "b", "lengths", "h"], outputs, "layer",
        hidden_size=HIDDEN, direction=direction,
    )  # fmt: skip
    made = [helper.make_tensor_value_info(name, float32, None) for name in outputs]
    held = [numpy_helper.from_array(w, n) for n, w in weights(op, count).items()]
    graph = helper.make_graph([node], "g", given, made, held)
    opsets = [helper.make_opsetid("", 14)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def require_right(
    op: str, direction: str, given: dict[str, np.ndarray], made: dict[str, np.ndarray]
) -> None:
    """Against ONNX's equations in float64, within the bound of the closed programs."""
    reverse = REVERSE[direction]
    functions = [
        [lambda x, n=name: FORMULAS[n](x, 0, 0) for name in DEFAULTS[op]]
        for _ in reverse
    ]
    steps, batch, _ = given["x"].shape
    states = np.zeros((len(reverse), batch, HIDDEN))
    rest = {"c": states, "p": np.zeros((len(reverse), 3 * HIDDEN))}
    arrays = weights(op, len(reverse)) | given | rest
    right = reference(op, functions, reverse, arrays, {}, np.inf)
    got = list(made.values())
    check(got, right[: len(got)], F32, (steps, batch, WIDTH, HIDDEN), 0)


@pytest.mark.drawn
@pytest.mark.parametrize("direction", list(REVERSE))
@pytest.mark.parametrize("op", list(GATES))
def test_every_number_of_steps(op: str, direction: str) -> None:
    """The bits do not depend on the threads, nor on what ran before."""
    whole, cache = model(op, direction), shared_cache()
    one, two = (nanoloom.compile(whole, threads=n, cache=cache) for n in (1, 2))
    for steps, batch in (*SIZES, SIZES[1]):
        given = inputs(len(REVERSE[direction]), steps, batch)
        made, other = one(given), two(given)
        require_right(op, direction, given, made)
        assert all((made[name] == y).all() for name, y in other.items())
    assert not one.open.reason


def test_what_a_trip_takes() -> None:
    """Points of a trip grow with the batch, trips are steps, directions run at once."""
    whole = model("LSTM", "bidirectional")
    program = nanoloom.compile(whole, threads=1, cache=shared_cache())
    table = program.open.compiled("it is looked at").table
    assert table.sizes is not None
    for number, repeat in enumerate(table.repeats):
        points, trips = (
            table.sizes.words[word] for word in (repeat.points_word, repeat.word)
        )
        product = GATES["LSTM"] * HIDDEN * HIDDEN
        for batch in (1, 8):
            found = points.of({"batch": batch, "steps": 9})
            assert batch * product < found < 1.5 * batch * product
        assert trips.of({"batch": 4, "steps": 9}) == 9
        assert repeat.beside == bool(number)
    assert len(table.repeats) == 2


def test_a_length_beyond_the_steps() -> None:
    program = nanoloom.compile(model("GRU", "forward"), threads=1, cache=shared_cache())
    for steps in (3, 8):
        given = inputs(1, steps, 2) | {"lengths": np.array([1, steps + 1], np.int32)}
        with pytest.raises(
            nanoloom.Error, match=rf"{steps + 1} is outside 0\.\.{steps}"
        ):
            program(given)
    assert not program.open.reason


def test_one_size_of_two() -> None:
    """Steps alone, and a batch alone."""
    whole = model("LSTM", "bidirectional")
    for known, name in (({"batch": 2}, "steps"), ({"steps": 4}, "batch")):
        program = nanoloom.compile(whole, threads=1, dims=known, cache=shared_cache())
        for size in (1, 4, 7):
            sizes = {**known, name: size}
            given = inputs(2, sizes["steps"], sizes["batch"])
            require_right("LSTM", "bidirectional", given, program(given))
        assert not program.open.reason and program.open.names == (name,)


def test_saved(tmp_path: Path) -> None:
    """A library and its bounds; the memory for all sizes is there before."""
    dims = {"steps": (1, 6), "batch": (1, 18)}
    program = nanoloom.compile(
        model("LSTM", "bidirectional"), threads=2, dims=dims, cache=Cache(tmp_path)
    )
    loaded = nanoloom.load(program.save(tmp_path / "layer.so"), threads=2)
    assert loaded.inputs[0].shape == ("steps", "batch", WIDTH)
    for steps, batch in SIZES:
        given = inputs(2, steps, batch)
        made = loaded(given)
        require_right("LSTM", "bidirectional", given, made)
        assert all((made[name] == y).all() for name, y in program(given).items())
    with pytest.raises(nanoloom.Error, match="steps is 7, at most 6 was compiled for"):
        loaded(inputs(2, 7, 1))


def test_an_executable_for_another_machine(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache")
    lend("riscv64", cache)
    options = CompileOptions(by_name("riscv64+v"))
    whole = model("RNN", "bidirectional")
    program = nanoloom.compile(whole, options=options, cache=cache)
    file = program.save(tmp_path / "layer", form="executable")
    made = tmp_path / "made"
    made.mkdir()
    for steps, batch in SIZES[1:3]:
        given = inputs(2, steps, batch)
        for name, array in given.items():
            np.save(tmp_path / f"{name}.npy", array)
        machine = ["qemu-riscv64", "-cpu", "rv64,v=true,vlen=256", file]
        files = [tmp_path / f"{name}.npy" for name in given]
        subprocess.run([*machine, *files, "--threads", "2", "-o", made], check=True)
        outputs = {name: np.load(made / f"{name}.npy") for name in ("y", "last")}
        require_right("RNN", "bidirectional", given, outputs)


Reference = Callable[[dict[str, np.ndarray]], Sequence[np.ndarray]]


def require_exact(
    text: str, *sizes: dict[str, int], reference: Reference | None = None
) -> None:
    """Integers, bit by bit as ONNX's reference has them, by one compilation.

    reference: what says so in its place.
    """
    made = parser.parse_model(models.HEAD + text)
    program = nanoloom.compile(made, threads=2, cache=shared_cache())
    for dims in sizes:
        random, given = np.random.default_rng(sum(dims.values())), {}
        for x in made.graph.input:
            shape = [
                d.dim_value or dims[d.dim_param] for d in x.type.tensor_type.shape.dim
            ]
            given[x.name] = random.integers(-9, 9, shape)
        run = reference or (lambda x: ReferenceEvaluator(made).run(None, x))
        right = run(given)
        for got, y in zip(program(given).values(), right, strict=True):
            np.testing.assert_array_equal(got, y)
            assert np.any(y), "zeros must not pass"
    assert not program.open.reason


def test_a_scan() -> None:
    """Of states as wide as a size, over sequences in both directions."""
    require_exact(
        """g (int64[n] s, int64[t, n] x, int64[n, t] z) => (int64[n] e, int64[t, n] o)
        {
            e, o = Scan <num_scan_inputs = 2, scan_input_axes = [0, 1],
                scan_input_directions = [0, 1],
                body = step (int64[n] v, int64[n] row, int64[n] other) => (w, p) {
                    u = Mul(row, other)  w = Sub(u, v)  p = Add(w, row)
                }>(s, x, z)
        }""",
        *({"n": n, "t": t} for n, t in ((1, 1), (3, 2), (40, 5), (17, 12))),
        reference=scanned,
    )


def scanned(given: dict[str, np.ndarray]) -> list[np.ndarray]:
    """The scan above in numpy: ONNX's reference knows no direction but one."""
    state, shown = given["s"], np.zeros_like(given["x"])
    for t, row in enumerate(given["x"]):
        state = row * given["z"][:, -1 - t] - state
        shown[t] = state + row
    return [state, shown]


def test_a_loop_over_a_size() -> None:
    """As many trips as there are rows, less one: none for one row."""
    require_exact(
        """g (int64[t, 7] x, int64[7] a) => (int64[7] e, int64[rest, 7] o)
        {
            go = Constant<value = bool {1}>()
            one = Constant<value_int = 1>()
            zero = Constant<value_int = 0>()
            shape = Shape(x)
            rows = Gather<axis = 0>(shape, zero)
            trips = Sub(rows, one)
            e0, o = Loop (trips, go, a) <
                body = step (int64 i, bool k, int64[7] v) => (k2, w, p) {
                    k2 = Identity(k)  w0 = Mul(v, i)  w = Add(w0, a)  p = Add(w, v)
                }>
            e = Add(a, e0)
        }""",
        *({"t": t} for t in (2, 3, 6)),
    )


def test_a_loop_that_ends_by_itself() -> None:
    text = """g (float[t, 7] x) => (float[t, 7] e)
    {
        go = Constant<value = bool {1}>()
        many = Constant<value_int = 9>()
        limit = Constant<value = float {100.0}>()
        e = Loop (many, go, x) <
            body = step (int64 i, bool k, float[t, 7] v) => (on, w) {
                w = Add(v, v)  top = ReduceMax<keepdims = 0>(w)  on = Less(top, limit)
            }>
    }"""
    made = parser.parse_model(models.HEAD + text)
    program = nanoloom.compile(made, threads=1, cache=shared_cache())
    for rows, first in ((3, 1), (1, 99), (20, 1 / 4)):
        x = np.full((rows, 7), first, np.float32)
        doubled = first * 2.0 ** np.arange(1, 10)
        want = next(n for n in (*doubled, doubled[-1]) if n >= 100 or n == doubled[-1])
        assert program({"x": x})["e"].shape == x.shape
        assert (program({"x": x})["e"] == want).all()
    assert not program.open.reason
