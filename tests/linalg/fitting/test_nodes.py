"""Inputs that do not fit together are refused in one sentence, wherever they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import nanoloom
from nanoloom.cache import Cache
from nanoloom.cli.check import examine
from nanoloom.cli.progress import Watch
from nanoloom.errors import InternalError, ModelError
from tests.linalg.single import model_of, run_node

Attributes = dict[str, Any]


def f(*shape: int) -> np.ndarray:
    return np.ones(shape, np.float32)


def u(*shape: int) -> np.ndarray:
    return np.ones(shape, np.uint8)


X, Q = f(1, 4, 9, 9), u(1, 4, 9, 9)
TWO = {"kernel_shape": [2, 2]}
ONE, ZERO = f(1), np.zeros(1, np.uint8)
CASES: list[tuple[str, list[np.ndarray | None], Attributes, str]] = [
    ("Conv", [X, f(8, 3, 3, 3)], {}, "read 3 channels, its input has 4"),
    ("Conv", [X, f(8, 4, 3, 3)], {"group": 2}, "read 8 channels"),
    ("Conv", [X, f(7, 2, 3, 3)], {"group": 2}, "7 filters are not 2 equal groups"),
    ("Conv", [X, f(8, 4, 3, 3)], {"group": 0}, "group is 0"),
    ("Conv", [X, f(8, 4, 3, 3), f(7)], {}, r"input 2 is \[7\], expected \[8\]"),
    ("Conv", [X, f(8, 4, 3, 3), f(1)], {}, r"input 2 is \[1\], expected \[8\]"),
    ("Conv", [X, f(8, 4, 3, 3)], {"kernel_shape": [2, 2]}, "kernel_shape is"),
    ("ConvInteger", [Q, u(8, 3, 3, 3)], {}, "read 3 channels"),
    ("ConvInteger", [Q, u(32)], {}, "Number of spatial dimensions"),
    ("ConvInteger", [u(4, 2), u(4, 2)], {}, "at least 3 dimensions"),
    ("ConvInteger", [Q, u(8, 4, 3, 3), u(3)], {}, "input 2"),
    ("ConvInteger", [Q, u(8, 4, 3, 3), u(1), u(3)], {}, "input 3"),
    (
        "QLinearConv",
        [Q, ONE, ZERO, u(8, 3, 2, 2), ONE, ZERO, ONE, ZERO],
        {},
        "read 3 channels",
    ),
    (
        "QLinearConv",
        [Q, ONE, ZERO, u(8, 4, 2, 2), f(7), ZERO, ONE, ZERO],
        {},
        "input 4",
    ),
    ("ConvTranspose", [X, f(3, 8, 3, 3)], {}, "read 3 channels"),
    ("ConvTranspose", [X, f(4, 8, 3, 3), f(7)], {}, "input 2"),
    ("ConvTranspose", [X, f(4, 8, 3, 3)], {"pads": [9] * 4}, "output would have"),
    ("DeformConv", [X, f(8, 3, 2, 2), f(1, 8, 8, 8)], {}, "read 3 channels"),
    ("DeformConv", [X, f(8, 4, 2, 2), f(1, 6, 8, 8)], {}, "input 2"),
    (
        "DeformConv",
        [X, f(8, 4, 2, 2), f(1, 24, 8, 8)],
        {"offset_group": 3},
        "4 channels are not 3 equal groups of offsets",
    ),
    ("Gemm", [f(2, 3), f(3, 4), f(5)], {}, "does not spread"),
    ("LayerNormalization", [f(2, 3), f(3)], {"axis": 7}, "axis is 7"),
    ("LpNormalization", [f(2, 3)], {"axis": 2}, "axis is 2"),
    ("MeanVarianceNormalization", [f(2, 3)], {}, "axis is 2"),
    ("Clip", [f(2), f(2)], {}, "not one number"),
    ("Transpose", [f(2, 3)], {"perm": [1, 2]}, "attribute perm"),
    ("GatherElements", [f(3), np.zeros((2, 3), np.int64)], {}, "indices are"),
    (
        "ScatterElements",
        [f(3), np.zeros(2, np.int64), f(1)],
        {},
        "input 2",
    ),
    ("ScatterND", [f(3), np.zeros((2, 1), np.int64), f(3)], {}, "input 2"),
    ("ScatterND", [f(3), np.zeros((2, 0), np.int64), f(2, 3)], {}, "its indices are"),
    ("QuantizeLinear", [f(2, 3), f(2)], {"axis": 1}, "input 1"),
    ("ReverseSequence", [f(2, 3), np.zeros(2, np.int64)], {}, "input 1"),
    ("ReverseSequence", [f(2, 3), np.zeros(3, int)], {"batch_axis": 7}, "not 0 and 1"),
    ("InstanceNormalization", [f(4), f(1), f(1)], {}, r"input is \[4\], expected \[n"),
    ("MaxUnpool", [f(1, 1, 2, 2), np.zeros((1, 1, 4, 2), int)], TWO, r"\[1, 1, 4, 2\]"),
    (
        "MaxRoiPool",
        [X, f(2, 0)],
        {"pooled_shape": [2, 2]},
        "unification between 0 and 5",
    ),
    ("LSTM", [f(2, 3, 4), f(1, 20, 5), f(1, 20, 5)], {"hidden_size": 5}, "input 1"),
    ("LRN", [X], {"size": 0}, "size is 0"),
    ("Einsum", [f(2, 3), f(4, 5)], {"equation": "ij,jk->ik"}, "letter j is 3 and 4"),
    ("BitShift", [u(3), u(3)], {"direction": "UP"}, "'UP', expected LEFT or RIGHT"),
    ("DepthToSpace", [X], {"blocksize": 2, "mode": "RDC"}, "expected DCR or CRD"),
    ("ConvTranspose", [X, f(4, 8, 3, 3)], {"auto_pad": "SAME"}, "auto_pad is 'SAME'"),
    ("RoiAlign", [X, f(2, 4), np.zeros(2, int)], {"mode": "sum"}, "avg or max"),
    (
        "GRU",
        [f(2, 3, 4), f(1, 15, 4), f(1, 15, 5)],
        {"hidden_size": 5, "direction": "back"},
        "direction is 'back'",
    ),
    ("HannWindow", [np.array(23)], {"periodic": 10**6}, "periodic is 1000000"),
    ("ReduceMax", [X], {"keepdims": 1 << 40}, "keepdims is 1099511627776, expected"),
    ("Split", [f(6)], {"num_outputs": 3}, "num_outputs is 3, it has 1 outputs"),
]


@pytest.mark.drawn
@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize(("op", "inputs", "attributes", "said"), CASES)
def test_misfits(
    op: str,
    inputs: list[np.ndarray | None],
    attributes: Attributes,
    said: str,
    constant: bool,
    tmp_path: Path,
) -> None:
    """Compiling and `check` say the same."""
    constants = range(1, len(inputs)) if constant else ()
    model, _ = model_of(op, inputs, attributes, constants=constants)
    with pytest.raises(ModelError, match=said):
        nanoloom.compile(model, cache=Cache(tmp_path / "cache"))
    onnx.save(model, tmp_path / "model.onnx")
    with Watch() as watch:
        (problem,) = examine(tmp_path / "model.onnx", {}, watch).problems
    assert problem.node == "tested" and problem.operator == op


@pytest.mark.parametrize(("shape", "turned"), [((4, 5), 1), ((5, 4), 0)])
def test_sums_of_other_lengths(shape: tuple[int, int], turned: int) -> None:
    """ONNX's inference says nothing of them before opset 13."""
    given = [f(2, 3), f(*shape), f()]
    model, _ = model_of("Gemm", given, {"transB": turned}, version=9)
    wanted = (
        r"\[4, 5\], expected \[4, 3\]" if turned else r"\[5, 4\], expected \[3, 4\]"
    )
    with pytest.raises(ModelError, match=wanted):
        nanoloom.compile(model)


def test_axes_that_a_reduction_does_not_have(tmp_path: Path) -> None:
    for version, inputs, attributes in (
        (13, [f(2, 3), np.array([0, 5])], {}),
        (9, [f(2, 3)], {"axes": [0, 5]}),
    ):
        op = "ReduceMax" if version < 13 else "ReduceSum"
        constants = range(1, len(inputs))
        model, _ = model_of(
            op, inputs, attributes, constants=constants, version=version
        )
        onnx.save(model, tmp_path / "model.onnx")
        with Watch() as watch:
            (problem,) = examine(tmp_path / "model.onnx", {}, watch).problems
        assert "axis" in problem.reason


@pytest.mark.parametrize("op", ["CumSum", "CumProd"])
def test_an_axis_that_is_an_input(op: str) -> None:
    for constants in ((), (1,)):
        with pytest.raises(ModelError, match="axis is -3, its input has 2 dimensions"):
            axis = np.array(-3, np.int64)
            run_node(op, [f(2, 3), axis], constants=constants, version=26)


@pytest.mark.parametrize("shape", [(17,), (1, 3, 4), (2, 2, 3), (1, 2, 3, 4)])
def test_transformations_of_a_grid(shape: tuple[int, ...]) -> None:
    with pytest.raises(ModelError, match=r"input 0 is .*, expected \[1, 2, 3\]"):
        run_node("AffineGrid", [f(*shape), np.array([1, 1, 4, 4])], constants=[1])


@pytest.mark.parametrize("shape", [(9,), (1, 9, 3), (1, 9, 1, 1)])
def test_signals(shape: tuple[int, ...], tmp_path: Path) -> None:
    given = [f(*shape), np.array(2), None, np.array(4)]
    model, _ = model_of("STFT", given, {}, constants=[1, 3])
    onnx.save(model, tmp_path / "model.onnx")
    with Watch() as watch:
        (problem,) = examine(tmp_path / "model.onnx", {}, watch).problems
    assert problem.node == "tested"


@pytest.mark.parametrize("shape", [(0, 1, 4, 4), (1, 1, 0, 4)])
def test_nothing_is_resized_to_nothing(shape: tuple[int, ...]) -> None:
    with pytest.raises(ModelError, match="has nothing"):
        sizes = np.array([1, 1, 4, 4])
        run_node("Resize", [f(*shape), None, None, sizes], constants=[3])
    scales = np.array([1, 1, 1, 0.5], np.float32)
    (made,) = run_node("Resize", [f(*shape), None, scales], constants=[2])
    assert made.shape == (*shape[:3], 2)


def test_lists_that_are_none(tmp_path: Path) -> None:
    """`check` goes on behind what ONNX's inference refuses."""
    one, two = np.zeros(1, int), np.zeros((2, 1), int)
    for op, *given in (
        ("Slice", two, one), ("Slice", one, two), ("Slice", one, one, two),
        ("Split", two),
    ):  # fmt: skip
        numbered = range(1, len(given) + 1)
        model, _ = model_of(op, [f(3), *given], {}, constants=numbered)
        onnx.save(model, tmp_path / "model.onnx")
        with Watch() as watch:
            (problem,) = examine(tmp_path / "model.onnx", {}, watch).problems
        assert "do not fit together" in problem.reason or "one list" in problem.reason


def test_a_word_that_is_none_beside_constants_only() -> None:
    """ONNX's reference raises then, where nanoloom would ask it for the result."""
    with pytest.raises(ModelError, match="direction is 'UP'"):
        run_node("BitShift", [u(3), u(3)], constants=[0, 1], direction="UP")


def test_attributes_that_name_no_type() -> None:
    for op, x in (("Cast", {"to": 0}), ("EyeLike", {"dtype": 0})):
        with pytest.raises(ModelError, match="node tested"):
            run_node(op, [f(2, 2)], **x)


def test_bugs_of_ours_are_told_from_mistakes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def fail(*_: object) -> None:
        raise IndexError("a secret")

    monkeypatch.setitem(nanoloom.linalg.operators.OPERATORS, "Relu", fail)
    model, _ = model_of("Relu", [f(2)], {})
    with pytest.raises(InternalError) as found:
        nanoloom.compile(model, cache=Cache(tmp_path))
    assert str(found.value).startswith(
        "stage linalg, node tested (Relu): this is a bug of nanoloom (IndexError)"
    )
    assert isinstance(found.value.__cause__, IndexError)


def test_an_axis_of_which_inference_sees_the_lower_32_bits() -> None:
    inputs = [u(2), np.array(3), f(2)]
    with pytest.raises(ModelError, match="its axis is 1099511627776, expected places"):
        run_node("OneHot", inputs, constants=[1], axis=1 << 40)
    with pytest.raises(ModelError, match="its axis is 4611686018427387904, expected"):
        run_node("Gather", [f(2, 3), np.array([0])], axis=1 << 62)


@pytest.mark.parametrize("op", ["Max", "Mean", "Min", "Sum"])
def test_operands_of_old_operators(op: str) -> None:
    """Of opset 7, whose inference does not look; sizes that do not fit are no bug."""
    model = onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["": 7]>
        agraph (float[n, m, k] x) => (float[a, b, c] y)
        <float[2, 1, 3] w = {{1, 2, 3, 4, 5, 6}}> {{ y = {op}(w, x) }}""")
    program = nanoloom.compile(model)
    (got,) = program({"x": np.zeros((1, 1, 3), np.float32)}).values()
    assert got.shape == (2, 1, 3)
    with pytest.raises(nanoloom.ModelError, match="do not fit together"):
        program({"x": np.zeros((1, 5, 4), np.float32)})
