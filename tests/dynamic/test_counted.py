"""Shapes that depend on data behind open dimensions: one program, for all of both."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper, parser

import nanoloom
from nanoloom.cache import Cache
from tests.dynamic.compared import LENGTHS, PAIRS, Arrays, compare, session, uniform

HEAD = '<ir_version: 8, opset_import: ["" : 18]>\n'
CONSTANTS = {
    "half": np.array([0.5], np.float32),
    "zero": np.array([0]),
    "one": np.array([1]),
    "two": np.array([2]),
    "hundred": np.array([100]),
    "first": np.array(0),
    "step": np.array(1),
    "least": np.array([0.3], np.float32),
    "overlap": np.array([0.5], np.float32),
    "boxes": np.array([20]),
}
LENGTH = "shape = Shape(x) n = Gather<axis = 0>(shape, zero)"
# The first elements are found in the data, or are as many as a size says.
OF_ROWS = {
    "compress": """float[k, 3] y) { column = Slice(x, zero, one, one)
        flat = Squeeze(column, one) good = Greater(flat, half)
        y = Compress<axis = 0>(x, good) }""",
    "places": """int64[2, k] y) { good = Greater(x, half) y = NonZero(good) }""",
    "reduced": """float[3] y, float[k, 3] z) { good = Greater(x, half)
        found = NonZero(good) turned = Transpose<perm = [1, 0]>(found)
        places = Gather<axis = 1>(turned, zero) kept = GatherND(x, places)
        padded = Concat<axis = 0>(kept, x)
        y = ReduceMax<keepdims = 0>(padded, zero) z = Softmax<axis = 0>(kept) }""",
    "range": f"""int64[k] y) {{ {LENGTH} few = Min(n, hundred) end = Squeeze(few)
        y = Range(first, end, step) }}""",
    "front": f"""float[k, 3] y) {{ {LENGTH} few = Min(n, hundred)
        y = Slice(x, zero, few, zero) }}""",
    "half": f"""float[k, 3] y) {{ {LENGTH} few = Div(n, two)
        y = Slice(x, zero, few, zero) }}""",
    "share": f"""float[k, 3] y) {{ {LENGTH} all = Cast<to = 1>(n) few = Mul(all, least)
        whole = Ceil(few) end = Cast<to = 7>(whole) y = Slice(x, zero, end, zero) }}""",
    "root": f"""float[n, 3] y) {{ {LENGTH} all = Cast<to = 1>(n) root = Sqrt(all)
        y = Div(x, root) }}""",
    "repeated": f"""float[k, 3] y) {{ {LENGTH} few = Min(n, two) both = Concat<axis = 0>
        (few, one) y = Tile(x, both) }}""",
}
OF_TWO = {
    "sorted": """float[batch, k] y, int64[batch, k] i)
        { shape = Shape(x) n = Gather<axis = 0>(shape, one) y, i = TopK(x, n) }""",
    "best": """float[batch, k] y, int64[batch, k] i)
        { shape = Shape(x) n = Gather<axis = 0>(shape, one) both = Concat<axis = 0>
        (n, hundred) k = ReduceMin(both) y, i = TopK(x, k) }""",
    "places": """int64[2, k] y) { good = Less(x, half) y = NonZero(good) }""",
    "elements": """float[k] y) { good = Less(x, half) flat = Reshape(x, minus)
        all = Reshape(good, minus) y = Compress(flat, all) }""",
}


def model(text: str, constants: Mapping[str, np.ndarray]) -> onnx.ModelProto:
    made = parser.parse_model(HEAD + text)
    read = {name for node in made.graph.node for name in node.input}
    made.graph.initializer.extend(
        numpy_helper.from_array(array, name)
        for name, array in constants.items()
        if name in read
    )
    return made


@pytest.mark.drawn(one_in=2)
@pytest.mark.parametrize("name", OF_ROWS)
def test_behind_an_open_length(tmp_path: Path, name: str) -> None:
    made = model(f"g (float[length, 3] x) => ({OF_ROWS[name]}", CONSTANTS)
    compare(made, [{"length": n} for n in LENGTHS], tmp_path, uniform, 1e-5)


@pytest.mark.drawn(one_in=2)
@pytest.mark.parametrize("name", OF_TWO)
def test_behind_two_dimensions(tmp_path: Path, name: str) -> None:
    constants = CONSTANTS | {"minus": np.array([-1])}
    made = model(f"g (float[batch, length] x) => ({OF_TWO[name]}", constants)
    sizes = [{"batch": b, "length": n} for b, n in PAIRS]
    compare(made, sizes, tmp_path, uniform, 0)


def test_suppression_of_any_number_of_boxes(tmp_path: Path) -> None:
    """Of any batch and any number of boxes, of two classes each."""
    text = """g (float[batch, n, 4] b, float[batch, 2, n] s) => (int64[k, 3] y)
        { y = NonMaxSuppression(b, s, boxes, overlap, least) }"""
    sizes = [{"batch": b, "n": n} for b, n in PAIRS]
    made = compare(model(text, CONSTANTS), sizes, tmp_path, uniform, 0)
    assert len({len(y["y"]) for y in made}) > 5


def test_elements_that_a_size_says_are_all_there(tmp_path: Path) -> None:
    """k is at most the length, and a program whose lengths are longer says so."""
    text = "g (float[length] x) => (float[k] y, int64[k] i) { y, i = TopK(x, boxes) }"
    made = model(text, CONSTANTS)
    compare(made, [{"length": n} for n in LENGTHS if n >= 20], tmp_path, uniform, 0)
    program = nanoloom.compile(made, threads=1, cache=Cache(tmp_path))
    with pytest.raises(nanoloom.errors.Error, match="less than the requested k"):
        program({"x": np.zeros(7, np.float32)})


@pytest.mark.parametrize(("bound", "length"), [("longer", 300), ("shorter", 7)])
def test_a_bound_that_samples_do_not_show(
    tmp_path: Path, bound: str, length: int
) -> None:
    """max(n, 140) and n - 20 are others for sizes beyond what samples have."""
    made = {
        "longer": f"{LENGTH} k = Max(n, much) end = Squeeze(k)",
        "shorter": f"{LENGTH} k = Sub(n, boxes) k0 = Max(k, zero) end = Squeeze(k0)",
    }
    text = f"""g (float[length, 3] x) => (int64[k] y)
        {{ {made[bound]} y = Range(first, end, step) }}"""
    graph = model(text, CONSTANTS | {"much": np.array([140])})
    program = nanoloom.compile(graph, threads=1, cache=Cache(tmp_path))
    peer = session(graph)
    for n in (length, 131, 20, 150):
        x = uniform(graph, {"length": n})
        (wanted,) = peer.run(None, dict(x))
        np.testing.assert_array_equal(program(dict(x))["y"], wanted)


def test_numbers_that_meet(tmp_path: Path) -> None:
    """Two numbers that the data say are equal, or the program says that they differ."""
    text = """g (float[n] x, float[m] z) => (float[k] y)
        { good = Greater(x, half) left = Compress(x, good)
        fine = Greater(z, half) other = Compress(z, fine) y = Add(left, other) }"""
    graph = model(text, CONSTANTS)

    def halves(_: onnx.ModelProto, dims: Mapping[str, int]) -> Arrays:
        x, z = (np.zeros(dims[name], np.float32) for name in "nm")
        few = min(dims.values()) // 2 + 2 if min(dims.values()) > 3 else 0
        x[:few], z[dims["m"] - few :] = 1, np.arange(few) + 1
        return {"x": x, "z": z}

    sizes = [{"n": n, "m": m} for n, m in PAIRS]
    compare(graph, sizes, tmp_path, halves, 0)
    program = nanoloom.compile(graph, threads=1, cache=Cache(tmp_path))
    with pytest.raises(nanoloom.errors.Error, match="sizes that must be equal"):
        program({"x": np.ones(5, np.float32), "z": np.ones(4, np.float32)})


def test_a_library_takes_any_size(tmp_path: Path) -> None:
    made = model(f"g (float[length, 3] x) => ({OF_ROWS['compress']}", CONSTANTS)
    program = nanoloom.compile(made, threads=1, cache=Cache(tmp_path))
    with nanoloom.load(program.save(tmp_path / "compressed.so"), threads=1) as loaded:
        for n in LENGTHS:
            x = dict(uniform(made, {"length": n}))
            found, wanted = loaded(x)["y"], program(x)["y"]
            assert found.shape == wanted.shape and (found == wanted).all()
