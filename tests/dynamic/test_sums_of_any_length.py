"""Products that are summed over a size: nothing of it is copied to a known depth."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from onnx import parser

from nanoloom.cache import Cache
from nanoloom.compile_program import compile
from nanoloom.dynamic.dynamic_refusal import NotDynamic
from nanoloom.kernels.sized_kernel import with_samples
from nanoloom.model.binding import OpenBinding
from nanoloom.nest.nest import LoopNest
from nanoloom.options import CompileOptions
from nanoloom.target import by_name

# Columns that no vector divides: each of them would be copied for a known depth.
PRODUCT = """
<ir_version: 10, opset_import: ["": 21]>
product ({kind}[b, k, 35] x, {kind}[b, n, k] p) => ({result}[b, n, 35] y)
{{ y = {word}(p, x) }}
"""
# Heads of 11 numbers: both products of an attention are one kernel.
ATTENTION = """
<ir_version: 10, opset_import: ["": 21]>
attention (float16[b, n, 44] x) => (float16[b, n, 44] y)
{
    apart = Constant<value_ints = [0, 0, 4, 11]>()
    whole = Constant<value_ints = [0, 0, 44]>()
    heads = Reshape(x, apart)
    q = Transpose<perm = [0, 2, 1, 3]>(heads)
    k = Transpose<perm = [0, 2, 3, 1]>(heads)
    scores = MatMul(q, k)
    p = Softmax(scores)
    mixed = MatMul(p, q)
    t = Transpose<perm = [0, 2, 1, 3]>(mixed)
    y = Reshape(t, whole)
}
"""
EPSILON = float(np.finfo(np.float32).eps)
TARGETS = ("x86-64-v2", "x86-64-v3", "sapphirerapids", "aarch64", "aarch64+sme")
KINDS = ("float", "float16", "bfloat16", "int8")


def product(kind: str) -> str:
    word = "MatMulInteger" if kind == "int8" else "MatMul"
    return PRODUCT.format(
        kind=kind, result="int32" if kind == "int8" else kind, word=word
    )


@pytest.mark.drawn
@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("text", [*map(product, KINDS), ATTENTION], ids=[*KINDS, "att"])
def test_one_program_for_all_targets(name: str, text: str, tmp_path: Path) -> None:
    options = CompileOptions(by_name(name))
    model = parser.parse_model(text)
    made = compile(model, options=options, cache=Cache(tmp_path)).open
    assert made.to_link() is not None, made.reason


@pytest.mark.parametrize("kind", KINDS)
def test_numbers(kind: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    numpy = {"float": "float32", "bfloat16": ml_dtypes.bfloat16}.get(kind, kind)
    digits = {"float": 24, "float16": 11, "bfloat16": 8, "int8": 64}[kind]
    program = compile(parser.parse_model(product(kind)), cache=Cache(tmp_path))
    for b, n, k in ((1, 1, 1), (2, 7, 5), (3, 37, 131)):
        p = (rng.standard_normal((b, n, k)) * 20).astype(numpy)
        x = (rng.standard_normal((b, k, 35)) * 20).astype(numpy)
        y = program({"x": x, "p": p})["y"].astype(np.float64)
        p, x = p.astype(np.float64), x.astype(np.float64)
        exact, sums = p @ x, (k + 2) * EPSILON * (abs(p) @ abs(x))
        bound = sums + 2.0**-digits * (abs(exact) + sums)
        bound *= kind != "int8"
        assert (abs(y - exact) <= bound).all()
        assert not (abs(0 * y - exact) <= bound).all()
    assert not program.open.reason


def test_attention_of_halves(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    program = compile(parser.parse_model(ATTENTION), cache=Cache(tmp_path))
    for b, n in ((1, 1), (2, 7), (1, 67)):
        x = rng.standard_normal((b, n, 44)).astype(np.float16)
        q = x.astype(np.float64).reshape(b, n, 4, 11).transpose(0, 2, 1, 3)
        power = np.exp(q @ q.swapaxes(2, 3))
        mixed = power / power.sum(3, keepdims=True) @ q
        want = mixed.transpose(0, 2, 1, 3).reshape(b, n, 44)
        # Scores up to `most` are rounded to 11 bits, which moves a power as far.
        most = abs(q @ q.swapaxes(2, 3)).max()
        bound = 2.0**-11 * (most + 4) * 2 * abs(x).max()
        y = program({"x": x})["y"].astype(np.float64)
        assert (abs(y - want) <= bound).all()
        assert not (abs(0 * y - want) <= bound).all()
    assert not program.open.reason


def test_a_nest_knows_which_axes_are_samples(tmp_path: Path) -> None:
    nests: list[LoopNest] = []
    for dims in ({"b": 3, "n": 7, "k": 5}, {"b": 3, "n": 9, "k": 11}):
        model = parser.parse_model(product("float"))
        program = compile(model, dims=dims, cache=Cache(tmp_path))
        nests += program.nests().values()
    (stage,) = with_samples(nests).products
    assert [axis.is_sample for axis in stage.axes] == [False, True, False, True]
    assert with_samples(nests[:1]) == nests[0]


def test_a_refusal_that_is_remembered_is_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []

    def differs(binding: OpenBinding) -> None:
        calls.append(binding.name)
        raise NotDynamic("in spirit")

    monkeypatch.setattr(OpenBinding, "to_link", differs)
    for _ in range(2):
        made = compile(parser.parse_model(product("float")), cache=Cache(tmp_path)).open
        assert len(made.samples) > 1
        assert made.to_link() is None
        assert made.reason == "in spirit"
        assert len(calls) == 1
