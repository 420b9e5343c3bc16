"""Layers over padded images, drawn at random, against float64.

Whatever is around an image (a constant, a number that a run gives, the image itself in
three ways), whoever reads it, of known and of open sizes.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

import nanoloom
from nanoloom.options import CompileOptions
from nanoloom.target import by_name
from tests.kernels.test_blocks import levels
from tests.linalg.padded_layers import KINDS, PaddedLayer
from tests.vector.checks import check, passes
from tests.vector.kernel_harness import shared_cache

SEEDS = range(3 * len(KINDS))


@pytest.mark.drawn(one_in=12)
@pytest.mark.parametrize("seed", SEEDS)
def test_numbers(seed: int) -> None:
    """Another number around the image would be seen."""
    layer = PaddedLayer.of(seed)
    known = levels()
    options = CompileOptions(by_name(known[seed % len(known)]))
    program = nanoloom.compile(layer.model(), cache=shared_cache(), options=options)
    (got,) = program(layer.inputs).values()
    right = layer.exact(layer.number)
    assert got.shape == right.shape
    check(got, right, 4, abs(right) + 1)
    wrong = replace(layer, mode="constant").exact(layer.number + 9)
    assert (wrong == right).all() or not passes(got, wrong, 4, abs(right) + 1)


def test_every_fill_is_drawn_where_it_shows() -> None:
    """Another number around the image changes the results of nearly all layers."""
    layers = [layer for seed in SEEDS if (layer := PaddedLayer.of(seed)).is_padded]
    wrong = [replace(x, mode="constant").exact(x.number + 9) for x in layers]
    pairs = zip(layers, wrong, strict=True)
    seen = [x for x, other in pairs if (x.exact(x.number) != other).any()]
    assert len(seen) > 0.9 * len(layers) > 60
