"""The same model makes the same bytes, wherever it is compiled, with no path inside."""

from __future__ import annotations

import getpass
from pathlib import Path

import pytest

import nanoloom
from tests.cli import models


@pytest.mark.compiles_anew
@pytest.mark.parametrize(("form", "name"), [("shared", "m.so"), ("static", "m.a")])
def test_the_same_bytes_in_any_folder(tmp_path: Path, form: str, name: str) -> None:
    made: list[dict[str, bytes]] = []
    for folder in (tmp_path / "one", tmp_path / "another" / "deeper"):
        folder.mkdir(parents=True)
        model = models.write(folder, models.DENSE)
        program = nanoloom.compile(model, cache=folder / "cache")
        program.save(folder / name, form=form)  # type: ignore[arg-type] - a Form
        made.append({x.name: x.read_bytes() for x in folder.glob("m.*")})
    assert made[0].keys() == {name, "m.h"}
    assert made[0] == made[1]
    for content in made[0].values():
        assert str(tmp_path).encode() not in content
        assert str(Path(nanoloom.__file__).parent).encode() not in content
        if getpass.getuser() != "root":
            assert getpass.getuser().encode() not in content
