"""Computations as programs: compiled, cached, saved, scheduled by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import nanoloom
from nanoloom.cache import Cache
from nanoloom.compiler import Report
from nanoloom.emit import emit_stage
from nanoloom.errors import Error, InputError
from nanoloom.notation import Buffer, Computation, axes, constant, maximum
from nanoloom.options import CompileOptions
from nanoloom.schedule.language import Schedule
from nanoloom.target.host import host
from tests.notation.programs import normal

WEIGHTS = normal(17, 45, seed=5)


def layer() -> Computation:
    """A product with weights, and relu: integers in floats, so that sums are exact."""
    i, j, k = axes("i j k")
    x, w = Buffer("x", (35, 17)), constant("w", np.round(WEIGHTS * 8))
    total, y = Buffer("total"), Buffer("y")
    total[i, j] += x[i, k] * w[k, j]
    y[i, j] = maximum(total[i, j], 0)
    return nanoloom.computation(y)


X = np.round(normal(35, 17, seed=6) * 8)
WANTED = np.maximum(X @ np.round(WEIGHTS * 8), 0)


def test_a_computation_is_called_like_a_model(tmp_path: Path) -> None:
    program = nanoloom.compile(layer(), threads=2, cache=Cache(tmp_path))
    assert [x.name for x in program.inputs] == ["x"]
    assert (program({"x": X})["y"] == WANTED).all()
    with pytest.raises(InputError, match="input x: is float64 35x17, the model wants"):
        program({"x": X.astype(np.float64)})


def test_an_equal_one_is_not_compiled_again(tmp_path: Path) -> None:
    first, second = Report(), Report()
    for report in (first, second):
        program = nanoloom.compile(layer(), cache=Cache(tmp_path), report=report)
        assert (program({"x": X})["y"] == WANTED).all()
    assert (first.kernels, second.kernels) == (1, 0)


def test_a_computation_is_saved_as_a_library(tmp_path: Path) -> None:
    program = nanoloom.compile(layer(), cache=Cache(tmp_path / "cache"))
    path = program.save(tmp_path / "layer.so")
    assert (nanoloom.load(path)({"x": X})["y"] == WANTED).all()
    assert "w" not in [x.name for x in program.inputs]


def test_the_nests_of_a_program(tmp_path: Path) -> None:
    program = nanoloom.compile(layer(), cache=Cache(tmp_path))
    ((name, nest),) = program.nests().items()
    assert name.startswith("contraction_f32_35x45x17")
    assert "total: total[i, j] <- arg0[i, k], arg1[k, j]" in str(nest)


def test_a_schedule_by_the_pattern_of_a_name(tmp_path: Path) -> None:
    """The chosen one with another number of rows in its register tile."""
    found: list[str] = []
    target = host()
    emit_stage(
        layer(),
        "schedule",
        CompileOptions(target),
        lambda stage, name, text: found.append(text),
    )
    script = found[0][: found[0].index("\n}\n") + 3]
    options = CompileOptions(target, schedules=(("contraction_*", script),))
    program = nanoloom.compile(layer(), options=options, cache=Cache(tmp_path))
    assert (program({"x": X})["y"] == WANTED).all()
    wrong = CompileOptions(target, schedules=(("contraction_*", "nonsense"),))
    with pytest.raises(Error, match="schedule of kernel contraction_"):
        nanoloom.compile(layer(), options=wrong, cache=Cache(tmp_path))


def test_a_schedule_for_no_kernel_is_refused(tmp_path: Path) -> None:
    """By its pattern, with the names that come near; nothing is compiled."""
    for pattern in ("contraction_f64_35*", "contraction_f32_36x45x17"):
        options = CompileOptions(host(), schedules=((pattern, Schedule(())),))
        with pytest.raises(Error) as refused:
            nanoloom.compile(layer(), options=options, cache=Cache(tmp_path))
        said = str(refused.value)
        assert f"for {pattern}, and no kernel has such a name" in said
        assert "some that there are: contraction_f32_35x45x17" in said


def test_a_computation_has_no_graph() -> None:
    with pytest.raises(Error, match="it has no graph: linalg is its first stage"):
        emit_stage(layer(), "graph", CompileOptions(host()), lambda *_: None)
