"""Which layouts are chosen, what they make of a function, and how they are shown."""

from __future__ import annotations

from typing import Any

import onnx
import onnx_ir
import pytest

from nanoloom import emit
from nanoloom.fusion.layouts.layout import FIRST, LAST, Layout, blocks
from nanoloom.fusion.layouts.stage import plan_layouts
from nanoloom.ir import mlir
from nanoloom.notation import Buffer, axes, computation
from nanoloom.options import CompileOptions
from tests.filecheck import check_text
from tests.fusion.layouts.test_networks import TARGET, planned
from tests.linalg.bounds import sample
from tests.linalg.single import model_of

PIXELS = [1, 1, 1, 1]


def convolution(
    channels: int, size: int, features: int, side: int = 1, **words: Any
) -> Any:
    shapes = (1, channels, size, size), (features, channels, side, side)
    arrays = [sample(i, shape, "float32") for i, shape in enumerate(shapes)]
    return model_of("Conv", arrays, words, constants=(1,))[0]


def chosen(model: Any, only: Layout | None = None) -> set[Layout]:
    """The layouts of what products make."""
    with mlir.context():
        _, plan = planned(model, only)
        find, products = plan.edges.links.find, plan.edges.products
        return {plan.chosen.get(find(made.features), LAST) for made in products}


def text_of(model: Any, only: Layout) -> str:
    with mlir.context():
        module, plan = planned(model, only)
        plan.apply()
        return str(module.module)


def test_large_images_stay_as_the_model_has_them() -> None:
    """A transpose of 3,136 pixels behind a product costs more than rows of pixels."""
    assert chosen(convolution(24, 56, 144)) == {FIRST}


def test_pages_apart_are_not_read_in_turns() -> None:
    """A pixel's channels in a page each cost more than a product of few rows saves."""
    for channels, size, features in ((256, 56, 64), (512, 32, 256), (64, 56, 64)):
        assert chosen(convolution(channels, size, features)) == {FIRST}


def test_small_images_have_their_channels_last() -> None:
    assert chosen(convolution(512, 7, 2048)) == {LAST}
    assert chosen(convolution(1024, 14, 256)) == {LAST}
    assert chosen(convolution(64, 7, 64)) == {LAST}


def test_windows_have_their_channels_last() -> None:
    assert chosen(convolution(24, 56, 144, 3, pads=PIXELS)) == {LAST}


def test_blocks() -> None:
    """Channels become two loops, at both ends of the tensors; filters stay."""
    check_text(
        text_of(convolution(32, 6, 48, 3, pads=PIXELS), blocks(16)),
        """
    CHECK: [[X:#map[0-9]*]] = {{.*}} -> (d4, d1 + d5, d2 + d6, d7)>
    CHECK: [[W:#map[0-9]*]] = {{.*}} -> (d0, d3, d4, d7, d5, d6)>
    CHECK: [[Y:#map[0-9]*]] = affine_map<(d0, {{.*}}, d7) -> (d0, d1, d2, d3)>
    CHECK: insert_slice {{.*}}[0, 0, 1, 1, 0] [2, 1, 6, 6, 16] [1, 1, 1, 1, 1]
    CHECK: indexing_maps = [[[X]], [[W]], [[Y]]]
    CHECK-SAME: tensor<2x8x8x16xf32>, tensor<3x16x2x16x3x3xf32>
    CHECK: return {{.*}} : tensor<1x48x6x6xf32>
    """,
    )


def test_channels_first_are_not_turned() -> None:
    check_text(
        text_of(convolution(32, 6, 48), FIRST),
        """
    CHECK: [[X:#map[0-9]*]] = {{.*}} -> (d3, d1, d2)>
    CHECK: [[W:#map[0-9]*]] = {{.*}} -> (d0, d3)>
    CHECK: [[Y:#map[0-9]*]] = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
    CHECK: indexing_maps = [[[X]], [[W]], [[Y]]]
    CHECK-NOT: linalg.generic
    CHECK: return
    """,
    )


def test_it_is_shown() -> None:
    """--emit layout: of each set of tensors what was chosen, and what more else is."""
    shown: list[str] = []
    model = onnx_ir.from_proto(convolution(24, 56, 144))
    emit.emit_stage(
        model, "layout", CompileOptions(TARGET), lambda *text: shown.append(text[-1])
    )
    check_text(
        shown[0],
        """
    CHECK: tested: channels first
    CHECK-NEXT: f32, {{.*}}56x56x144
    CHECK-NEXT: channels last: +{{[0-9,]+}} cycles
    """,
    )


@pytest.mark.parametrize("layout", [LAST, FIRST, blocks(8)], ids=str)
def test_one_for_all(layout: Layout) -> None:
    assert chosen(convolution(24, 9, 40), layout) == {layout}


def test_blocks_that_do_not_divide_the_channels_are_none() -> None:
    assert chosen(convolution(24, 9, 40), blocks(16)) == {LAST}


def test_wide_pools_and_norms_of_channels_stay_last() -> None:
    """What goes by many pixels or over channels has them side by side."""
    others: dict[str, dict[str, Any]] = {
        "MaxPool": {"kernel_shape": [2, 2], "strides": [1, 3]},
        "LpNormalization": {"axis": 1},
    }
    for op, words in others.items():
        model = convolution(24, 56, 144)
        more = onnx.helper.make_node(op, ["y0"], ["z"], **words)
        model.graph.node.append(more)
        model.graph.output[0].name = "z"
        assert chosen(model, FIRST) <= {LAST}


def test_groups_write_as_they_compute() -> None:
    """What would turn their result behind them is not free, either."""
    shapes = (1, 64, 14, 14), (64, 8, 3, 3)
    arrays = [sample(i, shape, "float32") for i, shape in enumerate(shapes)]
    words: dict[str, Any] = {"pads": PIXELS, "group": 8}
    model = model_of("Conv", arrays, words, constants=(1,))[0]
    relu = onnx.helper.make_node("Relu", ["y0"], ["z"])
    model.graph.node.append(relu)
    model.graph.output[0].name = "z"
    with mlir.context():
        _, plan = planned(model)
        assert {*plan.chosen.values()} <= {LAST}


def test_windows_that_slide_along_rows() -> None:
    """Those of a dense layer with several rows; by two pixels with a tap beside."""
    for taps, strides, row, slides in (
        ((3, 3), (1, 1), 30, True),
        ((3, 1), (1, 1), 30, True),
        ((3, 3), (2, 2), 30, True),
        ((7, 1), (2, 2), 30, False),
        ((1, 3), (1, 1), 1, False),
    ):
        shapes = (1, 3, row, 40), (32, 3, *taps)
        arrays = [sample(i, shape, "float32") for i, shape in enumerate(shapes)]
        model, _ = model_of("Conv", arrays, {"strides": strides}, constants=(1,))
        with mlir.context():
            _module, plan = planned(model)  # which has what the plan is of
            (made,) = plan.edges.products
            assert made.slides == slides


def test_windows_with_steps_have_many_channels_last() -> None:
    """A few are read as they come: those of a tile's sum stay in the first level."""
    steps: dict[str, Any] = {"pads": PIXELS, "strides": [2, 2]}
    for channels, size, features, layout in (
        (3, 14, 768, FIRST),
        (384, 14, 768, LAST),
        (32, 56, 64, FIRST),
        (64, 71, 64, LAST),
        (128, 56, 128, LAST),
    ):
        with mlir.context():
            _, plan = planned(convolution(channels, size, features, 3, **steps))
            (made,) = plan.edges.products
            assert plan.chosen[plan.edges.links.find(made.parts)] == layout


def test_loops_with_names_stay() -> None:
    """Who writes index expressions says how they go."""
    x, y = axes("x y")
    a, b, c = Buffer("a", (8, 6)), Buffer("b", (6, 9)), Buffer("c", (8, 9))
    k = axes("k")[0]
    c[x, y] += a[x, k] * b[k, y]
    with mlir.context():
        plan = plan_layouts(computation(c).lower(), TARGET, FIRST)
        assert not plan.choices and not plan.chosen
