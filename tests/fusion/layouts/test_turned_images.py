"""Images with channels first are turned for products that read them often."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nanoloom
from nanoloom.compiler import partition_model
from nanoloom.frontend.onnx import load
from nanoloom.options import CompileOptions
from nanoloom.report import Report
from nanoloom.target import by_name
from tests.linalg.bounds import sample
from tests.linalg.single import model_of
from tests.vector.kernel_harness import shared_cache

AVX2, AVX512 = "x86-64-v3", "cascadelake"
Model = tuple[Any, dict[str, np.ndarray]]


def layer(channels: int, size: int, features: int, side: int, stride: int = 1) -> Model:
    shapes = (1, channels, size, size), (features, channels, side, side)
    arrays = [sample(i, shape, "float32") for i, shape in enumerate(shapes)]
    return model_of("Conv", arrays, {"strides": [stride] * 2}, constants=(1,))


def turns(model: Any, target: str) -> bool:
    """Whether a product reads an image that has been turned: channels are last."""
    options = CompileOptions(by_name(target), exact_conv=True)
    program = partition_model(load(model), options, Report())
    (product,) = (k.nest for k in program.kernels.values() if k.nest.products)
    (sums,) = product.products
    return sums.reads[0].plain[-1] == sums.names[-1]


@pytest.mark.parametrize("target", [AVX2, AVX512])
@pytest.mark.parametrize(
    "sizes", [(1024, 17, 256, 1), (768, 28, 256, 1), (192, 71, 192, 3, 2)]
)
def test_many_channels_are_turned(sizes: tuple[int, ...], target: str) -> None:
    """A line of each channel for every tile: more than the first-level cache has."""
    assert turns(layer(*sizes)[0], target)


@pytest.mark.parametrize("target", [AVX2, AVX512])
@pytest.mark.parametrize(
    "sizes",
    [(1024, 17, 24, 1), (40, 33, 112, 2, 2), (3, 57, 64, 3, 2)],
)
def test_few_channels_or_features_are_not(sizes: tuple[int, ...], target: str) -> None:
    """Their lines stay in the first-level cache, or are read for a panel or two."""
    assert not turns(layer(*sizes)[0], target)


def test_the_wider_panel_reads_an_image_less_often() -> None:
    model = layer(128, 29, 64, 2, 2)[0]
    assert turns(model, AVX2) and not turns(model, AVX512)


@pytest.mark.parametrize(
    "sizes", [(131, 17, 137, 3, 2), (263, 9, 149, 1), (98, 15, 201, 2, 2)]
)
def test_the_numbers_of_a_turned_image(sizes: tuple[int, ...]) -> None:
    model, feeds = layer(*sizes)
    assert turns(model, AVX2)
    options = CompileOptions(by_name(AVX2), exact_conv=True)
    cache = shared_cache()
    made = nanoloom.compile(model, options=options, threads=2, cache=cache)
    (got,) = made(feeds).values()
    channels, _, features, side, stride = (*sizes, 1)[:5]
    x = feeds["x0"].astype(np.float64)
    w = sample(1, (features, channels, side, side), "float32").astype(np.float64)
    seen = np.lib.stride_tricks.sliding_window_view(x, (side, side), (2, 3))
    seen = seen[:, :, ::stride, ::stride]
    exact = np.einsum("nchwij,fcij->nfhw", seen, w)
    bound = np.einsum("nchwij,fcij->nfhw", abs(seen), abs(w))
    bound *= (channels * side * side + 2) * np.finfo(np.float32).eps
    assert got.shape == exact.shape
    assert (abs(got - exact) <= bound).all()
    assert not (abs(0 * got - exact) <= bound).all()
