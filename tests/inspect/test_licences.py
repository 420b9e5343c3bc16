"""What compiled files hold of others' code, as people and programs read it."""

from __future__ import annotations

import json

import pytest

from nanoloom.cli.failures import DONE, USAGE
from nanoloom.cli.main import main
from nanoloom.inspect.licences import components


def test_the_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["licences"]) == DONE
    made = capsys.readouterr().out
    assert [line.split()[0] for line in made.splitlines()[:-1]] == [
        "nanoloom-runtime",
        "musl",
        "zig",
    ]
    assert main(["licences", "--form", "shared", "--json"]) == DONE
    bill = json.loads(capsys.readouterr().out)
    assert bill["bomFormat"] == "CycloneDX"
    assert [x["name"] for x in bill["components"]] == ["nanoloom-runtime"]


def test_every_licence_is_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["licences", "--text"]) == DONE
    made = capsys.readouterr().out
    assert "Apache License" in made
    assert "Rich Felker" in made
    for each in components():
        assert each.version[0].isdigit()
        assert len(each.licence_text()) > 500


def test_an_unknown_form(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["licences", "--form", "dll"]) == USAGE
    said = "dll is none of shared, static, bare, executable"
    assert said in capsys.readouterr().err
