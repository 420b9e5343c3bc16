"""What a model declares and does not hold, as the command line tells it."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli import models
from tests.cli.conftest import Command

SHARED = "g (float[n, 4] a, float[n, 8] b) => (float[n, 4] y) { y = MatMul (a, b) }"


def test_check_lists_declared_shapes(tmp_path: Path, nanoloom: Command) -> None:
    text = "g (float[n, 3] x) => (float[n] y) { y = Relu (x) }"
    model = models.write(tmp_path, text)
    said = nanoloom("check", model)
    assert said.status == 0
    words = "note: y is declared as [n], it has 2 dimensions; what its node gives count"
    assert words in " ".join(said.out.split())
    found = json.loads(nanoloom("check", model, "--json").out)
    assert found["contradictions"] == {"y": "[n], it has 2 dimensions"}


def test_a_name_of_several_sizes(tmp_path: Path, nanoloom: Command) -> None:
    model = models.write(tmp_path, SHARED)
    said = nanoloom("check", model)
    assert said.status == 1 and "do not fit together" in said.out
    words = "where sizes of one name differ, --dim gives each: n.2 is n on axis 0 of in"
    assert words in " ".join(said.out.split())
    both = "--dim", "n=3", "--dim", "n.2=4"
    assert nanoloom("check", model, *both).status == 0
    ran = nanoloom("run", model, *both)
    assert ran.status == 0 and "3x8" in ran.out
