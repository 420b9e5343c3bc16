"""Names are the field's terms: docs/glossary.md lists those that may not come back."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import PurePosixPath

import pytest

from nanoloom.errors import Error
from nanoloom.schedule import language
from nanoloom.vector.transform_ops import require_current_names
from tests.sources import ROOT, Source, python

ROW = re.compile(r"^\| `(\w+)` \| (.*) \|$", re.MULTILINE)


def retired() -> dict[str, str]:
    """The names, and what took their place."""
    text = (ROOT / "docs/glossary.md").read_text("utf-8")
    return dict(ROW.findall(text.partition("## Retired names")[2]))


def names_of(source: Source) -> Iterator[str]:
    """The file's own, those of its classes and functions, and of classes' fields."""
    yield PurePosixPath(source.path).stem.removeprefix("test_")
    for node in source.module.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        if isinstance(node, ast.ClassDef):
            fields = (x.target for x in node.body if isinstance(x, ast.AnnAssign))
            yield from (x.id for x in fields if isinstance(x, ast.Name))


def came_back(source: Source, names: dict[str, str]) -> list[str]:
    return [
        f"{source.path}: {name} is called {names[name]}"
        for name in names_of(source)
        if name in names
    ]


def test_no_retired_name_comes_back() -> None:
    names = retired()
    assert len(names) > 100
    sources = (*python("nanoloom"), *python("papers"))
    wrong = [x for source in sources for x in came_back(source, names)]
    assert not wrong, "\n" + "\n".join(wrong)


def test_a_name_that_comes_back_is_seen() -> None:
    for text in (
        "class Strip: ...",
        "def heads_apart(): ...",
        "class A:\n  faster_on: int",
    ):
        assert came_back(Source("nanoloom/graph/x.py", text), retired())
    assert came_back(Source("nanoloom/graph/left_out.py", ""), retired())


@pytest.mark.parametrize("name", language.RETIRED)
def test_a_retired_directive_names_the_new_one(name: str) -> None:
    with pytest.raises(ImportError, match=f"{name} is called {language.RETIRED[name]}"):
        getattr(language, name)
    assert hasattr(language, language.RETIRED[name])


def test_a_retired_operation_names_the_new_one() -> None:
    told = "line 2: nanoloom.turn is called nanoloom.transpose_in_registers now"
    with pytest.raises(Error, match=told):
        require_current_names('a\n"nanoloom.turn"(%x) {piece = 128 : i64}')
    require_current_names('"nanoloom.transpose_in_registers"(%x)')
