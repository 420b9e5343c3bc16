"""What a program cannot do: run after its `with`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import nanoloom
from tests.cli import models


def test_closed_programs_do_not_run(tmp_path: Path) -> None:
    text = "g (float[2] x) => (float[2] y) { y = Relu(x) }"
    program = nanoloom.compile(models.write(tmp_path, text), threads=1)
    x = np.array([-1, 2], np.float32)
    with nanoloom.load(program.save(tmp_path / "m.so"), threads=1) as loaded:
        assert loaded({"x": x})["y"].tolist() == [0, 2]
    with pytest.raises(nanoloom.Error, match="it was closed at the end of its `with`"):
        loaded({"x": x})


def test_help_names_what_a_program_has() -> None:
    from nanoloom.api.program import Program

    told = " ".join((Program.__doc__ or "").split())
    for name in ("inputs, outputs:", "dims, bounds:", "open:", "threads:"):
        assert name in told


def test_a_hint_names_a_name_once() -> None:
    from nanoloom.errors import some_of

    assert some_of(["sum_1", "sum_1"], "sum_2") == "some that there are: sum_1"
