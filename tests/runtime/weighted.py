"""Executables of models whose weights are named with a w, for other machines."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

from nanoloom.api.program import Program
from nanoloom.cache import Cache
from nanoloom.compile_program import compile
from nanoloom.options import CompileOptions
from nanoloom.runtime.emulation import machine
from nanoloom.target.facts import Target
from tests.c_libraries import lend


def built(
    made: onnx.ModelProto,
    given: Mapping[str, np.ndarray],
    name: str,
    folder: Path,
    changed: Target | None = None,
) -> tuple[Program, Path]:
    """An executable with the inputs that begin with a w in it.

    changed: a target in place of the one by that name.
    """
    for info in [x for x in made.graph.input if x.name.startswith("w")]:
        made.graph.initializer.append(
            numpy_helper.from_array(given[info.name], info.name)
        )
        made.graph.input.remove(info)
    cache, target = Cache(folder / "cache"), changed or machine(name).target
    lend(target.arch, cache)
    program = compile(made, options=CompileOptions(target), cache=cache)
    return program, program.save(folder / "layers", form="executable")
