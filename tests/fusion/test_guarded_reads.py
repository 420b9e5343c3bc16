"""Pads that their reader makes: no tensor, no kernel of their own, the same numbers."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

from nanoloom.errors import Error
from nanoloom.nest.extent import Lanes
from nanoloom.schedule.choose import choose
from nanoloom.schedule.language import (
    ALL,
    ComputeAt,
    Parallel,
    Schedule,
    StoreAt,
    Tile,
    Vectorize,
)
from nanoloom.target import by_name
from nanoloom.target.host import host
from tests.guarded import Side
from tests.kernels.padded_programs import (
    LEAST,
    Windows,
    convolution,
    kernels,
    plain,
    pool,
    relu,
    stages,
    sums_of,
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

GEOMETRY = [
    ((17, 19), Windows((3, 3), (1, 1), (0, 1), steps=(2, 2))),
    ((5, 7), Windows((3, 2), (2, 0), (0, 1))),
    ((9, 4), Windows((2, 5), (0, 3), (1, 2), 7.5, (1, 3))),
    ((23, 30), Windows((3, 3), (2, 2), (2, 2), -1.25, (1, 1), (2, 2))),
    ((1, 9), Windows((3, 3), (1, 1), (1, 1))),
    ((6, 1), Windows((7, 7), (3, 3), (3, 3))),
    ((3, 3), Windows((2, 2), (5, 4), (6, 0), 3, (3, 2))),
]


@pytest.mark.drawn(one_in=5)
@pytest.mark.parametrize(("image", "windows"), GEOMETRY)
@pytest.mark.parametrize("channels", [(16, 40), (3, 5), (37, 129)])
def test_convolutions(
    image: tuple[int, int], windows: Windows, channels: tuple[int, int]
) -> None:
    """Against float64; each task alone and all at once give the same bits."""
    x = sample(1, (*image, channels[0]), "float32")
    weights = sample(2, (*windows.window, *channels), "float32")
    make = convolution(windows, weights)
    program = program_of(make, x)
    assert kernels(program) == ["contraction"]
    wide, exact = x.astype(np.float64), weights.astype(np.float64)
    right = sum(tap @ exact[at] for at, tap in windows.taps(wide).items())
    least = sum(abs(t) @ abs(exact[at]) for at, t in windows.taps(wide).items())
    bound = (weights[..., 0].size + 2) * np.finfo(np.float32).eps * least + 1e-30
    for target in targets():
        made = executable(program, target)
        (result,) = made(x)
        assert (abs(result - right) <= bound).all()
        assert not (abs(0 * result - right) <= bound).all()
        assert made(x, order=backwards)[0].tobytes() == result.tobytes()


@pytest.mark.drawn(one_in=2)
@pytest.mark.parametrize(("image", "windows"), GEOMETRY)
def test_weights_that_are_not_known(image: tuple[int, int], windows: Windows) -> None:
    """Tiles of several rows; integers, exact."""
    x = np.rint(4 * sample(11, (*image, 9), "float32"))
    weights = np.rint(4 * sample(12, (*windows.window, 9, 35), "float32"))
    windows = replace(windows, number=round(windows.number))

    def make(b: Any, x: Any, w: Any) -> Any:
        return relu(b, sums_of(windows, b, x, w))

    program = program_of(make, x, weights)
    assert stages(program) == [["pad", "fill", "product", "point"]]
    total = sum(tap @ weights[at] for at, tap in windows.taps(x).items())
    for target in targets():
        made = executable(program, target)
        for order in (at_once, backwards):
            (result,) = made(x, weights, order=order)
            assert (result == np.maximum(total, 0)).all()


@pytest.mark.drawn(one_in=5)
@pytest.mark.parametrize(("image", "windows"), GEOMETRY)
@pytest.mark.parametrize("channels", [64, 5, 19])
def test_pools(image: tuple[int, int], windows: Windows, channels: int) -> None:
    """Exact, and nothing beside the image is read.

    Zeros around it would be larger than any number of it.
    """
    windows = replace(windows, number=LEAST if not windows.number else windows.number)
    x = sample(3, (*image, channels), "float32")
    x = -abs(x) - 1
    program = program_of(pool(windows), x)
    assert "pad" in stages(program)[-1] and kernels(program)[-1] == "reduction"
    right = np.max(list(windows.taps(x).values()), axis=0)
    for target in targets():
        made = executable(program, target)
        for order, side in product((at_once, backwards), Side):
            (result,) = made(x, order=order, side=side)
            assert (result == right).all()
    zeros = replace(windows, number=0.0)
    assert not (np.max(list(zeros.taps(x).values()), axis=0) == right).all()


def test_integers() -> None:
    windows = Windows((3, 3), (1, 2), (2, 0), 5, (2, 1))
    x = np.rint(9 * sample(4, (13, 11, 8), "float32")).astype(np.int32)
    weights = np.rint(9 * sample(5, (3, 3, 8, 21), "float32")).astype(np.int32)
    right = sum(tap @ weights[at] for at, tap in windows.taps(x).items())
    assert (run(convolution(windows, weights), x) == right).all()


IMAGE = (56, 57, 16)
SAME = Windows((3, 3), (1, 1), (1, 1))
HALF = replace(SAME, steps=(2, 2))


def shared(b: Any, x: Any) -> list[Any]:
    """A product's result, which another product reads as it is and one in a border."""
    first = b.constant(np.ones((16, 24), np.float32))
    middle = relu(b, b.einsum("yxc,cf->yxf", x, first))
    weights = np.ones((3, 3, 24, 40), np.float32)
    second = b.constant(np.ones((24, 8), np.float32))
    return [
        convolution(HALF, weights)(b, middle),
        b.einsum("yxc,cf->yxf", middle, second),
    ]


def test_no_tensor_of_its_own() -> None:
    """The arena has what the first product makes, and nothing with a border."""
    program = program_of(shared, (IMAGE, "float32"))
    assert kernels(program) == ["contraction"] * 3
    assert program.buffers == (4 * 56 * 57 * 24,)
    x = np.rint(2 * sample(6, IMAGE, "float32"))
    right = np.maximum(x.sum(-1, keepdims=True) * np.ones(24), 0)
    taps = np.sum([tap.sum(-1) for tap in HALF.taps(right).values()], axis=0)
    padded, plain_ = executable(program, host())(x)
    assert (padded == taps[..., None]).all()
    assert (plain_ == right.sum(-1)[..., None]).all()


def test_what_can_be_written_in_place_still_is() -> None:
    def make(b: Any, x: Any) -> Any:
        return pool(SAME)(b, b.elementwise(lambda s: s + s, x))

    program = program_of(make, (IMAGE, "float32"))
    assert "pad" not in [s for each in stages(program) for s in each]


@pytest.mark.parametrize("alike", [True, False])
def test_a_pad_that_several_kernels_read(alike: bool) -> None:
    """Each makes what it reads, if all of them can; else it is made once."""
    weights = np.ones((3, 3, 16, 8), np.float32)

    def make(b: Any, x: Any) -> list[Any]:
        padded = SAME.pad(b, x)
        start = b.full((56, 57, 8), 0, x.dtype)
        kinds = ["parallel"] * 3 + ["reduction"] * 3
        sums = [
            b.generic(
                [(padded, SAME.indexing(6, 3, 5)),
                 (b.constant(weights * n), plain(6, 3, 4, 5, 2))],
                [(start, plain(6, 0, 1, 2))], kinds, lambda a, w, t: t + a * w,
            )[0]
            for n in (1, 2)
        ]  # fmt: skip
        other = b.constant(np.ones((16, 24), np.float32))
        return sums if alike else [*sums, b.einsum("yxc,cf->yxf", padded, other)]

    program = program_of(make, (IMAGE, "float32"))
    made = [] if alike else ["opaque", "elementwise"]
    assert kernels(program) == [*made, *["contraction"] * (2 if alike else 3)]
    x = np.rint(4 * sample(9, IMAGE, "float32"))
    right = np.sum([tap.sum(-1) for tap in SAME.taps(x).values()], axis=0)
    one, two, *_ = executable(program, host())(x)
    assert (one == right[..., None]).all() and (two == 2 * right[..., None]).all()


def test_rows_with_a_border_are_copied() -> None:
    """Their vectors would be read from where no row is."""

    def make(b: Any, x: Any) -> Any:
        return b.elementwise(lambda s: s + 1, b.pad(x, (1, 2), (0, 3), 4))

    program = program_of(make, ((9, 31), "float32"))
    assert kernels(program) == ["opaque", "elementwise", "elementwise"]
    x = sample(7, (9, 31), "float32")
    assert (run(make, x) == np.pad(x, ((1, 0), (2, 3)), constant_values=4) + 1).all()


def test_what_would_be_padded_again_and_again_is_copied() -> None:
    """A product's long rows; not windows, whose tasks have rows enough."""
    weights = sample(10, (64, 48), "float32")

    def make(b: Any, x: Any) -> Any:
        return b.einsum("ik,kj->ij", b.pad(x, (3, 0), (2, 0)), b.constant(weights))

    assert "copy" in stages(program_of(make, ((30, 64), "float32")))[-2]
    taps = np.ones((3, 3, 16, 8), np.float32)
    far = replace(SAME, low=(9, 1), high=(9, 1), apart=(9, 1), number=1)
    made = stages(program_of(convolution(far, taps), (IMAGE, "float32")))
    assert made == [["pad", "fill", "product"]]


@pytest.mark.parametrize("turned", [False, True])
def test_elementwise_readers(turned: bool) -> None:
    """Of a slice, too, in which the place of a row is counted from its beginning."""

    def make(b: Any, x: Any) -> Any:
        part = b.slice(x, (2, 1, 0), (9, 12, 20))
        padded = b.pad(part, (1, 0, 0), (2, 3, 0), 4)
        read = b.transpose(padded, (2, 0, 1)) if turned else padded
        return b.elementwise(lambda s: s + 1, read)

    x = sample(8, (13, 14, 20), "float32")
    program = program_of(make, x)
    assert stages(program) == [["pad", "point"]]
    part = np.pad(x[2:11, 1:13], ((1, 2), (0, 3), (0, 0)), constant_values=4) + 1
    right = part.transpose(2, 0, 1) if turned else part
    for order in (at_once, backwards):
        assert (run(make, x, order=order) == right).all()


def cropped(windows: Windows, weights: np.ndarray) -> Any:
    """Of an image that goes on where its padding is: tasks make that."""
    made = convolution(windows, weights)
    return lambda b, x: made(b, b.slice(x, (0, 0, 0), IMAGE))


LARGER = ((58, 57, 16), "float32")


def test_the_loops() -> None:
    """The nest before and after: a task pads its rows once for all its panels."""
    weights = np.ones((3, 3, 16, 256), np.float32)
    windows = replace(SAME, number=1)
    program = program_of(cropped(windows, weights), LARGER)
    (kernel,) = program.kernels.values()
    before = (
        "pad: pad[d0, d1, d2] <- arg0[d0 - 1, d1 - 1, d2] inside a part, 1.0 outside"
    )
    assert before in str(kernel.nest)
    schedule = choose(kernel.nest, by_name("x86-64-v4"))
    assert StoreAt("pad", "task") in schedule.directives
    loops = str(schedule.apply(kernel.nest)).splitlines()
    (line,) = [n for n, text in enumerate(loops) if text.strip().startswith("pad:")]
    (made,) = [n for n, text in enumerate(loops) if text.strip().startswith("product:")]
    around = [text.strip() for text in loops[:line]]
    assert loops[line].endswith(
        "inside a part, 1.0 outside, stored in the task's memory"
    )
    assert "for d0 in 0..3:" in around and "for d1 in 0..59:" in around
    panels = [n for n, text in enumerate(loops) if text.strip().startswith("for d2o")]
    assert line < panels[0] < made, "several panels read what is padded once"


def test_the_code() -> None:
    """Of the padded image only what a task reads is in memory: three rows."""
    weights, windows = np.ones((3, 3, 16, 256), np.float32), replace(SAME, number=1)
    program = program_of(cropped(windows, weights), LARGER)
    text = stage_text(program, "vector", by_name("x86-64-v4"))
    assert "memref<3x59x16xf32>" in text and "58x59" not in text
    assert "arith.select" in text and "vector.load %arg0" in text


HAND = [
    (Parallel("reduction", (4, 0, 0, 0, 0), ALL),),
    (Parallel("reduction", (4, 0, 0, 0, 0), ("fill",)),
     Tile("reduction", (1, 5, 0, 0, 0), ("pad",))),
    (Parallel("reduction", (3, 7, 0, 0, 0), ALL), StoreAt("pad", "task"),
     Tile("reduction", (1, 2, 0, 0, 0), ALL)),
    (ComputeAt("pad", "reduction", "d1"), Vectorize("reduction", "d2", Lanes(4))),
    (),
]  # fmt: skip


@pytest.mark.parametrize("words", HAND)
def test_schedules_by_hand(words: tuple[Any, ...]) -> None:
    """The same numbers wherever the pad is computed."""
    windows = Windows((3, 3), (1, 1), (0, 2), LEAST, (2, 1))
    x = -abs(sample(9, (15, 18, 13), "float32")) - 1
    right = np.max(list(windows.taps(x).values()), axis=0)
    for order in (at_once, backwards):
        made = run(pool(windows), x, script=Schedule(words), order=order)
        assert (made == right).all()


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        (StoreAt("pad", "registers"), "pad is not computed inside of what reads it"),
        (ComputeAt("product", "pad", "d0"), "pad reads nothing that product makes"),
        (ComputeAt("pad", "fill", "d0"), "fill reads nothing that pad makes"),
    ],
)
def test_refusals(word: Any, reason: str) -> None:
    weights = np.ones((3, 3, 16, 8), np.float32)
    program = program_of(convolution(SAME, weights), (IMAGE, "float32"))
    (kernel,) = program.kernels.values()
    with pytest.raises(Error, match=reason):
        Schedule((word,)).apply(kernel.nest)


@pytest.mark.parametrize("name", ["rv64gcv", "armv9-sve2"])
def test_rows_of_any_width(name: str) -> None:
    """Scalable vectors: what one row reads is a row."""
    weights = np.ones((3, 3, 16, 24), np.float32)
    program = program_of(convolution(SAME, weights), (IMAGE, "float32"))
    text = stage_text(program, "vector", by_name(name))
    lines = [x for x in text.splitlines() if "load %arg0" in x]
    assert any("xf32>, vector<[" in line for line in lines)


READERS: dict[str, Any] = {
    "elementwise": lambda b, padded, _: b.elementwise(lambda s: s + 1, padded),
    "pool": lambda b, padded, windows: largest(b, padded, windows),
}


def largest(b: Any, padded: Any, windows: Windows) -> Any:
    """Of each window of a padded image [y, x, c]."""
    extents = [n - k + 1 for n, k in zip(padded.shape, windows.window, strict=False)]
    start = b.full((*extents, padded.shape[2]), LEAST, padded.dtype)
    window = b.tensor(b.empty(windows.window, padded.dtype), padded.dtype)
    (most,) = b.generic(
        [(padded, windows.indexing(5, 3, 2)), (window, plain(5, 3, 4))],
        [(start, plain(5, 0, 1, 2))], ["parallel"] * 3 + ["reduction"] * 2,
        lambda a, _, most: most.maximum(a),
    )  # fmt: skip
    return most


@pytest.mark.parametrize("kind", READERS)
@pytest.mark.parametrize("seed", range(3))
def test_a_dynamic_number_in_front_of_any_reader(kind: str, seed: int) -> None:
    """It is guarded as a constant is: no kernel pads, whatever a run gives."""
    random = np.random.default_rng([seed, len(kind)])
    image = (*random.integers(3, 20, 2).tolist(), 24)
    low, high = (tuple(random.integers(0, 3, 2).tolist()) for _ in range(2))
    windows = Windows((3, 2), (low[0] + 1, low[1]), high)
    x, number = sample(seed, image, "float32"), np.float32(random.normal(0, 3))

    def make(b: Any, x: Any, number: Any) -> Any:
        sides = zip(windows.low, image, high, strict=False)
        shape = *(sum(side) for side in sides), image[2]
        around = b.broadcast_to(b.reshape(number, (1, 1, 1)), shape)
        return READERS[kind](b, b.insert(x, around, (*windows.low, 0)), windows)

    program = program_of(make, x, np.array([number]))
    (names,) = stages(program)
    assert names[0] == "pad"
    padded = replace(windows, number=number).padded(x)
    right = padded + 1
    if kind == "pool":
        taps = replace(windows, number=number).taps(x)
        right = np.max(list(taps.values()), axis=0)
    for target, order, side in product(targets(), (at_once, backwards), Side):
        made = executable(program, target)
        (result,) = made(x, np.array([number]), order=order, side=side)
        assert (result == right).all()
        assert not (result == np.where(right == number + 1, 1, right + 1)).all()
