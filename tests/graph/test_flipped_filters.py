"""Transposed convolutions of single steps are convolutions."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import numpy_helper

import nanoloom
from tests.graph.models import operators, optimized, proto


def of(words: str, features: int, weights: str = "w") -> str:
    """A 3x3 one over 40 channels."""
    attributes = f"<{words}>" if words else ""
    filters = f"float[40, {features}, 3, 3] w"
    return f"""g (float[1, 40, 7, 6] x, {filters}) => (float[a, b, c, d] y)
        {{ y = ConvTranspose{attributes}(x, {weights}) }}"""


@pytest.mark.parametrize(
    ("words", "pads"),
    [
        ("", [2, 2, 2, 2]),
        ("pads = [1, 0, 2, 1]", [1, 2, 0, 1]),
        ("dilations = [2, 3], pads = [1, 0, 2, 1]", [3, 6, 2, 5]),
        ("dilations = [2, 2], output_padding = [1, 0]", [4, 4, 5, 4]),
        ('auto_pad = "SAME_LOWER"', [1, 1, 1, 1]),
    ],
)
def test_single_steps(words: str, pads: list[int]) -> None:
    """Depthwise: whichever dilation, no zeros are multiplied."""
    more = f"{words}, group = 40" if words else "group = 40"
    graph = optimized(of(more, 1))
    (made,) = [node for node in graph if node.op_type == "Conv"]
    assert list(made.attributes["pads"].as_ints()) == pads
    assert "ConvTranspose" not in operators(graph)


@pytest.mark.parametrize(
    ("words", "features"),
    [
        ("strides = [2, 1]", 20),
        ("pads = [3, 0, 0, 0]", 20),  # cut off more than a filter reaches
        ("output_shape = [9, 8]", 20),
        ("", 1),  # one product of all taps
    ],
)
def test_others_stay(words: str, features: int) -> None:
    assert "ConvTranspose" in operators(optimized(of(words, features)))


def test_of_any_size() -> None:
    """One program: how it is padded does not depend on sizes."""
    text = """g (float[1, 12, a, b] x) => (float[1, 12, c, d] y)
        { y = ConvTranspose<group = 12, pads = [1, 0, 0, 2]>(x, w) }"""
    r = np.random.default_rng(2)
    w = r.standard_normal((12, 1, 3, 4), np.float32)
    model = proto(text)
    model.graph.initializer.append(numpy_helper.from_array(w, "w"))
    program = nanoloom.compile(model)
    for h, width in ((5, 4), (19, 33), (4, 9)):
        x = r.standard_normal((1, 12, h, width), np.float32)
        right = np.zeros((1, 12, h + 2, width + 3))
        size = np.zeros_like(right)
        for i, j in np.ndindex(3, 4):
            place = (slice(None), slice(None), slice(i, i + h), slice(j, j + width))
            right[place] += x.astype(np.float64) * w[:, :, i : i + 1, j].reshape(
                12, 1, 1
            )
            size[place] += abs(x) * abs(w[:, :, i : i + 1, j].reshape(12, 1, 1))
        cut = (slice(None), slice(None), slice(1, None), slice(0, -2))
        bound = 14 * np.finfo(np.float32).eps * size[cut]
        got = program({"x": x})["y"]
        assert (abs(got - right[cut]) <= bound).all()
        assert not (abs(right[cut]) <= bound).all()
    assert not program.open.reason


@pytest.mark.parametrize("version", [7, 9, 13, 21])
def test_filters_that_come_with_the_call(version: int) -> None:
    """In old files, too, where bounds of slices were no inputs."""
    model = proto("""g (float[1, 4, 3, 2] x, float[4, 1, 4, 1] w)
        => (float[1, 4, 6, 2] y) { y = ConvTranspose<group = 4>(x, w) }""")
    model.opset_import[0].version = version
    r = np.random.default_rng(3)
    x, w = (r.integers(-4, 5, s).astype("f") for s in ((1, 4, 3, 2), (4, 1, 4, 1)))
    right = np.zeros((1, 4, 6, 2))
    for j in range(4):
        right[:, :, j : j + 3] += x * w[:, 0, j].reshape(1, 4, 1, 1)
    np.testing.assert_array_equal(nanoloom.compile(model)({"x": x, "w": w})["y"], right)
