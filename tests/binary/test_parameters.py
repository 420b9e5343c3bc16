"""Weights are packed in pieces: the same bytes, in little memory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import nanoloom
from nanoloom.binary.parameters import ParameterBlock
from nanoloom.cache import Cache
from nanoloom.weights import chunked_conversion
from nanoloom.weights.chunked_conversion import PIECE
from nanoloom.weights.derivations import Cast, Transposed, reshaped
from nanoloom.weights.panels import Panels
from nanoloom.weights.weight import Weight, weight_of
from tests.c_libraries import lend_runtime

BF16 = np.dtype(ml_dtypes.bfloat16)
MB = 1 << 20


def sample(*shape: int) -> np.ndarray:
    return np.random.default_rng(1).standard_normal(shape).astype(np.float32)


def block_of(weight: Weight, path: Path) -> bytes:
    """The bytes that are written for one parameter."""
    block = ParameterBlock()
    assert block.offset(weight) == 0
    block.write(path)
    made = path.read_bytes()
    assert len(made) == block.size
    return made


# ---- bytes ---------------------------------------------------------------------------

FORMS = {
    "flat": ((300, 77), None),
    "many": ((3, 5, 70, 11), None),
    "ragged": ((130, 301), Panels((), 1, (0,), 16)),
    "turned": ((301, 130), Panels((), 0, (1,), 32, 2)),
    "batch": ((7, 40, 50), Panels((0,), 2, (1,), 16, 2)),
    "windows": ((60, 3, 3, 20), Panels((), 0, (1, 2, 3), 16)),
    "steps": ((33, 200), Panels((), 1, (0,), 32, 2, steps=4)),
}


def test_a_library_is_written_in_one_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its parameters go into it, behind the code: nowhere else is room for them."""
    weights = np.arange(3000, dtype=np.float32).reshape(30, 100)
    graph = helper.make_graph(
        [helper.make_node("Add", ["x", "w"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [30, 100])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [30, 100])],
        [onnx.numpy_helper.from_array(weights, "w")],
    )
    program = nanoloom.compile(helper.make_model(graph), cache=Cache(tmp_path / "c"))

    def refuse(*_: object) -> None:
        raise AssertionError("the parameters have a file of their own")

    monkeypatch.setattr(ParameterBlock, "write", refuse)
    file = program.save(tmp_path / "model.so")
    assert file.read_bytes().count(weights.tobytes()) == 1
    loaded = nanoloom.load(file)
    made = loaded({"x": np.ones((30, 100), np.float32)})["y"]
    np.testing.assert_array_equal(made, weights + 1)


@pytest.mark.parametrize("piece", [1, 3000, 40000])
@pytest.mark.parametrize("name", FORMS)
def test_pieces_are_the_whole(
    name: str, piece: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shape, panels = FORMS[name]
    given = weight_of(sample(*shape))
    for weight in (given, given.then(Cast(BF16))):
        array = weight.array()
        packed = array if panels is None else panels.of(array)
        made = weight if panels is None else weight.then(panels)
        whole = block_of(made, tmp_path / "whole")
        with monkeypatch.context() as patch:
            patch.setattr(chunked_conversion, "PIECE", piece)
            assert block_of(made, tmp_path / "pieces") == whole
        assert whole[: packed.nbytes] == packed.tobytes()
        assert not any(whole[packed.nbytes :])


def test_panels_with_sums(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    array = np.random.default_rng(2).integers(-128, 128, (64, 333)).astype(np.int8)
    weight = weight_of(array).then(Panels((), 1, (0,), 16, 4, sums=-128))
    whole = block_of(weight, tmp_path / "whole")
    monkeypatch.setattr(chunked_conversion, "PIECE", 2000)
    assert block_of(weight, tmp_path / "pieces") == whole


@pytest.mark.parametrize(("shape", "piece"), [((0, 5), 1), ((), 1), ((4, 0, 3), 8)])
def test_next_to_nothing(
    shape: tuple[int, ...],
    piece: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(chunked_conversion, "PIECE", piece)
    array = np.full(shape, 3, np.float32)
    assert block_of(weight_of(array), tmp_path / "file").startswith(array.tobytes())


def test_equal_weights_have_one_place(tmp_path: Path) -> None:
    """Made of one array in the same ways, under whatever shape they are read."""
    array, other = sample(6, 8), sample(6, 8)
    weight, panels = weight_of(array), Panels((), 1, (0,), 4)
    block = ParameterBlock()
    first = block.offset(weight)
    assert block.offset(weight_of(array, "again")) == first
    assert block.offset(reshaped(weight, (48,))) == first
    turned = block.offset(weight.then(Transposed((1, 0))))
    packed = block.offset(weight.then(panels))
    assert block.offset(weight_of(array).then(Transposed((1, 0)))) == turned
    assert block.offset(weight_of(array).then(Panels((), 1, (0,), 4))) == packed
    assert block.offset(reshaped(weight, (8, 6)).then(panels)) not in (packed, first)
    assert block.offset(weight_of(other)) != first
    assert len(block.entries) == 5
    block.write(tmp_path / "file")
    made = (tmp_path / "file").read_bytes()
    assert made[first:].startswith(array.tobytes())
    assert made[turned:].startswith(array.T.tobytes())


# ---- memory --------------------------------------------------------------------------

SCRIPT = """
import sys
from pathlib import Path
import nanoloom
from nanoloom.cache import Cache

cache, precision, *models = sys.argv[1:]
for model in models:
    nanoloom.compile(model, threads=1, cache=Cache(Path(cache)), precision=precision)
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):  # not ru_maxrss: that begins with the parent's
            print(int(line.split()[1]) * 1024)
"""


def peaks(kind: str, folder: Path, *sizes: int) -> list[int]:
    """The most memory of a process that compiles and loads products, after each.

    It is all that is resident: pages of the weight's file, too, where they are mapped.
    sizes: bytes of their weights, ascending.
    """
    lend_runtime(Cache(folder / "c"))
    words = [folder / "c", "bf16" if kind == "bf16" else "f32"]
    words += [layer(kind, size, folder / str(size)) for size in sizes]
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *words],
        capture_output=True,
        text=True,
        check=True,
    )
    return [int(line) for line in done.stdout.split()]


def layer(kind: str, size: int, folder: Path) -> Path:
    """A product whose weight has so many bytes, zeros in a file without blocks."""
    folder.mkdir()
    depth, width = 1024, size // 1024 // 4
    shape = {"transposed": [width, depth], "filters": [width, depth, 1, 1]}.get(
        kind, [depth, width]
    )
    weight = TensorProto(
        name="w",
        data_type=TensorProto.FLOAT,
        dims=shape,
        data_location=TensorProto.EXTERNAL,
    )
    weight.external_data.add(key="location", value="weights")
    with (folder / "weights").open("wb") as file:
        file.truncate(size)
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
    rest = [1, 1] if kind == "filters" else []
    if kind == "filters":
        nodes = [helper.make_node("Conv", ["x", "w"], ["y"])]
    if kind == "transposed":
        turned = helper.make_node("Transpose", ["w"], ["t"], perm=[1, 0])
        nodes = [turned, helper.make_node("MatMul", ["x", "t"], ["y"])]
    sides = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [4, extent, *rest])
        for name, extent in (("x", depth), ("y", width))
    ]
    graph = helper.make_graph(nodes, "g", sides[:1], sides[1:], [weight])
    opsets = [helper.make_opsetid("", 18)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    path = folder / "model.onnx"
    onnx.save(model, path)
    return path


@pytest.mark.drawn(one_in=2)
@pytest.mark.parametrize("kind", ["product", "transposed", "filters", "bf16"])
def test_a_weight_is_in_memory_once(kind: str, tmp_path: Path) -> None:
    """And a piece of it three times: as it is read, in order, and packed.

    Less what the same process took for a weight of no size to speak of.
    """
    size = 160 * MB
    least, most = peaks(kind, tmp_path, MB, size)
    taken = most - least
    assert taken <= 1.25 * size + 3 * PIECE
    assert taken >= size / 2  # else nothing was measured
