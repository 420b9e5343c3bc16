"""Images whose channels stand in front: a product reads them without their border."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from nanoloom.errors import Error
from nanoloom.nest.extent import Lanes
from nanoloom.nest.implicit_padding import implicit_padding, tiles_at_ends
from nanoloom.nest.nest import LoopNest
from nanoloom.schedule.choose import choose
from nanoloom.schedule.language import (
    ALL,
    Nanokernel,
    Parallel,
    Schedule,
    StoreAt,
    Tile,
)
from nanoloom.schedule.library.register_tiles import register_tiles
from nanoloom.schedule.packing import Pack
from nanoloom.target import Target, by_name
from tests.guarded import Side
from tests.kernels.padded_programs import (
    Windows,
    convolution,
    first_layer,
    kernels,
    stages,
)
from tests.linalg.bounds import sample
from tests.vector.kernel_harness import (
    at_once,
    backwards,
    executable,
    program_of,
    run,
    stage_text,
    targets,
)

SAME = Windows((3, 3), (1, 1), (1, 1))
GEOMETRY = [
    ((5, 61), SAME),  # ends, and tiles between them
    ((40, 9), replace(SAME, steps=(2, 2))),  # a single tile of a row
    ((11, 75), Windows((7, 7), (3, 3), (3, 2), steps=(2, 2))),
    ((9, 64), Windows((2, 5), (0, 3), (1, 2), steps=(1, 3))),  # beside whole windows
    ((23, 67), Windows((3, 3), (2, 2), (2, 2), apart=(2, 2))),
    ((2, 50), Windows((5, 3), (2, 1), (2, 1))),  # windows reach above and below
    ((30, 2), Windows((5, 3), (2, 1), (2, 1))),
    ((1, 30), replace(SAME, low=(2, 1), high=(2, 1))),  # a single row, at three heights
    ((7, 80), Windows((1, 3), (0, 6), (0, 0))),  # whole tiles of border
    ((5, 7), replace(SAME, high=(1, 0), steps=(2, 2))),  # a tile, nothing behind
    ((5, 7), replace(SAME, low=(1, 0), steps=(2, 2))),
]
FAR = Windows((1, 3), (0, 300), (0, 0))  # more tiles of border than have code


@pytest.mark.drawn(one_in=4)
@pytest.mark.parametrize(("image", "windows"), GEOMETRY)
@pytest.mark.parametrize("channels", [(3, 33), (1, 16)])
def test_numbers(
    image: tuple[int, int], windows: Windows, channels: tuple[int, int]
) -> None:
    """Against float64, with nothing beside the image that could be read."""
    x = sample(1, (channels[0], *image), "float32")
    weights = sample(2, (*windows.window, *channels), "float32")
    program = program_of(first_layer(windows, weights), x)
    assert stages(program) == [["pad", "fill", "product", "point"]]
    wide, exact = x.transpose(1, 2, 0).astype(np.float64), weights.astype(np.float64)
    taps = windows.taps(wide).items()
    right = np.maximum(sum(tap @ exact[at] for at, tap in taps), 0)
    least = sum(abs(tap) @ abs(exact[at]) for at, tap in taps)
    bound = (weights[..., 0].size + 2) * np.finfo(np.float32).eps * least + 1e-30
    (kernel,) = program.kernels.values()
    for target, loops in product(targets(), (False, True)):
        script = in_loops(kernel.nest, target) if loops else choose(kernel.nest, target)
        if loops:  # one channel: a task makes the border
            assert ("ComputeAt('pad'" in str(script)) == (channels[0] > 1)
        else:
            assert "source" in str(script)
        made = executable(program, target, script)
        for order, side in product((at_once, backwards), Side):
            (result,) = made(x, order=order, side=side)
            assert (abs(result - right) <= bound).all()
            assert not (abs(0 * result - right) <= bound).all()


@pytest.mark.parametrize(("image", "windows"), [GEOMETRY[0], GEOMETRY[2]])
def test_what_is_turned_is_one_kernel(image: tuple[int, int], windows: Windows) -> None:
    """The same bits in another order, by the kernel that leaves a border out."""
    x = sample(1, (3, *image), "float32")
    weights = sample(2, (*windows.window, 3, 20), "float32")
    layer = first_layer(windows, weights)
    turned = program_of(lambda b, x: b.transpose(layer(b, x), [2, 0, 1]), x)
    assert stages(turned) == [["pad", "fill", "product", "point", "copy"]]
    for target, side in product(targets(), Side):
        (one,) = executable(program_of(layer, x), target)(x)
        (other,) = executable(turned, target)(x, order=backwards, side=side)
        assert (other == one.transpose(2, 0, 1)).all()
        assert not (other == np.roll(one.transpose(2, 0, 1), 1)).all()


@pytest.mark.parametrize("name", ["aarch64+sve", "rv64gcv"])
def test_vectors_of_any_width(name: str) -> None:
    """Few taps of several channels are read where they lie; of others a task makes the
    border."""
    target, windows = by_name(name), replace(SAME, steps=(2, 2))
    wide = Windows((3, 11), (1, 5), (1, 5))
    for channels, given in ((3, windows), (1, windows), (3, wide)):
        weights = np.ones((*given.window, channels, 32), np.float32)
        image = (channels, 10, 14), "float32"
        program = program_of(first_layer(given, weights), image, target=target)
        assert stages(program) == [["pad", "fill", "product", "point"]]
        (kernel,) = program.kernels.values()
        words = str(choose(kernel.nest, target))
        assert ("ComputeAt('pad', 'product'" in words) == (
            channels > 1 and given == windows
        )


@pytest.mark.drawn(one_in=2)
@pytest.mark.parametrize(("image", "windows"), GEOMETRY)
def test_weights_that_are_not_known(image: tuple[int, int], windows: Windows) -> None:
    """Nothing is packed; whole numbers, exact."""
    x = np.rint(4 * sample(7, (3, *image), "float32"))
    weights = np.rint(4 * sample(8, (*windows.window, 3, 35), "float32"))
    program = program_of(first_layer(windows, weights, known=False), x, weights)
    assert stages(program) == [["pad", "fill", "product", "point"]]
    taps = windows.taps(x.transpose(1, 2, 0)).items()
    right = np.maximum(sum(tap @ weights[at] for at, tap in taps), 0)
    for target, order, side in product(targets(), (at_once, backwards), Side):
        (result,) = executable(program, target)(x, weights, order=order, side=side)
        assert (result == right).all() and right.max() > 1


def in_loops(nest: LoopNest, target: Target) -> Schedule:
    """What vectors of any width have, with those of a target."""
    assert nest.last is not None
    schedule = register_tiles(nest, nest.last, target)
    assert schedule is not None
    return schedule


@pytest.mark.parametrize("apart", [6, 20, 29])
def test_tiles_that_begin_anywhere(apart: int) -> None:
    """Those at ends are found as it runs, and may have fewer rows than others."""
    x, weights = sample(5, (2, 3, 61), "float32"), sample(6, (3, 3, 2, 16), "float32")
    program = program_of(first_layer(SAME, weights), x)
    taps = SAME.taps(x.transpose(1, 2, 0).astype(np.float64)).items()
    right = np.maximum(sum(tap @ weights[at] for at, tap in taps), 0)
    magnitude = sum(abs(tap) @ abs(weights[at]) for at, tap in taps)
    bound = weights[..., 0].size * 2.0**-23 * magnitude
    for target in targets():
        lanes = Lanes(target.vector.min_bits // 32)
        vectors = 16 // lanes.count
        script = Schedule((
            Pack(1, (), 3, (0, 1, 2), 16),
            StoreAt("pad", "source"),
            Parallel("point", (1, apart, 16), ALL),
            Tile("point", (0, 6, 0), ALL),
            Nanokernel(6, vectors, lanes, True),
        ))  # fmt: skip
        made = executable(program, target, script)
        for side in Side:
            (result,) = made(x, side=side)
            assert (abs(result - right) <= bound).all() and right.max() > 1


def test_wide_borders_are_made_in_the_task() -> None:
    x, weights = sample(3, (2, 4, 50), "float32"), np.ones((1, 3, 2, 16), np.float32)
    program = program_of(first_layer(FAR, weights), x)
    (kernel,) = program.kernels.values()
    assert StoreAt("pad", "task") in choose(kernel.nest, targets()[0]).directives
    taps = FAR.taps(x.transpose(1, 2, 0).astype(np.float64)).items()
    right = np.maximum(sum(tap @ weights[at] for at, tap in taps), 0)
    (result,) = executable(program, targets()[0])(x)
    assert (abs(result - right) <= 1e-5).all() and right.max() > 1


def test_the_code() -> None:
    """No padded image; tiles within a row ask nothing, those at its ends a few rows."""
    windows = Windows((7, 7), (3, 3), (3, 3), steps=(2, 2))
    weights = np.ones((7, 7, 3, 64), np.float32)
    program = program_of(first_layer(windows, weights), ((3, 224, 224), "float32"))
    (kernel,) = program.kernels.values()
    target, (root,) = by_name("x86-64-v4"), kernel.nest.products
    assert implicit_padding(kernel.nest, root) == kernel.nest.pads[0]
    assert tiles_at_ends(kernel.nest, root, root.names[1], 14) == 2
    text = stage_text(program, "vector", target)
    assert "memref.load %arg0" in text and "memref.alloc" not in text
    asked = len(re.findall("arith.select .*: f32", text))
    assert asked == 2 + 1  # rows at either end
    found = re.search(r"Nanokernel\((\d+), (\d+)", str(choose(kernel.nest, target)))
    assert found is not None
    tile = int(found[1]) * int(found[2])
    assert len(re.findall("vector.fma", text)) == 3 * tile  # three kinds of tiles


def test_channels_along_rows() -> None:
    """An image that has them last is read where it lies, too."""
    weights = sample(12, (3, 3, 16, 48), "float32")
    for windows in (SAME, replace(SAME, low=(6, 1), high=(6, 1), apart=(6, 1))):
        program = program_of(convolution(windows, weights), ((20, 30, 16), "float32"))
        (kernel,) = program.kernels.values()
        target = by_name("x86-64-v4")
        assert StoreAt("pad", "source") in choose(kernel.nest, target).directives
        text = stage_text(program, "vector", target)
        assert "memref.load %arg0" in text and "memref.alloc" not in text


@pytest.mark.drawn
@pytest.mark.parametrize(("image", "windows"), GEOMETRY)
@pytest.mark.parametrize("number", [1.5, -20.0])
def test_another_number(
    image: tuple[int, int], windows: Windows, number: float
) -> None:
    """What steps outside of the image add is added once for a tile, in no memory."""
    x = sample(11, (3, *image), "float32")
    weights = sample(12, (*windows.window, 3, 24), "float32")
    other = replace(windows, number=number)
    program = program_of(first_layer(other, weights), x)
    assert kernels(program) == ["contraction"]
    (kernel,) = program.kernels.values()
    taps = other.taps(x.transpose(1, 2, 0).astype(np.float64)).items()
    right = np.maximum(sum(tap @ weights[at] for at, tap in taps), 0)
    least = sum(abs(tap) @ abs(weights[at]) for at, tap in taps)
    bound = (weights[..., 0].size + 2) * np.finfo(np.float32).eps * least
    zeros = windows.taps(x.transpose(1, 2, 0).astype(np.float64)).items()
    without = np.maximum(sum(tap @ weights[at] for at, tap in zeros), 0)
    for target, side in product(targets(), Side):
        script = choose(kernel.nest, target)
        assert "StoreAt('pad', 'source')" in str(script)
        (result,) = executable(program, target)(x, order=backwards, side=side)
        assert (abs(result - right) <= bound).all()
        assert not (abs(without - right) <= bound).all()
        loops = executable(program, target, in_loops(kernel.nest, target))
        assert (abs(loops(x, side=side)[0] - right) <= bound).all()


@pytest.mark.parametrize("window", [(3, 1), (1, 3)])
def test_a_number_around_sums_along_one_axis(window: tuple[int, int]) -> None:
    """Steps outside are all that there is of the innermost loop; whole numbers."""
    sides = (window[0] // 2, window[1] // 2)
    windows = Windows(window, sides, sides, 2.5)
    x = np.rint(4 * sample(13, (1, 9, 40), "float32"))
    weights = np.rint(4 * sample(14, (*window, 1, 24), "float32"))
    taps = windows.taps(x.transpose(1, 2, 0)).items()
    right = np.maximum(sum(tap @ weights[at] for at, tap in taps), 0)
    program = program_of(first_layer(windows, weights), x)
    for target in targets():
        (result,) = executable(program, target)(x, order=backwards)
        assert (result == right).all() and right.max() > 1


def test_refusals() -> None:
    weights = np.ones((3, 3, 3, 8), np.float32)
    make = first_layer(SAME, weights)
    x = sample(4, (3, 6, 8), "float32")
    (kernel,) = program_of(make, x).kernels.values()
    loops = (Parallel("point", (1, 0, 0), ALL),)
    with pytest.raises(Error, match="fill is no border"):
        Schedule((StoreAt("fill", "source"),)).apply(kernel.nest)
    with pytest.raises(Error, match="pad is computed inside"):
        Schedule((*loops, StoreAt("pad", "source"))).apply(kernel.nest)
    with pytest.raises(Error, match="no nanokernel of multiply-adds"):
        run(make, x, script=Schedule((StoreAt("pad", "source"), *loops)))
