"""Modules that are loaded when something of them is asked for."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import onnx
import pytest

from nanoloom.lazy_import import Later

# Dimensions are added by sympy, which is there before the first sum by name alone.
ADDED = """
from nanoloom.lazy_import import load_later
load_later()
import onnx_ir, sys
assert "sympy.core" not in sys.modules
print(onnx_ir.SymbolicDim("a") + 2)
assert "sympy.core" in sys.modules
"""

LEFT = """
import sys
from pathlib import Path
from nanoloom.model.source import source_of
from nanoloom.cache import Cache
source_of(sys.argv[1], Cache(Path(sys.argv[2]))).model()
assert "onnx_ir" in sys.modules and "sympy" not in sys.modules
import sympy
assert type(sympy).__name__ == "module" and sympy.Symbol("b").is_Symbol
print(sys.modules["onnx_ir"].SymbolicDim("a") * 3)
"""


def test_a_module_is_loaded_by_the_first_question(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    later = Later("colorsys")
    monkeypatch.setitem(sys.modules, "colorsys", later)
    assert import_module("colorsys") is later
    assert later.ONE_THIRD == 1 / 3
    assert import_module("colorsys") is not later
    with pytest.raises(AttributeError, match="colorsys"):
        _ = later.nothing


def test_dimensions_are_added_as_without() -> None:
    command = [sys.executable, "-c", ADDED]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    assert ran.stdout == "a + 2\n"


def test_others_find_what_a_model_is_read_without(tmp_path: Path) -> None:
    text = '<ir_version: 8, opset_import: ["" : 18]>'
    text += " g (float[n] x) => (float[n] y) { y = Neg (x) }"
    onnx.save(onnx.parser.parse_model(text), tmp_path / "model.onnx")
    command = [sys.executable, "-c", LEFT, str(tmp_path / "model.onnx"), str(tmp_path)]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    assert ran.stdout == "3*a\n"
