"""The least and the largest number of an index, against all that it is."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from random import Random
from typing import TypeAlias

import pytest

from nanoloom.ir import mlir
from nanoloom.ir.mlir import ir, operations
from nanoloom.vector.index_bounds import bounds

Expression: TypeAlias = "str | int | tuple[str, Expression, Expression]"
Loop = tuple[int, int, int]  # begin, end, step
PYTHON: dict[str, Callable[[int, int], int]] = {
    "addi": lambda x, y: x + y,
    "muli": lambda x, y: x * y,
    "maxsi": max,
    "minsi": min,
}
# Each variable once: corners are exact.
EXACT: tuple[Expression, ...] = (
    ("addi", "a", 0),
    ("addi", "a", 13),
    ("muli", "a", -3),
    ("addi", ("muli", "a", 7), "b"),
    ("muli", ("addi", "a", -9), "b"),
    ("maxsi", "a", ("minsi", "b", 4)),
)
WIDE: tuple[Expression, ...] = (
    ("minsi", ("addi", "a", "b"), ("muli", "a", "b")),
    ("addi", "a", ("muli", "a", -1)),
)


def text_of(loops: dict[str, Loop], made: Expression) -> str:
    """A function with the loops, and the expression inside of them."""
    lines: list[str] = ["func.func @f() {"]
    for name, loop in loops.items():
        for part, number in zip(("begin", "end", "step"), loop, strict=True):
            lines.append(f"%{part}_{name} = arith.constant {number} : index")
        lines.append(
            f"scf.for %{name} = %begin_{name} to %end_{name} step %step_{name} {{"
        )
    written(made, lines)
    return "\n".join([*lines, *("}" for _ in loops), "return }"])


def written(made: Expression, lines: list[str]) -> str:
    """The name of an expression's value, whose operations are added to the lines."""
    if isinstance(made, str):
        return f"%{made}"
    if isinstance(made, int):
        lines.append(f"%n{len(lines)} = arith.constant {made} : index")
        return f"%n{len(lines) - 1}"
    word, *given = made
    one, other = (written(x, lines) for x in given)
    lines.append(f"%n{len(lines)} = arith.{word} {one}, {other} : index")
    return f"%n{len(lines) - 1}"


def found(loops: dict[str, Loop], made: Expression) -> tuple[int, int] | None:
    with mlir.context(), ir.Location.unknown():
        module = ir.Module.parse(text_of(loops, made))
        word = f"arith.{made[0]}"  # type: ignore[index] - asked of operations
        *_, last = operations(module, lambda op: op.operation.name == word)
        return bounds(last.operation.results[0])


def value(made: Expression, at: dict[str, int]) -> int:
    if isinstance(made, str):
        return at[made]
    if isinstance(made, int):
        return made
    return PYTHON[made[0]](value(made[1], at), value(made[2], at))


def drawn(seed: int) -> dict[str, Loop]:
    random = Random(seed)
    loops: dict[str, Loop] = {}
    for name in "ab":
        begin = random.randint(-4, 4)
        end = begin + random.randint(1, 9)
        loops[name] = begin, end, random.randint(1, 4)
    return loops


@pytest.mark.parametrize("made", [*EXACT, *WIDE], ids=str)
@pytest.mark.parametrize("seed", range(4))
def test_ends_are_those_of_all_points(made: Expression, seed: int) -> None:
    loops = drawn(seed)
    points = product(*(range(*loop) for loop in loops.values()))
    values = [value(made, dict(zip(loops, at, strict=True))) for at in points]
    ends = found(loops, made)
    assert ends is not None
    assert ends[0] <= min(values) and max(values) <= ends[1]
    assert made in WIDE or ends == (min(values), max(values))


@pytest.mark.parametrize("loop", [(3, 3, 1), (4, 3, 1), (7, 3, 2)])
def test_loops_without_a_step_have_no_ends(loop: Loop) -> None:
    assert found({"a": loop}, ("addi", "a", 1)) is None


def test_nothing_is_known_of_other_operations() -> None:
    less: Expression = ("subi", "a", 1)
    assert found({"a": (0, 8, 1)}, ("addi", less, 2)) is None
    assert found({"a": (0, 8, 1)}, ("muli", 2, less)) is None
