"""Nodes that would end the process inside ONNX's inference are refused before."""

from __future__ import annotations

from pathlib import Path

import pytest
from onnx import parser

import nanoloom
from nanoloom.cache import Cache
from nanoloom.errors import ModelError

HEADER = '<ir_version: 10, opset_import: ["" : 18]>'


@pytest.mark.parametrize("count", [-2147483648, -1, 2, 7])
def test_batch_dimensions_that_are_not_there(count: int, tmp_path: Path) -> None:
    text = f"""{HEADER} g (float[2, 3] x, int64[2, 1] i) => (float[2] y) {{
        y = GatherND <batch_dims = {count}> (x, i)
    }}"""
    with pytest.raises(ModelError, match="its input has 2 dimensions"):
        nanoloom.compile(parser.parse_model(text), cache=Cache(tmp_path))


def test_more_elements_than_a_run_goes_through(tmp_path: Path) -> None:
    text = f"""{HEADER} g (float[1] x) => (float[n] y)
        <int64[1] shape = {{17592186044416}}> {{
        wide = Expand (x, shape)
        y = Exp (wide)
    }}"""
    with pytest.raises(nanoloom.Error, match="more elements than one run can go"):
        nanoloom.compile(parser.parse_model(text), cache=Cache(tmp_path))
