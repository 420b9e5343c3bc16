"""What reaches a target by plain ways, under qemu: narrow numbers, functions, rows."""

from __future__ import annotations

import math
import re
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import parser

from nanoloom.cache import Cache
from nanoloom.compile_program import compile
from nanoloom.options import CompileOptions
from nanoloom.runtime.emulation import machine, run_emulated
from nanoloom.target import TARGETS
from tests.c_libraries import lend

# Sizes that no vector divides.
MODEL = """
<ir_version: 10, opset_import: ["": 21]>
kinds (float16[7, 35] a, float16[35, 19] b, bfloat16[7, 35] c, bfloat16[35, 19] d,
       int8[7, 35] e, int8[35, 19] f, float[9, 37] x, float[37] s, float[37] t,
       float[1, 6, 11, 9] image, float[6, 1, 3, 3] k)
   => (float16[7, 19] halves, bfloat16[7, 19] upper, int32[7, 19] whole,
       float[9, 37] soft, float[9, 37] norm, float[9, 37] math,
       float[1, 6, 11, 9] depth, bfloat16[9, 37] rounded, float[9, 37] even,
       double[9, 37] evens)
{
    halves = MatMul(a, b)
    upper = MatMul(c, d)
    whole = MatMulInteger(e, f)
    soft = Softmax(x)
    norm = LayerNormalization(x, s, t)
    u = Exp(x)
    v = Tanh(x)
    w = Erf(v)
    math = Mul(u, w)
    depth = Conv<group = 6, pads = [1, 1, 1, 1]>(image, k)
    rounded = Cast<to = 16>(x)
    two = Constant<value = float {2.0}>()
    twice = Mul(x, two)
    steps = Round(twice)
    parts = Div(steps, two)
    even = Round(parts)
    wide = Cast<to = 11>(parts)
    evens = Round(wide)
}
"""
EPSILON = float(np.finfo(np.float32).eps)
KINDS = {
    onnx.TensorProto.FLOAT16: np.float16,
    onnx.TensorProto.BFLOAT16: ml_dtypes.bfloat16,
    onnx.TensorProto.INT8: np.int8,
    onnx.TensorProto.FLOAT: np.float32,
}
Arrays = dict[str, np.ndarray]


def arrays() -> Arrays:
    rng, made = np.random.default_rng(3), Arrays()
    for info in parser.parse_model(MODEL).graph.input:
        shape = [d.dim_value for d in info.type.tensor_type.shape.dim]
        kind = KINDS[info.type.tensor_type.elem_type]
        numbers = rng.standard_normal(shape) * (40 if kind is np.int8 else 1)
        made[info.name] = numbers.clip(-127, 127).astype(kind)
    return made


def depthwise(image: np.ndarray, kernel: np.ndarray) -> np.ndarray:
    padded = np.pad(image, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))
    return np.einsum("nchwij,cij->nchw", windows, kernel[:, 0])


def product(x: np.ndarray, y: np.ndarray, digits: int) -> tuple[np.ndarray, np.ndarray]:
    """A product in f32 that is rounded to so many bits, and how far it may be off."""
    exact = x @ y
    sums = (x.shape[1] + 2) * EPSILON * (abs(x) @ abs(y))
    return exact, sums + 2.0**-digits * (abs(exact) + sums)


def expected(v: Arrays) -> dict[str, tuple[np.ndarray, np.ndarray | float]]:
    """Each output in float64, and how far rounding may lead from it."""
    wide = {name: array.astype(np.float64) for name, array in v.items()}
    x, s, t, image, k = (wide[n] for n in ("x", "s", "t", "image", "k"))
    power = np.exp(x - x.max(-1, keepdims=True))
    soft = power / power.sum(-1, keepdims=True)
    apart = x - x.mean(-1, keepdims=True)
    scaled = apart / np.sqrt((apart**2).mean(-1, keepdims=True) + 1e-5) * s
    # Both means are sums of 37, of numbers as large as the row's largest.
    row = (37 + 8) * EPSILON * abs(x).max(-1, keepdims=True) * 2
    u, w = np.exp(x), np.vectorize(math.erf)(np.tanh(x))
    return {
        "halves": product(wide["a"], wide["b"], 11),
        "upper": product(wide["c"], wide["d"], 8),
        "whole": (v["e"].astype(np.int32) @ v["f"].astype(np.int32), 0.0),
        "soft": (soft, (37 + 16) * EPSILON * soft),
        "norm": (scaled + t, row * (1 + abs(s) + abs(scaled)) + EPSILON * abs(t)),
        "math": (u * w, 16 * EPSILON * abs(u * w)),
        "depth": (depthwise(image, k), 11 * EPSILON * depthwise(abs(image), abs(k))),
        "rounded": (v["x"].astype(ml_dtypes.bfloat16).astype(np.float64), 0.0),
        # Halves among them: they go to the even neighbour.
        "even": (np.round(np.round(2 * v["x"]) / 2), 0.0),
        "evens": (np.round(np.round(2 * v["x"]) / 2), 0.0),
    }


@pytest.mark.parametrize("name", ["powerpc64le", "power10", "x86-64-v1"])
def test_every_kind_of_numbers(name: str, tmp_path: Path) -> None:
    given, cache, where = arrays(), Cache(tmp_path / "cache"), machine(name)
    lend(where.target.arch, cache)
    options = CompileOptions(where.target)
    program = compile(parser.parse_model(MODEL), options=options, cache=cache)
    path = program.save(tmp_path / "kinds", form="executable")
    kinds = {x.name: x.dtype for x in program.outputs}
    got = run_emulated(where, path, [given[x.name] for x in program.inputs], kinds)
    for output, (want, bound) in expected(given).items():
        found = got[output].astype(np.float64)
        assert (abs(found - want) <= bound).all(), output
        assert not (abs(np.roll(found, 1) - want) <= bound).all(), output


def test_every_target_has_an_emulator() -> None:
    for target in TARGETS:
        words = machine(target.name).command
        assert re.fullmatch(r"qemu-\w+", words[0]) and "{" not in words[2]
