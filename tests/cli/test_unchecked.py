"""Indices out of range on the command line, and --unchecked."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from tests.cli import models
from tests.cli.conftest import Command

TABLE = """
    g (float[4, 3] w, int64[n] ids) => (float[n, 3] y) { [embed] y = Gather(w, ids) }
"""
SENTENCE = "node embed (Gather): index 4 is outside -4..3"


def test_run(tmp_path: Path, nanoloom: Command) -> None:
    model = models.write(tmp_path, TABLE)
    np.save(tmp_path / "ids.npy", np.array([0, 3, 4]))
    np.save(tmp_path / "w.npy", np.arange(12, dtype=np.float32).reshape(4, 3))
    given = ("-i", f"ids={tmp_path}/ids.npy", "-i", f"w={tmp_path}/w.npy")
    y = tmp_path / "y.npy"
    said = nanoloom("run", model, *given, "-o", f"y={y}")
    assert said.status == 1 and SENTENCE in said.told
    assert not y.exists()
    assert nanoloom("run", model, *given, "-o", f"y={y}", "--unchecked").status == 0
    assert np.load(y)[:, 0].tolist() == [0, 9, 9]


def test_a_library_has_its_checks_or_not(tmp_path: Path, nanoloom: Command) -> None:
    model, library = models.write(tmp_path, TABLE), tmp_path / "table.so"
    np.save(tmp_path / "ids.npy", np.array([0, 3, 4]))
    given = ("-i", f"ids={tmp_path}/ids.npy")
    made = ("compile", model, "--dim", "n=3", "-o")
    assert nanoloom(*made, library).status == 0
    said = nanoloom("run", library, *given)
    assert said.status == 1 and SENTENCE in said.told
    said = nanoloom("run", library, "--unchecked")
    assert said.status == 2 and "a compiled library has its checks" in said.told
    other = tmp_path / "unchecked.so"
    assert nanoloom(*made, other, "--unchecked").status == 0
    assert nanoloom("run", other, *given).status == 0


def test_the_other_verbs(tmp_path: Path, nanoloom: Command) -> None:
    model = models.write(tmp_path, TABLE)
    text = ("compile", model, "--dim", "n=3", "--emit", "linalg", "-o", "-")
    assert "arith.maxui" in nanoloom(*text).out
    assert "arith.maxui" not in nanoloom(*text, "--unchecked").out
    for words in (("verify",), ("bench", "--against", "ort", "--repeat", "1")):
        verb, *more = words
        said = nanoloom(verb, model, "--dim", "n=3", "--unchecked", *more)
        assert said.status == 0, said.err
        assert "--unchecked" in re.sub(r"\s", "", nanoloom(verb, "--help").out)
