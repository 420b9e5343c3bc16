"""Places of several levels of an image one behind the other: one program."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator

import nanoloom
from nanoloom.cache import Cache
from nanoloom.dynamic.floor_division import Floor
from nanoloom.dynamic.pyramids import pyramid_of

HEAD = '<ir_version: 10, opset_import: ["" : 20]>'
STRIDES = (4, 8, 16)
SIDES = ((203, 298, 342, 170), (213, 227, 362, 309))


def samples() -> list[dict[str, int]]:
    floors = [Floor(dim, over - 1, over) for over in STRIDES for dim in "hw"]
    made = [dict(zip("hw", pair, strict=True)) for pair in zip(*SIDES, strict=True)]
    return [each | {floor.name: floor.of(each) for floor in floors} for each in made]


def places(sample: dict[str, int], *counts: int) -> int:
    """So many for each place of each level."""
    sides = [
        [sample[Floor(dim, over - 1, over).name] for dim in "hw"] for over in STRIDES
    ]
    return sum(n * h * w for n, (h, w) in zip(counts, sides, strict=True))


def test_levels_are_found() -> None:
    for counts in ((1, 1, 1), (21, 3, 1), (0, 6, 5)):
        made = pyramid_of([places(s, *counts) for s in samples()], samples())
        assert made is not None
        assert [n for n, _ in made] == [n for n in counts if n]


def test_what_is_no_sum_of_levels() -> None:
    beside = [places(s, 1, 1, 1) + 1 for s in samples()]
    assert pyramid_of(beside, samples()) is None
    less = [places(s, 2, 1, 1) - places(s, 0, 2, 0) for s in samples()]
    assert pyramid_of(less, samples()) is None
    assert (
        pyramid_of([places(s, 1, 1, 1) for s in samples()[:3]], samples()[:3]) is None
    )


def test_a_detector(tmp_path: Path) -> None:
    """Sides that no stride divides; a wrong place fails."""
    random = np.random.default_rng(0)
    text = f"""{HEAD}
g (float[1,3,h,w] x) => (float[1,5,n] y) <int64[3] flat = {{1, 5, -1}}> {{
  a = Conv<strides = [4, 4], pads = [0, 0, 3, 3]>(x, u)
  b = Conv<strides = [2, 2], pads = [1, 1, 1, 1]>(a, v)
  c = Conv<strides = [2, 2], pads = [1, 1, 1, 1]>(b, v)
  p = Reshape(a, flat)  q = Reshape(b, flat)  r = Reshape(c, flat)
  all = Concat<axis = 2>(p, q, r)  y = Sigmoid(all)
}}"""
    model = onnx.parser.parse_model(text)
    for name, shape in {"u": (5, 3, 4, 4), "v": (5, 5, 3, 3)}.items():
        array = random.standard_normal(shape).astype(np.float32) / 8
        model.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    program = nanoloom.compile(model, cache=Cache(tmp_path))
    for sides in ((33, 70), (64, 96), (201, 87), (5, 19)):
        x = random.standard_normal((1, 3, *sides)).astype(np.float32)
        made = ReferenceEvaluator(model).run(None, {"x": x})
        (exact,) = [np.asarray(each) for each in made]
        got = program({"x": x})["y"]
        assert abs(got - exact).max() < 2.0**-18
        assert not abs(np.roll(got, 1, 2) - exact).max() < 2.0**-18
    assert not program.open.reason
