"""Hashes and repeated n-grams against ONNX Runtime, exactly; searches are refused."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper

from nanoloom.errors import Unsupported
from tests.frontend.microsoft.single import both, floats, run

R = np.random.default_rng(6)


@pytest.mark.parametrize(
    "kind", ["int32", "uint32", "int64", "uint64", "float32", "float64"]
)
@pytest.mark.parametrize("positive", [0, 1])
def test_hashes(kind: str, positive: int) -> None:
    dtype = np.dtype(kind)
    shape = tuple(int(n) for n in R.integers(1, 6, R.integers(1, 4)))
    x = np.frombuffer(R.bytes(int(np.prod(shape)) * dtype.itemsize), dtype)
    x = np.nan_to_num(x.reshape(shape)) if dtype.kind == "f" else x.reshape(shape)
    seed = int(R.integers(0, 2**31))
    ours, theirs = both("MurmurHash3", [x], seed=seed, positive=positive)
    assert ours[0].dtype == theirs[0].dtype
    assert (ours[0] == theirs[0]).all()
    other, _ = both("MurmurHash3", [x], seed=seed ^ 1, positive=positive)
    assert (ours[0] != other[0]).any()


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_repeated_ngrams(size: int) -> None:
    for length in (1, size, 9, 30):
        ids, scores = R.integers(0, 3, (3, length)), floats(R, 3, 5)
        ours, theirs = both("NGramRepeatBlock", [ids, scores], ngram_size=size)
        assert (ours[0] == theirs[0]).all()
    assert np.isinf(ours[0]).any()
    assert np.isfinite(ours[0]).any()


@pytest.mark.parametrize("name", ["BeamSearch", "GreedySearch", "Sampling"])
def test_searches(name: str) -> None:
    body = helper.make_graph(
        [helper.make_node("Identity", ["a"], ["b"])], "decoder",
        [helper.make_tensor_value_info("a", 1, [1])],
        [helper.make_tensor_value_info("b", 1, [1])],
    )  # fmt: skip
    ids, number = np.zeros((1, 2), np.int32), np.array([3], np.int32)
    with pytest.raises(Unsupported, match="attribute `decoder` as a model of its own"):
        run(name, [ids, number], decoder=body, eos_token_id=1, pad_token_id=0)
