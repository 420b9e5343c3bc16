"""Products with what is fused into them, against float64 and ONNX Runtime."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from nanoloom.errors import Unsupported
from tests.frontend.microsoft.single import both, check, floats, run

Array = np.ndarray
FORMULAS: dict[str, tuple[list[float], Callable[[Array], Array]]] = {
    "Relu": ([], lambda x: np.maximum(x, 0)),
    "Sigmoid": ([], lambda x: 1 / (1 + np.exp(-x))),
    "Tanh": ([], np.tanh),
    "LeakyRelu": ([0.25], lambda x: np.where(x < 0, 0.25 * x, x)),
    "HardSigmoid": ([0.25, 0.5], lambda x: np.clip(0.25 * x + 0.5, 0, 1)),
    "Clip": ([-0.5, 0.75], lambda x: np.clip(x, -0.5, 0.75)),
}


@pytest.mark.drawn
@pytest.mark.parametrize("turned", range(4))
@pytest.mark.parametrize("batch", range(4))
@pytest.mark.parametrize("name", ["FusedMatMul"])
def test_transposed(turned: int, batch: int, name: str) -> None:
    random = np.random.default_rng(4 * turned + batch)
    a, b = floats(random, 3, 2, 7, 5), floats(random, 3, 2, 5, 4)
    given: list[Array] = []
    for index, x in enumerate((a, b)):
        if turned >> index & 1:
            x = x.swapaxes(-1, -2)
        if batch >> index & 1:
            x = x.transpose(2, 0, 1, 3)
        given.append(np.ascontiguousarray(x))
    attributes = {
        "transA": turned & 1, "transB": turned >> 1,
        "transBatchA": batch & 1, "transBatchB": batch >> 1,
    }  # fmt: skip
    ours, theirs = both(name, given, alpha=0.25, opset=12, **attributes)
    exact = 0.25 * (a.astype(np.float64) @ b)
    check((ours[0], theirs[0]), exact, 7, abs(a) @ abs(b))


@pytest.mark.parametrize(
    "shapes", [((5,), (5, 4)), ((3, 5), (5,)), ((2, 3, 5), (5, 4))]
)
def test_vectors_are_not_transposed(shapes: tuple[tuple[int, ...], ...]) -> None:
    random = np.random.default_rng(len(shapes[0]))
    a, b = (floats(random, *shape) for shape in shapes)
    ours, theirs = both("FusedMatMul", [a, b])
    check((ours[0], theirs[0]), a.astype(np.float64) @ b, 7, abs(a) @ abs(b))


@pytest.mark.parametrize("name", ["Relu", "LeakyRelu", "HardSigmoid", "Tanh"])
@pytest.mark.parametrize("biased", [True, False])
def test_gemm(name: str, biased: bool) -> None:
    random = np.random.default_rng(len(name))
    a, b, c = floats(random, 5, 3), floats(random, 4, 5), floats(random, 4)
    numbers, formula = FORMULAS[name]
    named = dict(zip(("activation_alpha", "activation_beta"), numbers, strict=False))
    ours, theirs = both(
        "FusedGemm", [a, b, c] if biased else [a, b], transA=1, transB=1, alpha=0.5,
        beta=2.0, activation=name, **named,
    )  # fmt: skip
    product = a.T.astype(np.float64) @ b.T
    exact = formula(0.5 * product + (2 * c if biased else 0))
    check((ours[0], theirs[0]), exact, 20, abs(a.T) @ abs(b.T) + 2 * abs(c) + 1)


@pytest.mark.parametrize("name", FORMULAS)
@pytest.mark.parametrize("added", [True, False])
def test_convolution(name: str, added: bool) -> None:
    random = np.random.default_rng(len(name))
    x, w, bias = (
        floats(random, 1, 4, 7, 5),
        floats(random, 6, 2, 3, 3),
        floats(random, 6),
    )
    z = floats(random, 1, 6, 7, 5) if added else None
    numbers, formula = FORMULAS[name]
    ours, theirs = both(
        "FusedConv", [x, w, bias, z], group=2, pads=[1, 1, 1, 1], activation=name,
        activation_params=numbers or None, opset=11,
    )  # fmt: skip
    exact, size = convolved(x, w), convolved(abs(x), abs(w))
    exact = formula(exact + bias[:, None, None] + (0 if z is None else z))
    check((ours[0], theirs[0]), exact, 30, size + abs(bias[:, None, None]) + 4)


def convolved(x: Array, w: Array) -> Array:
    """Of 3 x 3 taps, two groups, a border of one."""
    wide = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(wide, (3, 3), (2, 3))
    parts = [
        np.einsum(
            "nchwij,ocij->nohw", windows[:, 2 * g : 2 * g + 2], w[3 * g : 3 * g + 3]
        )
        for g in range(2)
    ]
    return np.concatenate(parts, 1)


@pytest.mark.parametrize("name", ["NhwcFusedConv", "NhwcConv"])
def test_channels_last(name: str) -> None:
    """ONNX Runtime has no code for them in float32 on CPUs."""
    random = np.random.default_rng(5)
    x, w, bias = (
        floats(random, 1, 4, 7, 5),
        floats(random, 6, 2, 3, 3),
        floats(random, 6),
    )
    fused = {"activation": "Relu"} if name == "NhwcFusedConv" else {}
    images = np.ascontiguousarray(x.transpose(0, 2, 3, 1))
    (got,) = run(name, [images, w, bias], group=2, pads=[1, 1, 1, 1], **fused)
    exact = convolved(x, w) + bias[:, None, None]
    exact = (np.maximum(exact, 0) if fused else exact).transpose(0, 2, 3, 1)
    size = convolved(abs(x), abs(w)).transpose(0, 2, 3, 1) + abs(bias)
    check((got, got), exact, 30, size)


def test_an_unknown_activation_is_refused() -> None:
    x, w = np.zeros((1, 1, 3, 3), np.float32), np.zeros((1, 1, 1, 1), np.float32)
    with pytest.raises(Unsupported) as caught:
        run("FusedConv", [x, w], activation="Wave")
    wanted = "node tested (com.microsoft::FusedConv): its attribute activation = Wave"
    assert wanted in str(caught.value)
