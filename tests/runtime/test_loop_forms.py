"""Every form of a loop over vectors under qemu: one file at every vector length."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from onnx import parser

from nanoloom.api.program import Program
from nanoloom.cache import Cache
from nanoloom.compile_program import compile
from nanoloom.options import CompileOptions
from nanoloom.runtime.emulation import machine, run_emulated
from nanoloom.target.tail_forms import FORMS, MASKED_REMAINDER, VECTOR_LENGTH
from tests.c_libraries import lend

EPSILON = float(np.finfo(np.float32).eps)
# Sizes that no vector divides, and one shorter than any.
M, K, N, LITTLE = 7, 45, 531, 3
MODEL = f"""
<ir_version: 10, opset_import: ["": 21]>
forms (float[{M}, {N}] x, float[{N}] b, float[{M}, {K}] u, float[{K}, {N}] w,
       int8[{M}, {N}] q, int8[{N}] l, double[{M}, {LITTLE}] d)
    => (float[{M}, {N}] y, float[{M}] s, float[{M}] m, float[{M}, {N}] p,
        float[{M}, {N}] z, int8[{M}, {N}] r, double[{M}] t,
        float[{N}, {M}] e)
{{
    axes = Constant<value_ints = [1]>()
    g = Add(x, b)
    y = Mul(g, x)
    c = Mul(x, x)
    s = ReduceSum<keepdims = 0>(c, axes)
    m = ReduceMax<keepdims = 0>(x, axes)
    p = Softmax(x)
    z = MatMul(u, w)
    r = Max(q, l)
    t = ReduceSum<keepdims = 0>(d, axes)
    e = Transpose<perm = [1, 0]>(x)
}}
"""
LENGTHS = {
    "riscv64+v": (":vlen=128", ":vlen=256", ":vlen=1024"),
    "aarch64+sve": (":sve=128", ":sve=512", ":sve=2048"),
}
CASES = [
    (name, form)
    for name in LENGTHS
    for form in FORMS
    if form != MASKED_REMAINDER  # as everything else is compiled
    and (form != VECTOR_LENGTH or name == "riscv64+v")
]
Arrays = dict[str, np.ndarray]


def arrays() -> Arrays:
    rng = np.random.default_rng(5)
    shapes = {"x": (M, N), "b": (N,), "u": (M, K), "w": (K, N)}
    made: Arrays = {}
    for name, shape in shapes.items():
        made[name] = rng.standard_normal(shape).astype(np.float32)
    made["q"] = rng.integers(-128, 128, (M, N)).astype(np.int8)
    made["l"] = rng.integers(-128, 128, N).astype(np.int8)
    return made | {"d": rng.standard_normal((M, LITTLE))}


def expected(v: Arrays) -> dict[str, tuple[np.ndarray, np.ndarray | float]]:
    """Each output in float64 or exactly, and how far rounding may lead from it."""
    x, b, u, w = (v[name].astype(np.float64) for name in "xbuw")
    power = np.exp(x - x.max(1, keepdims=True))
    shares = power / power.sum(1, keepdims=True)
    wide = abs(u) @ abs(w)
    return {
        "y": ((x + b) * x, 3 * EPSILON * (abs(x) + abs(b)) * abs(x)),
        "s": ((x * x).sum(1), (N + 2) * EPSILON * (x * x).sum(1)),
        "m": (x.max(1), 0.0),
        "p": (shares, (N + 8) * EPSILON * shares),
        "z": (u @ w, (K + 2) * EPSILON * wide),
        "r": (np.maximum(v["q"], v["l"]), 0.0),
        "t": (v["d"].sum(1), (LITTLE + 2) * 2.0**-52 * abs(v["d"]).sum(1)),
        "e": (x.T, 0.0),
    }


def agrees(got: Arrays, values: Arrays) -> bool:
    wanted = expected(values)
    assert list(got) == list(wanted)
    return all((abs(got[n] - want) <= far).all() for n, (want, far) in wanted.items())


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., object]:
    folder = tmp_path_factory.mktemp("forms")
    cache = Cache(folder / "cache")

    def built(name: str, form: str) -> tuple[Program, Path]:
        target = machine(name).target
        lend(target.arch, cache)
        formed = replace(target, vector=replace(target.vector, form=form))
        options = CompileOptions(formed)
        model = parser.parse_model(MODEL)
        program = compile(model, options=options, threads=1, cache=cache)
        path = folder / f"{name}-{form.replace(' ', '-')}"
        return program, program.save(path, form="executable")

    return built


@pytest.mark.drawn
@pytest.mark.parametrize(("name", "form"), CASES)
def test_the_numbers_are_right_at_every_length(
    build: Callable[..., tuple[Program, Path]], name: str, form: str
) -> None:
    program, path = build(name, form)
    values = arrays()
    given = [values[x.name] for x in program.inputs]
    kinds = {x.name: x.dtype for x in program.outputs}
    got: Arrays = {}
    for length in LENGTHS[name]:
        got = run_emulated(machine(name + length), path, given, kinds)
        assert agrees(got, values), length
    for output, array in got.items():
        assert not agrees(got | {output: 0 * array}, values)
