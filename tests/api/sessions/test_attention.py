"""ONNX's Attention with its cache of keys and values."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from onnx import parser
from onnx.reference import ReferenceEvaluator

import nanoloom
from nanoloom.cache import Cache

TEXT = """
<ir_version: 10, opset_import: ["" : OPSET]>
g (float[batch, 4, new, SIZE] q, float[batch, 2, new, SIZE] k,
   float[batch, 2, new, SIZE] v, float[batch, 2, past, SIZE] past_key,
   float[batch, 2, past, SIZE] past_value)
    => (float[batch, 4, new, SIZE] y, float[batch, 2, total, SIZE] present_key,
        float[batch, 2, total, SIZE] present_value)
{
    y, present_key, present_value =
        Attention<is_causal = 1>(q, k, v, , past_key, past_value)
}
"""


@pytest.mark.drawn(one_in=3)
@pytest.mark.parametrize(
    ("opset", "batch", "size"), [(23, 1, 16), (24, 3, 16), (23, 2, 5)]
)
def test_pieces_are_the_whole(
    tmp_path: Path, opset: int, batch: int, size: int
) -> None:
    text = TEXT.replace("OPSET", str(opset)).replace("SIZE", str(size))
    model = parser.parse_model(text)
    random, heads = np.random.default_rng(opset), {"q": 4, "k": 2, "v": 2}
    given = {
        name: random.standard_normal((batch, count, 19, size), np.float32)
        for name, count in heads.items()
    }
    none = np.zeros((batch, 2, 0, size), np.float32)
    pasts = {"past_key": none, "past_value": none}
    (wanted, *_) = ReferenceEvaluator(model).run(None, given | pasts)
    assert isinstance(wanted, np.ndarray)
    session = nanoloom.compile(model, threads=1, cache=Cache(tmp_path)).session()
    made: list[np.ndarray] = []
    ends = [0, 5, 6, 7, 11, *range(12, 20)]
    for begin, end in pairwise(ends):
        part = {name: x[:, :, begin:end] for name, x in given.items()}
        made.append(session(part)["y"])
    got = np.concatenate(made, 2)
    bound = 60 * np.finfo(np.float32).eps * np.abs(given["v"]).max()
    assert np.abs(got - wanted).max() <= bound
    assert np.abs(got[:, :, ::-1] - wanted).max() > bound
    assert not session.reason


def test_a_mask_that_is_added(tmp_path: Path) -> None:
    """Opset 24 pads a mask that may be shorter than the keys; here it is not."""
    text = TEXT.replace("OPSET", "24").replace("SIZE", "8")
    text = text.replace(
        "past_value)\n    =>", "past_value, float[new, total] mask)\n    =>"
    )
    text = text.replace("q, k, v, ,", "q, k, v, mask,")
    model = parser.parse_model(text)
    random = np.random.default_rng(3)
    session = nanoloom.compile(model, threads=1, cache=Cache(tmp_path)).session()
    for count in (5, 1, 1, 3, 1):
        given = {
            name: random.standard_normal((2, heads, count, 8), np.float32)
            for name, heads in {"q": 4, "k": 2, "v": 2}.items()
        }
        mask = random.standard_normal((count, session.length + count), np.float32)
        none = np.zeros((2, 2, 0, 8), np.float32)
        past = session.past() or {"past_key": none, "past_value": none}
        whole = given | past | {"mask": mask}
        (wanted, *_) = ReferenceEvaluator(model).run(None, whole)
        assert isinstance(wanted, np.ndarray)
        got = session(given | {"mask": mask})["y"]
        bound = 60 * np.finfo(np.float32).eps * 5  # numbers of a value
        assert np.abs(got - wanted).max() <= bound
        assert np.abs(got[::-1] - wanted).max() > bound
    assert not session.reason
