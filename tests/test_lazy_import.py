"""Modules that are loaded when something of them is asked for."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module

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
