"""Which transposed convolutions multiply all taps at once."""

from __future__ import annotations

import onnx_ir as ir
import pytest

from nanoloom.graph.stage import optimize
from nanoloom.graph.taps_in_product import TAPS_IN_PRODUCT, TransposedFilters
from nanoloom.linalg.operators import OPERATORS
from nanoloom.target import by_name
from tests.graph.models import operators, proto


def filters(
    channels: int, features: int, tap: int, stride: int, dilation: int = 1
) -> TransposedFilters:
    """Of an image, the same along both axes."""
    numbers = [(n, n) for n in (tap, stride, dilation)]
    return TransposedFilters(channels, features, *numbers)


@pytest.mark.parametrize(
    ("given", "columns"),
    [
        (filters(128, 3, 4, 2), True),
        (filters(3, 3, 4, 2), False),  # what they make goes through memory
        (filters(128, 16, 4, 2), False),  # vectors are full
        (filters(128, 16, 4, 1, 2), True),  # zeros between the taps
        (filters(48, 64, 4, 3, 3), True),
        (filters(4, 2, 2, 2), True),  # side by side: nothing is added up
        (filters(128, 3, 1, 1), False),  # nothing to add up
        (filters(1, 1, 4, 2), False),  # vectors are of groups
    ],
)
def test_whether_one_product_is_less_work(
    given: TransposedFilters, columns: bool
) -> None:
    assert given.are_columns(turned=False) == columns


def test_planes_that_are_to_be_made_are_work() -> None:
    assert filters(24, 1, 2, 2).are_columns(turned=False)
    assert not filters(24, 1, 2, 2).are_columns(turned=True)
    assert filters(56, 1, 9, 2).are_columns(turned=True)


def test_nothing_is_turned() -> None:
    ones = ", ".join("1" for _ in range(64 * 9))
    text = f"""g (float[1, 64, 5, 4] x) => (float[1, 1, 7, 6] y)
        <float[64, 1, 3, 3] w = {{{ones}}}> {{ y = ConvTranspose(x, w) }}"""
    model = ir.from_proto(proto(text))
    target = by_name("x86-64-v4")
    graph = optimize(model, OPERATORS.keys(), None, target).graph
    assert operators(graph) == ["ConvTranspose"]
    assert all(TAPS_IN_PRODUCT in node.attributes for node in graph)


def test_a_filter_for_each_channel_is_of_planes() -> None:
    """Not behind a convolution, whose channels lie last."""
    head = "g (float[1, 6, 5, 4] x, float[6, 1, 3, 3] w, float[6, 6, 1, 1] v) =>"
    step = "ConvTranspose<group = 6, strides = [2, 2]>"
    target = by_name("x86-64-v4")
    for text, kept in (
        (f"{head} (float[1, 6, 11, 9] y) {{ y = {step}(x, w) }}", True),
        (f"{head} (float[1, 6, 11, 9] y) {{ z = Conv(x, v) y = {step}(z, w) }}", False),
    ):
        model = ir.from_proto(proto(text))
        graph = optimize(model, OPERATORS.keys(), None, target).graph
        (node,) = [node for node in graph if node.op_type == "ConvTranspose"]
        assert (TAPS_IN_PRODUCT in node.attributes) == kept
