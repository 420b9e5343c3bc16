"""Constants of choice: numbers that decide a schedule in place of a model of cost.

They only become fewer.  Counted are names of modules and of classes with a number in
their value that is neither 0 nor 1, a name each however many numbers it has.  Not
counted: limits of what a script may say, which choose nothing, and facts of
instructions.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.sources import ROOT

ROOMS = ("schedule", "nest", "fusion", "cost")
LIMITS = ("schedule/directives", "schedule/dataflow")  # what they refuse, not choose
FACTS = ("Family", "StepCost")  # of instructions, in schedule/families.py
AT_MOST = 40


class Constant(NamedTuple):
    """A name of a module or a class.  said: whether a comment says what it is."""

    file: str
    name: str
    said: bool


def constants(file: Path) -> Iterator[Constant]:
    text = file.read_text("utf-8")
    name, tree = str(file.relative_to(ROOT / "nanoloom")), ast.parse(text)
    classes = [node.body for node in tree.body if isinstance(node, ast.ClassDef)]
    for body in (tree.body, *classes):
        for node in body:
            if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
                continue
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                for each, value in pairs(target, node.value):
                    if each.isupper() and decides(value):
                        said = has_comment(text.splitlines(), node)
                        yield Constant(name, each, said)


def pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    """A name with its own value, of `A = 1` and of `A, B = 1, 2`."""
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        for one, other in zip(target.elts, value.elts, strict=True):
            yield from pairs(one, other)
    elif isinstance(target, ast.Name):
        yield target.id, value


def decides(value: ast.expr) -> bool:
    """Whether a number is in it that is no fact."""
    if isinstance(value, ast.Call) and getattr(value.func, "id", "") in FACTS:
        return False
    return any(
        isinstance(node, ast.Constant)
        and isinstance(node.value, int | float)
        and node.value not in (0, 1)
        for node in ast.walk(value)
    )


def has_comment(lines: list[str], node: ast.stmt) -> bool:
    """Behind it, in front of it, or of the constants that it is one of."""
    first, last = node.lineno - 1, (node.end_lineno or node.lineno) - 1
    if any("#" in line for line in lines[first : last + 1]):
        return True
    while first and lines[first - 1].strip() and not lines[first - 1].startswith("#"):
        first -= 1
    return first > 0 and lines[first - 1].startswith("#")


def counted() -> list[Constant]:
    files = (f for room in ROOMS for f in sorted((ROOT / "nanoloom" / room).rglob("*")))
    every = (x for f in files if f.suffix == ".py" for x in constants(f))
    return [x for x in every if not x.file.startswith(LIMITS)]


def test_constants_of_choice_become_fewer() -> None:
    found = counted()
    names = "\n".join(f"{x.file}: {x.name}" for x in found)
    hint = "let the model of cost decide, or lower AT_MOST to what there are"
    assert len(found) == AT_MOST, f"{len(found)}, at most {AT_MOST}: {hint}\n{names}"


def test_each_says_what_it_is() -> None:
    """Its unit, and where it is from."""
    silent = [f"{x.file}: {x.name}" for x in counted() if not x.said]
    assert not silent, "\n".join(silent)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("A = 2\n", ["A"]),
        ("A, B = 1, 2.5\n", ["B"]),
        ("A: int = 4 * OTHER\n", ["A"]),
        ("class X:\n    A = 3\n    b = 4\n", ["A"]),
        ("A = StepCost(right=2)\nB = 1\nC = 'f32'\n\ndef f():\n    A = 3\n", []),
    ],
)
def test_what_is_counted(
    text: str, names: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{__name__}.ROOT", tmp_path)
    file = tmp_path / "nanoloom/x.py"
    file.parent.mkdir()
    file.write_text(text, "utf-8")
    assert [x.name for x in constants(file)] == names
