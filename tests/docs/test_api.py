"""The page of the Python interface is what the docstrings say, and `help` says it."""

from __future__ import annotations

import inspect
import pydoc
from pathlib import Path

import pytest

import nanoloom
from nanoloom.api.loaded import Loaded
from nanoloom.api.sessions.session import Session
from tests.docs.api import METHODS, PAGE, page

API = Path(__file__).parents[2] / "docs" / "api.md"


def test_the_page_is_current() -> None:
    """Else: python -m tests.docs.api > docs/api.md."""
    assert API.read_text("utf-8") == page()


def test_the_page_has_all_that_is_public() -> None:
    things = [thing for chapter in PAGE.values() for thing in chapter]
    for name in nanoloom.__all__:
        assert getattr(nanoloom, name) in things, name
    for kind in (nanoloom.Program, Loaded, Session):
        listed, own = METHODS[kind], vars(kind).items()
        public = {
            n for n, x in own if hasattr(x, "__wrapped__") and n[:1] != "_"
        }  # by errors.public
        assert public <= set(listed), kind


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        (nanoloom.Program, "inputs outputs dims bounds open threads"),
        (Loaded, "inputs outputs"),
        (Session, "pairs length reason"),
    ],
)
def test_help_has_the_properties(kind: type, names: str) -> None:
    shown = pydoc.plain(pydoc.render_doc(kind))
    head = shown[: shown.index("Methods defined here")]
    for name in names.split():
        assert f"{name}:" in head or f"{name}," in head, name


def test_everything_is_described() -> None:
    for chapter in PAGE.values():
        for thing in chapter:
            assert inspect.getdoc(thing)
