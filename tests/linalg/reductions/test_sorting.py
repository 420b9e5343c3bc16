"""TopK: exact values, and the first of equal ones first."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nanoloom
from nanoloom.emit import emit_stage
from nanoloom.errors import Error
from nanoloom.options import CompileOptions
from nanoloom.target import by_name
from tests.drawn_cases import few_examples
from tests.linalg.bounds import FLOATS, INTEGERS, sample
from tests.linalg.movement.test_shaping import same
from tests.linalg.single import run_node

few = few_examples(15)


def best(x: np.ndarray, k: int, axis: int, largest: bool) -> np.ndarray:
    """Indices of a stable sort."""
    wide = x.astype(np.float64) if x.dtype.kind in "fV" else x.astype(object)
    return np.argsort(-wide if largest else wide, axis=axis, kind="stable").take(
        range(k), axis
    )


@few
@given(
    st.sampled_from([(7,), (3, 5), (2, 3, 4), (1, 1, 6, 1)]),
    st.sampled_from((*FLOATS, *INTEGERS)),
    st.booleans(),
    st.data(),
)
def test_top_k(
    shape: tuple[int, ...], name: str, largest: bool, data: st.DataObject
) -> None:
    x = sample(1, shape, name, -3, 3)
    x[x == 1] = np.array(-0.0).astype(x.dtype)  # equal to 0: the first one wins
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    k = data.draw(st.integers(0, x.shape[axis]))
    values, places = run_node(
        "TopK",
        [x, np.array([k], np.int64)],
        constants=[1],
        outputs=2,
        version=24,
        axis=axis,
        largest=int(largest),
    )
    right = best(x, k, axis, largest)
    same(values, np.take_along_axis(x, right, axis))
    same(places, right)


@pytest.mark.parametrize("largest", [0, 1])
def test_extremes_and_nan(largest: int) -> None:
    nan, inf = np.nan, np.inf
    x = np.array([1, -inf, nan, 0, inf, -0.0, -nan, 3e38], np.float32)
    values, places = run_node(
        "TopK",
        [x, np.array([8], np.int64)],
        constants=[1],
        outputs=2,
        version=24,
        largest=largest,
    )
    order = [2, 6, 4, 7, 0, 3, 5, 1] if largest else [1, 3, 5, 0, 7, 4, 2, 6]
    assert places.tolist() == order
    np.testing.assert_array_equal(values, x[order])


def test_too_many() -> None:
    with pytest.raises(Error):
        run_node(
            "TopK",
            [np.zeros(3, np.float32), np.array([4], np.int64)],
            constants=[1],
            outputs=2,
        )


@pytest.mark.parametrize(("value", "largest"), [(0, 1), (2**32 - 1, 0)])
def test_equal_ones_that_come_last_of_all(value: int, largest: int) -> None:
    """Their keys have all bits set, as what a reduction begins with."""
    x = np.full((3, 5), value, np.uint32)
    x[1, 3] = 7
    values, places = run_node(
        "TopK",
        [x, np.array([4], np.int64)],
        constants=[1],
        outputs=2,
        version=24,
        largest=largest,
    )
    right = best(x, 4, 1, bool(largest))
    same(values, np.take_along_axis(x, right, 1))
    same(places, right)


@pytest.mark.parametrize("axis", [0, 1])
def test_short_rows_are_in_vectors(axis: int) -> None:
    """No loop takes keys one by one; and one program does for all sizes."""
    text = f"""few (float[rows, columns] x) => (v, p)
        {{ k = Constant<value_ints = [2]>() v, p = TopK<axis = {axis}>(x, k) }}"""
    header = '<ir_version: 10, opset_import: ["": 24]>'
    program = nanoloom.compile(onnx.parser.parse_model(f"{header} {text}"))
    for shape in ((5, 37), (2, 2), (700, 3)):
        x = sample(4, shape, "float32", -9, 9).round()
        right = best(x, 2, axis, True)
        same(program({"x": x})["p"], right)
    assert not program.open.reason


def test_each_of_short_rows_reads_the_one_before_it() -> None:
    """Of what was found only that: with older ones, too, ways from one to another
    double with each, and tiling makes as many stages."""
    model = onnx.parser.parse_model("""<ir_version: 10, opset_import: ["": 24]>
        few (float[40, 256] x) => (v, p)
        { k = Constant<value_ints = [8]>() v, p = TopK(x, k) }""")
    texts: list[str] = []
    graph, options = onnx_ir.from_proto(model), CompileOptions(by_name("x86-64-v3"))
    emit_stage(graph, "linalg", options, lambda *given: texts.append(given[-1]))
    found = [x for x in "".join(texts).splitlines() if '"reduction"' in x]
    reads = [x[x.index(" ins(") : x.index(" outs(")].count("%") for x in found]
    assert reads == [1] + 7 * [2]


@pytest.mark.parametrize("name", ["int64", "float64", "float16", "int32"])
def test_two_of_many_short_rows(name: str) -> None:
    x = sample(7, (120, 16), name, -9, 9)
    values, places = run_node(
        "TopK", [x, np.array([2], np.int64)], constants=[1], outputs=2, version=24
    )
    right = best(x, 2, 1, True)
    same(values, np.take_along_axis(x, right, 1))
    same(places, right)
