"""Chains of products: their numbers, their models, and what is right."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx.reference import ReferenceEvaluator

from nanoloom_papers.reproduce.chain_models import feeds, onnx_model
from nanoloom_papers.reproduce.chains import ARITHMETICS, Chain, draw, gemm, mlp
from nanoloom_papers.reproduce.expected_results import expected

CHAINS = [
    chain for kind in ARITHMETICS for chain in (mlp(37, kind, 5), gemm(7, 33, 11, kind))
]
each_chain = pytest.mark.parametrize(
    "chain", CHAINS, ids=lambda x: f"{x.kind}-{x.arithmetic}"
)


@each_chain
def test_the_model_computes_what_is_expected(chain: Chain) -> None:
    """By ONNX's reference, which rounds bf16 after every operator."""
    numbers = draw(chain)
    model = onnx_model(chain, numbers)
    onnx.checker.check_model(model, full_check=True)
    (got,) = ReferenceEvaluator(model).run(None, feeds(chain, numbers))
    assert isinstance(got, np.ndarray)
    right = expected(chain, numbers)
    assert right.complaint(got) == ""


@each_chain
def test_wrong_results_are_seen(chain: Chain) -> None:
    numbers = draw(chain)
    right = expected(chain, numbers)
    good = right.value.astype(np.float64)
    swapped = good.copy()
    swapped[:, [0, 1]] = swapped[:, [1, 0]]
    lacking = good.copy()
    lacking[np.unravel_index(np.argmax(np.abs(good)), good.shape)] = 0
    for wrong in (0 * good, swapped, lacking, good * np.nan, 1.1 * good):
        assert "wrong result" in right.complaint(wrong)
    assert "gives the shape [4" in right.complaint(good[:4])
    assert right.complaint(good) == ""


def test_bf16_is_not_taken_for_f32() -> None:
    """An f32 chain computed in bf16 is wrong."""
    exact, narrow = gemm(9, 64, 9, "f32"), gemm(9, 64, 9, "mixed")
    numbers = draw(exact)
    rounded = draw(narrow)
    lowered = expected(narrow, rounded).value
    assert "wrong result" in expected(exact, numbers).complaint(lowered)


def test_integers_are_exact_in_every_way() -> None:
    """Integers in ONNX Runtime's kernels and floats in the reference are one."""
    chain = mlp(64, "int8", 9)
    numbers = draw(chain)
    model = onnx_model(chain, numbers)
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    (got,) = session.run(None, {"x": numbers.x})
    right = expected(chain, numbers)
    assert right.allowed is None
    np.testing.assert_array_equal(np.asarray(got), right.value.astype(np.uint8))
    assert 0 < np.mean(right.value == 0) < 1 and right.value.std() > 10


def test_sizes() -> None:
    perceptron, product = mlp(1024, "f32"), gemm(3, 5, 7, "bf16")
    assert perceptron.flops == 3 * 2 * 512 * 1024 * 1024
    assert perceptron.bytes == 4 * (3 * 1024 * 1024 + 2 * 512 * 1024)
    assert (perceptron.size, product.size) == ("512x1024", "3x5x7")
    assert product.bytes == 2 * (15 + 35 + 21)


def test_numbers_are_seeded() -> None:
    chain = gemm(4, 6, 5, "f32")
    one, same, other = draw(chain, 1), draw(chain, 1), draw(chain, 2)
    np.testing.assert_array_equal(one.x, same.x)
    assert (one.x != other.x).any()


def test_flat_weights_are_inputs() -> None:
    chain = mlp(8, "bf16-flat", 3)
    numbers = draw(chain)
    names = [value.name for value in onnx_model(chain, numbers).graph.input]
    assert sorted(names) == sorted(feeds(chain, numbers)) != ["x"]
