"""Arithmetic, element by element: float64 with bounds, integers exactly."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import onnx_ir
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nanoloom.emit import emit_stage
from nanoloom.errors import Unsupported
from nanoloom.options import CompileOptions
from nanoloom.target import by_name
from tests.drawn_cases import few_examples
from tests.linalg.bounds import (
    FLOATS,
    INTEGERS,
    SHAPES,
    dtype_of,
    sample,
    shapes,
    wide,
    within,
)
from tests.linalg.single import run_node

FUNCTIONS: dict[str, tuple[Callable[..., np.ndarray], float, float]] = {
    "Abs": (np.abs, -4, 4),
    "Acos": (np.arccos, -1, 1),
    "Acosh": (np.arccosh, 1, 9),
    "Asin": (np.arcsin, -1, 1),
    "Asinh": (np.arcsinh, -4, 4),
    "Atan": (np.arctan, -4, 4),
    "Atanh": (np.arctanh, -0.9, 0.9),
    "Ceil": (np.ceil, -4, 4),
    "Cos": (np.cos, -4, 4),
    "Cosh": (np.cosh, -4, 4),
    "Exp": (np.exp, -4, 4),
    "Floor": (np.floor, -4, 4),
    "Log": (np.log, 0.01, 9),
    "Neg": (np.negative, -4, 4),
    "Reciprocal": (np.reciprocal, 0.1, 4),
    "Round": (np.rint, -4, 4),
    "Sign": (np.sign, -4, 4),
    "Sin": (np.sin, -4, 4),
    "Sinh": (np.sinh, -4, 4),
    "Sqrt": (np.sqrt, 0, 9),
    "Tan": (np.tan, -1.2, 1.2),
    "Tanh": (np.tanh, -4, 4),
}
LIBRARY = 4  # roundings that the C library's functions may be off in these ranges


@pytest.mark.drawn
@pytest.mark.parametrize("op", FUNCTIONS)
@pytest.mark.parametrize("name", ["float32", "float64", "float16"])
def test_functions(op: str, name: str) -> None:
    exact, low, high = FUNCTIONS[op]
    x = sample(1, (3, 7), name, low, high)
    (got,) = run_node(op, [x])
    assert got.dtype == x.dtype
    assert within(got, exact(wide(x)), LIBRARY)
    assert not within(0 * got, exact(wide(x)), LIBRARY)


BINARY = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.divide}


@few_examples(15)
@given(st.sampled_from(list(BINARY)), shapes, st.sampled_from(FLOATS), st.booleans())
def test_arithmetic_is_rounded_once(
    op: str, shape: tuple[int, ...], name: str, fixed: bool
) -> None:
    x = sample(2, shape, name)
    y = sample(3, shape[-1:] if shape[-1:] != (1,) else (4,), name, 1, 4)
    (got,) = run_node(op, [x, y], constants=[1] if fixed else [])
    inner = np.float64 if name == "float64" else np.float32
    exact = BINARY[op](x.astype(inner), y.astype(inner)).astype(dtype_of(name))
    np.testing.assert_array_equal(got, exact)


def truncated(a: int, d: int) -> int:
    """a / d towards zero, 0 for d == 0, in numbers without end."""
    size = abs(a) // abs(d) if d else 0
    return -size if (a < 0) != (d < 0) else size


@pytest.mark.parametrize("name", INTEGERS)
def test_integer_division_by_anything(name: str) -> None:
    limits = np.iinfo(name)
    numbers = [limits.min, limits.max, 0, 1, 7, 100]
    numbers += [-1, -7] if limits.min < 0 else []
    x = np.array(numbers, name).reshape(-1, 1)
    y = x.reshape(1, -1)
    with np.errstate(all="ignore"):
        safe = np.where(y == 0, np.ones_like(y), y)
        whole = [[truncated(a, d) for d in y[0].tolist()] for a in x[:, 0].tolist()]
        exact = np.array(whole, object) % (1 << limits.bits)
        exact = exact.astype(np.uint64).astype(name)
        python = np.where(y == 0, np.zeros_like(x), np.mod(x, safe))
        c = np.where(y == 0, np.zeros_like(x), np.fmod(x, safe))
    np.testing.assert_array_equal(run_node("Div", [x, y])[0], exact)
    np.testing.assert_array_equal(run_node("Mod", [x, y])[0], python)
    np.testing.assert_array_equal(run_node("Mod", [x, y], fmod=1)[0], c)


@pytest.mark.parametrize("name", ["int16", "uint16", "int32", "uint32"])
def test_quotients_next_to_whole_ones(name: str) -> None:
    """Products of all sizes, one less and one more: where a float would be rounded."""
    rng, limits = np.random.default_rng(3), np.iinfo(name)
    y = np.exp2(rng.uniform(0, limits.bits - 1.01, 500)).astype(np.int64)
    n = (np.exp2(rng.uniform(0, 1, 500) * np.log2(limits.max / y))).astype(np.int64)
    x = (y * n)[:, None] + np.array([-1, 0, 1])
    x = np.clip(x, limits.min, limits.max)
    (got,) = run_node("Div", [x.astype(name), y[:, None].astype(name)])
    np.testing.assert_array_equal(got, x // y[:, None])
    (got,) = run_node("Mod", [x.astype(name), y[:, None].astype(name)])
    np.testing.assert_array_equal(got, x % y[:, None])


@pytest.mark.parametrize("fixed", [False, True])
def test_vectors_divide_floats_unless_by_a_constant(fixed: bool) -> None:
    """Vectors have no division of integers; of a constant LLVM multiplies."""
    y = "(int32[7, 3] x, int32 y)" if not fixed else "(int32[7, 3] x)"
    head = '<ir_version: 10, opset_import: ["": 21]>'
    known = "y = Constant<value = int32 {7}>() " if fixed else ""
    text = f"{head} g {y} => (int32[7, 3] z) {{ {known}z = Div(x, y) }}"
    graph, found = onnx_ir.from_proto(onnx.parser.parse_model(text)), list[str]()
    options = CompileOptions(by_name("x86-64-v3"))
    emit_stage(graph, "linalg", options, lambda *given: found.append(given[-1]))
    assert ("arith.divf" in "".join(found)) is not fixed
    assert ("arith.divsi" in "".join(found)) is fixed


@pytest.mark.parametrize("name", ["float32", "float64"])
def test_float_mod(name: str) -> None:
    values = [5.5, -5.5, 0.0, -0.0, np.inf, -np.inf, np.nan, 2.25]
    x = np.array(values, name).reshape(-1, 1)
    y = np.array([3.0, -3.0, np.inf, -np.inf, 0.0, np.nan], name).reshape(1, -1)
    with np.errstate(all="ignore"):
        expected = np.mod(x, y)
    (got,) = run_node("Mod", [x, y], version=28)
    np.testing.assert_array_equal(got, expected)
    number = ~np.isnan(expected)
    assert (np.signbit(got) == np.signbit(expected))[number].all()
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(run_node("Mod", [x, y], fmod=1)[0], np.fmod(x, y))


@few_examples(12)
@given(st.sampled_from(["int32", "int64"]), st.sampled_from(["int32", "int64"]))
def test_integer_power_wraps(base: str, exponent: str) -> None:
    x = np.array([0, 1, -1, 2, -3, 7, 123456789], base).reshape(-1, 1)
    y = np.array([0, 1, 2, 3, 5, 31, 40, np.iinfo(exponent).max], exponent)
    bits = np.iinfo(base).bits
    exact = np.array(
        [[pow(a, e, 1 << bits) for e in y.tolist()] for a in x[:, 0].tolist()],
        np.uint64,
    ).astype(base)
    np.testing.assert_array_equal(run_node("Pow", [x, y])[0], exact)
    (got,) = run_node("Pow", [x, np.array(-3, exponent)])
    assert got[:, 0].tolist() == [0, 1, -1, 0, 0, 0, 0]


@pytest.mark.drawn
@pytest.mark.parametrize("exponent", [0.5, 1.0, 2.0, 3.0, 4.0, -1.5, 2.5])
@pytest.mark.parametrize("name", ["float32", "float16", "float64"])
def test_constant_powers(exponent: float, name: str) -> None:
    x = sample(5, (3, 5), name, 0.25, 3)
    y = np.array(exponent, np.float32)
    (got,) = run_node("Pow", [x, y], constants=[1])
    assert within(got, wide(x) ** exponent, LIBRARY)
    assert not within(0 * got, wide(x) ** exponent, LIBRARY)


def test_square_root_power_at_its_ends() -> None:
    """pow(-0, 0.5) is +0 and pow(-inf, 0.5) is inf, also for a constant 0.5."""
    x = np.array([-0.0, 0.0, -np.inf, np.inf, np.nan, -1], np.float32)
    half = np.array(0.5, np.float32)
    for constants in ([1], []):
        (got,) = run_node("Pow", [x, half], constants=constants)
        np.testing.assert_array_equal(got, [0, 0, np.inf, np.inf, np.nan, np.nan])
        assert not np.signbit(got[:4]).any()


@pytest.mark.parametrize(
    ("base", "exponent"),
    [("float32", "int32"), ("int32", "float32"), ("float32", "uint64"),
     ("int64", "float64"), ("bfloat16", "float32")],
)  # fmt: skip
def test_mixed_powers(base: str, exponent: str) -> None:
    x = sample(6, (7, 1), base, 1, 5)
    y = sample(7, (5,), exponent, 0, 4)
    exact = wide(x) ** wide(y)
    (got,) = run_node("Pow", [x, y])
    assert got.dtype == x.dtype
    if got.dtype.kind == "i":
        np.testing.assert_array_equal(got, np.floor(exact + 1e-9).astype(base))
    else:
        assert within(got, exact, LIBRARY)


@few_examples(12)
@given(
    st.sampled_from(["Max", "Min", "Sum", "Mean"]),
    st.integers(1, 4),
    st.sampled_from(FLOATS),
)
def test_variadic(op: str, count: int, name: str) -> None:
    inputs = [sample(i, ((3, 7), (7,), (1, 1), ())[i], name) for i in range(count)]
    together = np.stack(np.broadcast_arrays(*[wide(x) for x in inputs]))
    exact = {"Max": np.max, "Min": np.min, "Sum": np.sum, "Mean": np.mean}[op](
        together, axis=0
    )
    (got,) = run_node(op, inputs)
    assert within(got, exact, 4, abs(together).sum(axis=0))
    assert not within(got + got, exact, 4, abs(together).sum(axis=0))


def test_maximum_keeps_nan() -> None:
    x, y = np.array([np.nan, 1], np.float32), np.array([0, np.nan], np.float32)
    for op in ("Max", "Min"):
        assert np.isnan(run_node(op, [x, y])[0]).all()


@few_examples(12)
@given(
    st.sampled_from(["float32", "bfloat16", "int8", "uint8", "int64"]),
    st.booleans(), st.booleans(), st.booleans(),
)  # fmt: skip
def test_clip(name: str, below: bool, above: bool, fixed: bool) -> None:
    x = sample(8, (3, 7), name, 0, 100)
    low = np.array(20, x.dtype) if below else None
    high = np.array(60, x.dtype) if above else None
    constants = [i for i, t in ((1, low), (2, high)) if t is not None and fixed]
    (got,) = run_node("Clip", [x, low, high], constants=constants, version=13)
    exact = x if low is None else np.maximum(x, low)
    exact = exact if high is None else np.minimum(exact, high)
    np.testing.assert_array_equal(got, exact)


def test_clip_limits_as_attributes() -> None:
    x = sample(9, (5,), "float32")
    (got,) = run_node("Clip", [x], version=6, min=-1.0, max=0.5)
    np.testing.assert_array_equal(got, np.clip(x, np.float32(-1), np.float32(0.5)))


@pytest.mark.parametrize("shape", SHAPES)
def test_every_rank_and_empty(shape: tuple[int, ...]) -> None:
    x = sample(10, shape, "float32")
    (got,) = run_node("Add", [x, x])
    np.testing.assert_array_equal(got, x + x)


def test_old_opsets_broadcast_from_an_axis() -> None:
    x, y = sample(11, (2, 3, 5), "float32"), sample(12, (3,), "float32")
    (got,) = run_node("Mul", [x, y], version=6, broadcast=1, axis=1)
    np.testing.assert_array_equal(got, x * y.reshape(3, 1))
    (got,) = run_node("Mul", [x, x[0, 0]], version=6, broadcast=1)
    np.testing.assert_array_equal(got, x * x[0, 0])


def test_the_error_function_of_integers_is_refused() -> None:
    with pytest.raises(Unsupported, match="not there for int64; cast to float32"):
        run_node("Erf", [np.arange(5)], version=12)
