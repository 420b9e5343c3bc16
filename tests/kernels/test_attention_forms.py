"""Attention of opsets 23 and 24 is one kernel in every form, its numbers ONNX's."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator

import nanoloom

EPS = float(np.finfo(np.float32).eps)
ROWS, KEYS, SIZE = 17, 33, 16
INPUTS = ("q", "k", "v", "mask", "", "", "lengths")
GROUPED: dict[str, tuple[int, ...]] = {
    "k": (2, 2, KEYS, SIZE),
    "v": (2, 2, KEYS, SIZE),
}
# What is said of it, and shapes of others than q, k and v, or of them.
FORMS: dict[str, tuple[int, dict[str, Any], dict[str, tuple[int, ...]]]] = {
    "plain": (23, {}, {}),
    "causal": (24, {"is_causal": 1}, {}),
    "masked": (23, {}, {"mask": (ROWS, KEYS)}),
    "capped": (24, {"softcap": 5.0}, {}),
    "grouped": (24, {}, GROUPED),
    "grouped, capped, masked": (24, {"softcap": 5.0}, GROUPED | {"mask": (ROWS, KEYS)}),
    "flat": (
        23,
        {"q_num_heads": 4, "kv_num_heads": 2},
        {"q": (2, ROWS, 64), "k": (2, KEYS, 32), "v": (2, KEYS, 32)},
    ),
    "padded": (24, {}, {"lengths": (2,)}),
}


def arrays(changed: dict[str, tuple[int, ...]]) -> dict[str, Any]:
    random = np.random.default_rng(3)
    shapes = {"q": (2, 4, ROWS, SIZE), "k": (2, 4, KEYS, SIZE), "v": (2, 4, KEYS, SIZE)}
    made: dict[str, Any] = {
        name: random.standard_normal(shape).astype(np.float32)
        for name, shape in (shapes | changed).items()
    }
    if "lengths" in made:
        made["lengths"] = np.array([20, KEYS], np.int64)
    return made


def model(opset: int, words: dict[str, Any], given: dict[str, Any]) -> onnx.ModelProto:
    names = [name if name in given else "" for name in INPUTS]
    while not names[-1]:
        names.pop()
    kinds = {n: helper.np_dtype_to_tensor_dtype(x.dtype) for n, x in given.items()}
    graph = helper.make_graph(
        [helper.make_node("Attention", names, ["y"], **words)],
        "attention",
        [helper.make_tensor_value_info(n, kinds[n], x.shape) for n, x in given.items()],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)],
    )
    opsets = [helper.make_opsetid("", opset)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=11)


@pytest.mark.drawn(one_in=2)
@pytest.mark.parametrize("form", FORMS)
def test_one_kernel_and_its_numbers(form: str) -> None:
    """A score is below 40; the shares of a row are 1 together."""
    opset, words, changed = FORMS[form]
    given = arrays(changed)
    made = model(opset, words, given)
    program = nanoloom.compile(made, threads=1)
    (got,) = program(given).values()
    (want,) = ReferenceEvaluator(made).run(None, given)
    room = 2 * (40 * (SIZE + 2) + 2 * KEYS) * EPS * abs(given["v"]).max()
    assert (abs(got - want) <= room).all()
    assert not (abs(np.roll(got, 1, -1) - want) <= room).all()
    roots = [name.split("_")[0] for name in program.nests()]
    assert roots.count("contractions") == 1 and "contraction" not in roots
