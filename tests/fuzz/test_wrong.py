"""What is said of the references is so: exact arithmetic decides, nanoloom agrees."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper

from nanoloom.errors import Error
from tests.fuzz.asked import asked_about
from tests.fuzz.magnitudes import MAGNITUDES
from tests.fuzz.oracle import opened
from tests.fuzz.wrong import WRONG, distrusted, is_wrong
from tests.linalg.single import model_of, run_node

Arrays = list[np.ndarray | None]


def f(*numbers: float) -> np.ndarray:
    return np.array(numbers, np.float32)


def peer(source: str, op: str, inputs: Arrays, version: int, **attributes: Any) -> Any:
    """What a reference gives, and whether it is asked."""
    names = ["" if x is None else f"x{i}" for i, x in enumerate(inputs)]
    node = helper.make_node(op, names, ["y0"], **attributes)
    feeds = {n: x for n, x in zip(names, inputs, strict=True) if x is not None}
    known = is_wrong(source, asked_about(node, feeds, version))
    return opened(source, node, version, feeds)(feeds)[0], known


def ours(op: str, inputs: Arrays, version: int, **attributes: Any) -> np.ndarray:
    places = [i for i, x in enumerate(inputs) if i and x is not None]
    return run_node(op, inputs, constants=places, version=version, **attributes)[0]


def test_nothing_is_added_to_beta() -> None:
    """Y = alpha A B + beta C, also where A B has no products."""
    given: Arrays = [np.zeros((1, 0), "f"), np.zeros((0, 2), "f"), f(4, 6)[None]]
    made, known = peer("ort", "Gemm", given, 20, beta=0.5)
    assert known and made.tolist() == [[4, 6]]
    assert ours("Gemm", given, 20, beta=0.5).tolist() == [[2, 3]]
    assert not peer("ort", "Gemm", given, 20)[1]


def test_the_largest_along_one_axis() -> None:
    """[N, C, L]: the reference leaves nothing of the channels."""
    given: Arrays = [f(3, 1, 2, 5, 4, 6).reshape(1, 2, 3)]
    made, known = peer("reference", "GlobalMaxPool", given, 17)
    assert known and made.shape == (1, 1)
    assert ours("GlobalMaxPool", given, 17).tolist() == [[[3], [6]]]
    assert not peer("reference", "GlobalMaxPool", [np.zeros((1, 2, 3, 3), "f")], 17)[1]


def test_a_scale_times_a_size() -> None:
    """2.4 elements: ONNX's test of this mode reads at 3 / 1.4, not at 3."""
    given: Arrays = [f(0, 1, 2, 3)[None, None], None, f(1, 1, 0.6)]
    how = {"mode": "linear", "coordinate_transformation_mode": "align_corners"}
    made, known = peer("ort", "Resize", given, 19, **how)
    assert known and made[0, 0, 1] == 3
    np.testing.assert_allclose(ours("Resize", given, 19, **how)[0, 0, 1], 3 / 1.4)
    whole: Arrays = [given[0], None, f(1, 1, 0.5)]
    assert not peer("ort", "Resize", whole, 19, **how)[1]


def test_one_element_is_read_at_zero() -> None:
    """x_original = length_resized > 1 ? ... : 0"""
    given: Arrays = [f(8, 1, 1, 1)[None, None], None, None, np.array([1, 1, 1])]
    how = {"mode": "cubic", "coordinate_transformation_mode": "pytorch_half_pixel"}
    made, known = peer("reference", "Resize", given, 19, **how)
    assert known and made.item() != 8
    assert ours("Resize", given, 19, **how).item() == 8


def test_the_type_of_a_sum_of_squares() -> None:
    x = np.arange(3, dtype=np.int32)
    made, known = peer("reference", "ReduceSumSquare", [x], 13)
    assert known and made.dtype == np.int64
    assert ours("ReduceSumSquare", [x], 13).dtype == np.int32
    assert not peer("reference", "ReduceSumSquare", [x.astype(np.int64)], 13)[1]


def test_response_of_later_channels() -> None:
    """x / (bias + alpha / size * sum of squares) ** beta, of one channel each."""
    x = np.ones((1, 3, 1, 1), np.float32)
    how = {"size": 1, "alpha": 1.0, "beta": 1.0}
    made, known = peer("reference", "LRN", [x], 13, **how)
    assert known and made.ravel().tolist() == [0.5, 1, 1]
    assert ours("LRN", [x], 13, **how).ravel().tolist() == [0.5, 0.5, 0.5]


def test_a_gate_that_is_clipped() -> None:
    """tanh of 10, clipped to 0.5."""
    given: Arrays = [f(10)[None, None], f(1)[None, None], f(0)[None, None]]
    made, known = peer("reference", "RNN", given, 14, hidden_size=1, clip=0.5)
    assert known and made.item() > 0.9
    got = ours("RNN", given, 14, hidden_size=1, clip=0.5).item()
    assert abs(got - np.tanh(0.5)) < 1e-6


def test_a_sequence_that_ends_early() -> None:
    """Of two steps only the first is taken: the second gives 0."""
    x, one, zero = f(1, 1)[:, None, None], f(1)[None, None], f(0)[None, None]
    given: Arrays = [x, one, zero, None, np.array([1], np.int32)]
    made, known = peer("reference", "RNN", given, 14, hidden_size=1)
    assert known and made.ravel()[1] != 0
    assert ours("RNN", given, 14, hidden_size=1).ravel()[1] == 0


def test_normalizing_outside_of_training() -> None:
    x = np.array([[[2.0, 4.0]]], np.float32)
    given: Arrays = [x, f(1), f(0), f(1), f(4)]
    made, known = peer("reference", "BatchNormalization", given, 9)
    right = (x - 1) / np.sqrt(np.float64(4) + 1e-5)
    assert known and abs(made - right).max() > 0.01
    np.testing.assert_allclose(ours("BatchNormalization", given, 9), right, rtol=1e-6)
    assert not peer("reference", "BatchNormalization", given, 15)[1]


def test_deviations_of_nearly_equal_numbers() -> None:
    """Exact: 3, 3.001 and their mean are half a thousandth apart."""
    x = f(3, 3.001)[None, None, None]
    made, known = peer("reference", "MeanVarianceNormalization", [x], 13, axes=[3])
    right = np.array([-1, 1]) * (1 - 1e-9 / 5e-4)
    assert known and abs(made.ravel() - right).max() > 1e-3
    got = ours("MeanVarianceNormalization", [x], 13, axes=[3]).ravel()
    assert abs(got - right).max() < 1e-3
    other = f(3, 4)[None, None, None]
    assert not peer("reference", "MeanVarianceNormalization", [other], 13, axes=[3])[1]


def test_roots_of_one() -> None:
    """Of 100 samples: ONNX Runtime is as far off as the angles are rounded."""
    x = np.random.default_rng(1).uniform(-4, 4, (1, 100, 2)).astype(np.float32)
    right = np.fft.fft(x[..., 0].astype(float) + 1j * x[..., 1])

    def off(made: np.ndarray) -> float:
        """In roundings of the largest result."""
        gap = made[..., 0].astype(float) + 1j * made[..., 1] - right
        return float(abs(gap).max() / abs(right).max() * 2**24)

    made, known = peer("ort", "DFT", [x], 17, axis=1)
    assert known and off(made) > 50
    assert off(ours("DFT", [x], 17, axis=1)) < 25
    assert off(peer("reference", "DFT", [x], 17, axis=1)[0]) < 5
    assert not peer("ort", "DFT", [x[:, :64]], 17, axis=1)[1]


def test_pairs_of_bytes_that_may_saturate() -> None:
    """255 * 127 + 255 * 127 does not fit into 16 bits; which CPUs do so, varies."""
    a, b = np.full((1, 4), 255, np.uint8), np.full((4, 1), 127, np.int8)
    assert peer("ort", "MatMulInteger", [a, b], 20)[1]
    assert ours("MatMulInteger", [a, b], 20).item() == 4 * 255 * 127
    assert not peer("ort", "MatMulInteger", [a, b // 2], 20)[1]
    assert not peer("ort", "MatMulInteger", [b.T, a.T], 20)[1]


def test_pairs_of_bytes_in_a_window() -> None:
    """The weights are the unsigned ones: they come second."""
    x, w = np.full((1, 1, 4), 127, np.int8), np.full((1, 1, 4), 255, np.uint8)
    assert peer("ort", "ConvInteger", [x, w], 10)[1]
    assert ours("ConvInteger", [x, w], 10).item() == 4 * 255 * 127
    assert not peer("ort", "ConvInteger", [x, w // 2], 10)[1]


def test_the_scale_of_zeros() -> None:
    """By ONNX's formula it is 0, and 0 / 0 no number: three answers."""
    zeros, ones = f(0, 0), f(1, 1)
    node = helper.make_node("DynamicQuantizeLinear", ["x0"], ["y0", "y1", "y2"])
    scales = [
        opened(source, node, 11, {"x0": zeros})({"x0": zeros})[1].item()
        for source in ("ort", "reference")
    ]
    np.testing.assert_allclose(scales, [1, 1 / 255], rtol=1e-6)
    assert is_wrong("ort", asked_about(node, {"x0": zeros}, 11))
    assert not is_wrong("ort", asked_about(node, {"x0": ones}, 11))


def test_functions_of_a_gate() -> None:
    """One step from nothing: an update of 1/2, hidden values that a Relu leaves."""
    given: Arrays = [f(1)[None, None], f(0, 0, 3)[None, :, None]]
    given.append(np.zeros((1, 3, 1), "f"))
    how = {"hidden_size": 1, "activations": ["Sigmoid", "Relu"]}
    made, known = peer("reference", "GRU", given, 14, **how)
    assert known and abs(made.item() - 0.5 * np.tanh(3)) < 1e-6
    assert abs(ours("GRU", given, 14, **how).item() - 1.5) < 1e-6
    assert not peer("reference", "GRU", given, 14, hidden_size=1)[1]


@pytest.mark.parametrize(
    ("op", "attributes", "known"),
    [("Resize", {}, False), ("Gemm", {"beta": 0.5}, True), ("Relu", {}, False)],
)
def test_a_damaged_model_is_judged_by_its_attributes(
    op: str, attributes: dict[str, Any], known: bool
) -> None:
    model, _ = model_of(op, [f(1)], attributes)
    assert distrusted("ort", model) == known


def test_every_reason_is_of_a_reference_that_exists() -> None:
    assert {x.source for x in WRONG} == {"ort", "reference"}
    with pytest.raises(Error):
        peer("reference", "Relu", [f(1), f(2)], 20)


def test_what_cancels_is_as_exact_as_what_it_is_made_of() -> None:
    """One element: (x - x) / sqrt(1e-5), where both products round."""
    x = np.full((1, 1, 1), 3, np.float32)
    node = helper.make_node("InstanceNormalization", ["x", "s", "b"], ["y"])
    asked = asked_about(node, {"x": x, "s": f(2), "b": f(1)}, 20)
    size = MAGNITUDES["InstanceNormalization"](asked, np.ones(x.shape))
    np.testing.assert_allclose(size, 2 * (3 + 3) / np.sqrt(1e-5), rtol=1e-6)
