"""Two programs as one: words, parameters and slots of both, and which of them runs."""

from __future__ import annotations

import numpy as np

from nanoloom.dynamic.polynomial import Size
from nanoloom.interface.bounds import Bounds
from nanoloom.kernels.multiversion import Points, multiversion, pixels_of
from nanoloom.kernels.program import Program, ProgramSizes
from nanoloom.linalg.stage import Spec
from nanoloom.memory.calls import Call, Place, Storage
from nanoloom.weights.weight import weight_of

SIDES = Size(((1, ("h", "w")),))
MORE = Size(((4, ("h",)),))
SAMPLES = ({"h": 203, "w": 298}, {"h": 342, "w": 170}, {"h": 213, "w": 227})


def program(words: tuple[Size, ...], *slots: tuple[int, ...]) -> Program:
    """A call for each slot, which reads a parameter."""
    calls = [
        Call("k", (Place(Storage.PARAMETER, 0), Place(Storage.ARENA, i)), "")
        for i in range(len(slots))
    ]
    sizes = ProgramSizes(("h", "w"), words, slots, (), (), (Bounds(), Bounds()))
    weights = (weight_of(np.ones(len(slots))),)
    return Program({}, tuple(calls), (), (), weights, (), (), 0, sizes=sizes)


def test_both_in_one() -> None:
    many, few = program((MORE,), (0,)), program((MORE, SIDES), (0, 1), (1,))
    made = multiversion(few, many, Points(SIDES, 99))
    assert [call.arguments[0].index for call in made.calls] == [0, 1, 1]
    assert made.parameters == (*many.parameters, *few.parameters)
    assert [(x.first, x.count, x.trips) for x in made.repeats] == [(0, 1, 1), (1, 2, 1)]
    assert [x.within for x in made.repeats] == [(1, Bounds(100)), (1, Bounds(0, 99))]
    assert made.sizes is not None
    assert made.sizes.words == (MORE, SIDES)
    assert made.sizes.buffers == ((0, 1), (1,))


def test_bounds_may_leave_one() -> None:
    pixels = Points(SIDES, 1000)
    assert pixels.are_few({}) is None
    assert pixels.are_few({"h": Bounds(1, 20), "w": Bounds(1, 50)}) is True
    assert pixels.are_few({"h": Bounds(1, 20), "w": Bounds(1, 51)}) is None
    assert pixels.are_few({"h": Bounds(1001, 2000)}) is False


def test_pixels_are_those_of_the_first_images() -> None:
    def given(*shapes: tuple[int, ...]) -> Program:
        kind = np.dtype(np.float32)
        specs = tuple(Spec("x", shape, kind) for shape in shapes)
        return Program({}, (), specs, (), (), (), (), 0)

    images = [given((1, 8), (1, 3, s["h"], s["w"])) for s in SAMPLES]
    assert pixels_of(images, SAMPLES) == Points(SIDES, 203 * 298 * 2 // 3)
    assert pixels_of([given((1, s["h"])) for s in SAMPLES], SAMPLES) is None
