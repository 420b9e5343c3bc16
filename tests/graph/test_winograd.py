"""Which convolutions are marked for Winograd's method."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

import nanoloom
from nanoloom.graph.shared_decisions import WHOLE_PADS, SharedDecisions
from nanoloom.graph.stage import optimize
from nanoloom.linalg.operators import OPERATORS
from nanoloom.options import CompileOptions
from nanoloom.target import by_name
from nanoloom.target.host import host
from tests.linalg.bounds import sample
from tests.linalg.single import model_of
from tests.vector.kernel_harness import shared_cache

TARGET = by_name("x86-64-v3")


def tile_of(
    image: tuple[int, ...],
    filters: tuple[int, ...],
    constants: tuple[int, ...] = (1,),
    dtype: str = "float32",
    alike: SharedDecisions | None = None,
    **attributes: Any,
) -> int | None:
    """The tile that a convolution of these shapes is given; None for the direct way."""
    arrays = [sample(1, image, dtype), sample(2, filters, dtype)]
    model, _ = model_of("Conv", arrays, attributes, constants=constants)
    graph = optimize(ir.from_proto(model), OPERATORS.keys(), TARGET, alike=alike).graph
    (node,) = (n for n in graph if n.op_type == "Conv")
    images = alike is not None and alike.images
    assert (WHOLE_PADS in node.attributes) == images
    mark = node.attributes.get("winograd")
    return None if mark is None else mark.as_int()


SAME = [1, 1, 1, 1]


def test_large_tiles_for_large_images() -> None:
    assert tile_of((1, 64, 56, 56), (64, 64, 3, 3), pads=SAME) == 4
    assert tile_of((1, 32, 14, 14), (32, 32, 3, 3), pads=SAME) == 4


def test_small_tiles_where_the_filters_come_from_memory() -> None:
    """36 / 9 of the bytes of many filters for few pixels take longer than they save."""
    assert tile_of((1, 512, 7, 7), (512, 512, 3, 3), pads=SAME) == 2


def test_samples_have_the_tile_of_the_first() -> None:
    """Whatever each of them would be given."""
    alike, filters = SharedDecisions(images=True), (64, 64, 3, 3)
    assert tile_of((1, 64, 54, 57), filters, alike=alike, pads=SAME) == 4
    assert tile_of((1, 64, 2, 3), filters, pads=SAME) != 4
    assert tile_of((1, 64, 2, 3), filters, alike=alike, pads=SAME) == 4
    few = SharedDecisions(images=True)
    assert tile_of((1, 512, 7, 7), (512, 512, 3, 3), alike=few, pads=SAME) == 2
    assert tile_of((1, 512, 28, 28), (512, 512, 3, 3), alike=few, pads=SAME) == 2


def test_one_image_counts_as_much_as_the_batch_of_a_sample() -> None:
    """What the transformed images of twelve take from memory, one has in a cache."""
    image, filters = (128, 14, 14), (24, 128, 3, 3)
    assert tile_of((1, *image), filters, pads=SAME) == 4
    assert tile_of((3, *image), filters, pads=SAME) == 4
    assert tile_of((12, *image), filters, pads=SAME) is None
    alike = SharedDecisions(images=True)
    assert tile_of((12, *image), filters, alike=alike, pads=SAME) == 4


@pytest.mark.parametrize(("channels", "side"), [(3, 32), (3, 64), (4, 64)])
def test_what_few_channels_are_transformed_for_takes_longer(
    channels: int, side: int
) -> None:
    for features in (32, 64):
        shapes = (1, channels, side, side), (features, channels, 3, 3)
        assert tile_of(*shapes, pads=SAME) is None


def test_few_pixels_have_tiles_of_their_own() -> None:
    """Those of half the sides: filters of 512 channels outweigh 7 x 7 results."""
    alike, filters = SharedDecisions(images=True), (512, 512, 3, 3)
    assert tile_of((3, 512, 13, 13), filters, alike=alike, pads=SAME) == 4
    assert alike.tiles_of_few == (2,)
    few = alike.for_few_pixels()
    assert few is not None
    assert tile_of((3, 512, 13, 13), filters, alike=few, pads=SAME) == 2
    assert few.for_few_pixels() is None
    same = SharedDecisions(images=True)
    assert tile_of((1, 48, 56, 56), (48, 48, 3, 3), alike=same, pads=SAME) == 4
    assert same.for_few_pixels() is None


@pytest.mark.parametrize(
    ("taps", "tile"),
    [((5, 5), 2), ((1, 7), 2), ((3, 1), 4), ((7, 7), None), ((4, 4), 2)],
    ids=str,
)
def test_taps(taps: tuple[int, ...], tile: int | None) -> None:
    """Along one axis or both, as far as roundings grow no more than of 3 x 3."""
    pads = [(t - 1) // 2 for t in taps] * 2
    shapes = (1, 192, 17, 17), (192, 192, *taps)
    assert tile_of(*shapes, pads=pads) == tile


def test_texts() -> None:
    assert tile_of((1, 128, 300), (128, 128, 3), pads=[1, 1]) == 4
    assert tile_of((1, 128, 300), (128, 128, 5), pads=[2, 2]) == 4


def test_images_of_any_size_have_3_taps() -> None:
    """The others have no numbers of tiles for every size."""
    for taps, tile in ((3, 4), (5, None)):
        shapes = (1, 64, 54, 57), (64, 64, taps, taps)
        assert tile_of(*shapes, alike=SharedDecisions(images=True), pads=SAME) == tile


@pytest.mark.parametrize(
    ("strides", "tile"), [([1, 1], 4), ([2, 2], 2), ([1, 2], 4), ([3, 3], None)]
)
def test_strides(strides: list[int], tile: int | None) -> None:
    shapes = (1, 512, 28, 28), (512, 512, 3, 3)
    assert tile_of(*shapes, pads=SAME, strides=strides) == tile


def test_less_is_saved_of_stride_2() -> None:
    """25 products for 36 instead of 16: not what the sums around them take."""
    shapes = (1, 48, 56, 56), (32, 48, 3, 3)
    assert tile_of(*shapes, pads=SAME) == 4
    assert tile_of(*shapes, pads=SAME, strides=[2, 2]) is None


@pytest.mark.parametrize(("depth", "tile"), [(1, None), (16, None), (24, 4), (32, 4)])
def test_groups(depth: int, tile: int | None) -> None:
    """Of many channels each: what their sums are made of outweighs their number."""
    shapes = (1, 4 * depth, 16, 16), (4 * depth, depth, 3, 3)
    assert tile_of(*shapes, pads=SAME, group=4) == tile


@pytest.mark.parametrize(
    ("image", "filters", "attributes"),
    [
        ((1, 64, 56, 56), (64, 64, 3, 3), {"dilations": [2, 2]}),
        ((1, 64, 56, 56), (64, 16, 3, 3), {"group": 4}),
        ((1, 64, 56, 56), (64, 64, 1, 1), {}),
        ((1, 64, 56, 56), (64, 64, 9, 9), {}),
        ((1, 64, 56, 56), (64, 64, 2, 2), {"strides": [2, 2]}),
        ((1, 64, 57), (64, 64, 2), {"strides": [2]}),
        ((1, 64, 9, 9, 9), (64, 64, 3, 3, 3), {}),
        ((1, 3, 56, 56), (3, 3, 3, 3), {}),
        ((0, 64, 56, 56), (64, 64, 3, 3), {}),
    ],
    ids=str,
)
def test_others_are_direct(
    image: tuple[int, ...], filters: tuple[int, ...], attributes: dict[str, Any]
) -> None:
    assert tile_of(image, filters, **attributes) is None


def test_halves_have_the_tiles_of_floats() -> None:
    for image, filters in (
        ((1, 64, 56, 56), (64, 64, 3, 3)),
        ((1, 512, 7, 7), (512, 512, 3, 3)),
        ((1, 3, 56, 56), (3, 3, 3, 3)),
    ):
        made = tile_of(image, filters, dtype="float16", pads=SAME)
        assert made == tile_of(image, filters, pads=SAME)


def test_filters_that_are_computed_and_other_types_are_direct() -> None:
    assert tile_of((1, 64, 28, 28), (64, 64, 3, 3), constants=()) is None
    assert tile_of((1, 64, 28, 28), (64, 64, 3, 3), dtype="float64") is None


def test_exact_and_bf16_convolutions_are_direct() -> None:
    assert CompileOptions(TARGET).winograd_target == TARGET
    assert CompileOptions(TARGET, exact_conv=True).winograd_target is None
    assert CompileOptions(TARGET, "bf16").winograd_target is None


def test_a_program_is_exact_if_it_is_asked_to_be() -> None:
    """Whole numbers: sums of products are exact, thirds of filters are not."""
    x = np.rint(sample(1, (1, 32, 28, 28), "float32", -4, 4))
    w = np.rint(sample(2, (32, 32, 3, 3), "float32", -4, 4))
    model, feeds = model_of("Conv", [x, w], {"pads": SAME}, constants=(1,))
    padded = np.pad(x, [(0, 0), (0, 0), (1, 1), (1, 1)])
    exact = np.zeros_like(x)
    for i, j in np.ndindex(3, 3):
        seen = padded[..., i : i + 28, j : j + 28]
        exact += np.einsum("nchw,fc->nfhw", seen, w[..., i, j])
    cache = shared_cache()
    (plain,) = nanoloom.compile(model, exact_conv=True, cache=cache)(feeds).values()
    assert (plain == exact).all()
    (fast,) = nanoloom.compile(model, cache=cache)(feeds).values()
    tile, grown = 4, 861  # as docs/convolutions.md states it
    stated = (32 + 4 * tile + 12) * grown * 4 * np.abs(w).sum((1, 2, 3)).max() / 2**24
    assert (fast != exact).any() and np.abs(fast - exact).max() < stated


def test_options_that_contradict_each_other() -> None:
    options = CompileOptions(host(), exact_conv=True)
    model, _ = model_of("Relu", [np.zeros(3, np.float32)], {})
    with pytest.raises(
        nanoloom.Error, match="exact_conv is False here and True in the options"
    ):
        nanoloom.compile(model, exact_conv=False, options=options)
