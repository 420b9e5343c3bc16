"""Products under qemu: attention, batches, doubles, a weight; vectors of any width."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper, parser

from nanoloom.cache import Cache
from nanoloom.compile_program import compile
from nanoloom.options import CompileOptions
from nanoloom.runtime.emulation import machine, run_emulated
from tests.c_libraries import lend

# Sizes that no vector divides, and products that one vector of 1024 bits covers.
MODEL = """
<ir_version: 10, opset_import: ["": 21]>
products (float[2, 37, 19] q, float[2, 19, 41] k, float[2, 41, 23] v,
          double[29, 61] a, double[61, 131] b, float[3, 7, 11] c, float[3, 11, 300] d,
          float[29, 43] e)
   => (float[2, 37, 23] y, double[29, 131] s, float[3, 7, 300] t, float[29, 37] u)
{
    scores = MatMul(q, k)
    p = Softmax(scores)
    y = MatMul(p, v)
    s = MatMul(a, b)
    t = MatMul(c, d)
    u = MatMul(e, w)
}
"""
LENGTHS = {
    "riscv64+v": (":vlen=128", ":vlen=512", ":vlen=1024"),
    "aarch64": ("",),
    "aarch64+sve": (":sve=128", ":sve=512", ":sve=2048"),
    "powerpc64le": ("",),
}
Arrays = dict[str, np.ndarray]


def arrays() -> Arrays:
    rng = np.random.default_rng(5)
    shapes = {"q": (2, 37, 19), "k": (2, 19, 41), "v": (2, 41, 23), "c": (3, 7, 11)}
    shapes |= {"d": (3, 11, 300), "a": (29, 61), "b": (61, 131), "e": (29, 43)}
    kinds = {"a": np.float64, "b": np.float64}
    return {
        name: rng.standard_normal(shapes[name]).astype(kinds.get(name, np.float32))
        for name in "qkvabcde"
    }


def weight() -> np.ndarray:
    """Of a product that a program has in panels, where vectors have one width."""
    return np.random.default_rng(7).standard_normal((43, 37)).astype(np.float32)


def model() -> onnx.ModelProto:
    made = parser.parse_model(MODEL)
    made.graph.initializer.append(numpy_helper.from_array(weight(), "w"))
    return made


def expected(given: Arrays) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Each output in float64 or wider, and how far rounding may lead from it.

    A sum of K products is within (K + 2) eps of the sum of their sizes.  An exp of a
    score that is off by d is off by a part d of itself, as its sum of 41 is by as much
    again and its own rounding.
    """
    wide = {name: array.astype(np.longdouble) for name, array in given.items()}
    q, k, v, a, b, c, d, e = (wide[name] for name in "qkvabcde")
    w = weight().astype(np.longdouble)
    one, half = (float(np.finfo(kind).eps) for kind in (np.float32, np.float64))
    scores = q @ k
    off = (19 + 2) * one * (abs(q) @ abs(k))
    power = np.exp(scores - scores.max(-1, keepdims=True))
    shares = power / power.sum(-1, keepdims=True)
    part = 4 * off.max(-1, keepdims=True) + (41 + 16) * one
    bound = (part + (41 + 2) * one) * shares @ abs(v)
    return {
        "y": (shares @ v, bound),
        "s": (a @ b, (61 + 2) * half * (abs(a) @ abs(b))),
        "t": (c @ d, (11 + 2) * one * (abs(c) @ abs(d))),
        "u": (e @ w, (43 + 2) * one * (abs(e) @ abs(w))),
    }


@pytest.mark.drawn(one_in=4, kind=lambda name: "+" in name)
@pytest.mark.parametrize("name", LENGTHS)
def test_one_file_at_every_length(name: str, tmp_path: Path) -> None:
    given, cache = arrays(), Cache(tmp_path / "cache")
    target = machine(name).target
    lend(target.arch, cache)
    program = compile(model(), options=CompileOptions(target), cache=cache)
    path = program.save(tmp_path / name, form="executable")
    inputs = [given[x.name] for x in program.inputs]
    kinds = {x.name: x.dtype for x in program.outputs}
    for length in LENGTHS[name]:
        got = run_emulated(machine(name + length), path, inputs, kinds)
        for output, (want, bound) in expected(given).items():
            assert (abs(got[output] - want) <= bound).all(), (length, output)
            wrong = np.roll(got[output], 1, axis=-1)
            assert not (abs(wrong - want) <= bound).all()
