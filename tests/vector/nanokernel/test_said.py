"""What a script says of a nanokernel beside its tile is what is made; no more is."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from nanoloom.errors import Error
from nanoloom.schedule.language import Prefetch, Schedule
from nanoloom.target import by_name
from tests.linalg.bounds import dtype_of, sample
from tests.vector.checks import check, contracted, passes
from tests.vector.kernel_harness import (
    backwards,
    program_of,
    run,
    stage_text,
    targets,
)

TARGET = by_name("x86-64-v3")
M, K, N = 300, 70, 1100  # rows enough to share a copy of pages enough
SUMS = {"int8": "int32"}


def product(kind: str) -> Any:
    sums = dtype_of(SUMS.get(kind, "float32"))
    return lambda b, x, w: b.einsum("mk,kn->mn", x, w, dtype=sums)


def operands(kind: str) -> tuple[np.ndarray, np.ndarray]:
    return sample(1, (M, K), kind), sample(2, (K, N), kind)


def chosen(kind: str) -> str:
    text = stage_text(program_of(product(kind), *operands(kind)), "schedule", TARGET)
    return text[: text.index("\n}\n") + 3]


def without(script: str, word: str) -> str:
    lines = script.splitlines(keepends=True)
    return "".join(x for x in lines if f'"nanoloom.{word}"' not in x)


def with_number(script: str, word: str, value: str) -> str:
    found, count = re.subn(rf'{word} = (\d+|"\w*")', f"{word} = {value}", script)
    assert count and found != script
    return found


def vector_code(kind: str, script: str) -> str:
    program = program_of(product(kind), *operands(kind))
    return stage_text(program, "vector", TARGET, script=script)


@pytest.mark.parametrize("count", [1, 3, 5])
def test_the_steps_of_a_round(count: int) -> None:
    script = chosen("float32")
    rows, vectors = map(int, re.findall(r"(?:rows|vectors) = (\d+)", script))
    text = vector_code("float32", with_number(script, "unroll", str(count)))
    rounds = re.findall(r"scf.for .* step %c(\d+)\w* iter_args", text)
    assert set(rounds) == {str(count)}
    rest = K % count
    loops = text.count("iter_args")
    assert text.count("vector.fma") == loops * (count + rest) * rows * vectors


def test_operands_come_as_far_ahead_as_it_says() -> None:
    script = chosen("float16")
    assert re.findall(r"lines = (\d+) : i64, ahead = (\d+)", script) == [
        ("0", "32"),
        ("0", "128"),
    ]
    text = vector_code("float16", script)
    assert "locality<2>" in text and "locality<3>" in text
    third = vector_code("float16", re.sub("level = [12]", "level = 3", script))
    assert third.count("locality<1>") == text.count("locality<")
    further = vector_code("float16", script.replace("ahead = 32 ", "ahead = 39 "))
    assert further != text and "39 : index" in further
    further = vector_code("float16", script.replace("ahead = 128 ", "ahead = 139 "))
    assert further != text and "139 : index" in further


def test_nothing_comes_unless_it_says_so() -> None:
    assert "memref.prefetch" not in vector_code(
        "float16", without(chosen("float16"), "prefetch")
    )


def test_a_copy_in_front_of_the_products_or_between_them() -> None:
    script = chosen("float32")
    word = re.findall(r'copy_rhs = "(\w+)"', script)[0]
    other = {"front": '"between"', "between": '"front"'}[word]
    text = vector_code("float32", with_number(script, "copy_rhs", other))
    assert text != vector_code("float32", script)
    plain = with_number(without(script, "prefetch"), "copy_rhs", '""')
    assert "memref.alloc" not in vector_code("float32", plain)


@pytest.mark.parametrize("kind", ["bfloat16", "int8"])
def test_rows_that_are_converted_where_they_are_read(kind: str) -> None:
    """No copy of the left operand; the same numbers."""
    script = chosen(kind)
    plain = with_number(without(script, "prefetch"), "convert_lhs", "0")
    assert vector_code(kind, plain) != vector_code(kind, script)


@pytest.mark.drawn
@pytest.mark.parametrize("kind", ["float32", "float16", "bfloat16", "int8"])
@pytest.mark.parametrize(
    "plain", ["unroll = 1", "convert_lhs = 0", 'copy_rhs = ""', "all"]
)
def test_the_same_numbers(kind: str, plain: str) -> None:
    """As chosen and without a word of it; a sum of other terms would be found."""
    x, w = operands(kind)
    target = targets()[-1]
    text = stage_text(program_of(product(kind), x, w), "schedule", target)
    script = without(text[: text.index("\n}\n") + 3], "prefetch")
    for word in ("unroll = 1", "convert_lhs = 0", 'copy_rhs = ""'):
        name, _, value = word.partition(" = ")
        strips = name == "convert_lhs" and "copy_rhs" in plain  # of a panel alone
        if plain in (word, "all") or strips:
            script = re.sub(rf'{name} = (\d+|"\w*")', f"{name} = {value}", script)
    got = run(product(kind), x, w, target=target, order=backwards, script=script)
    exact, magnitude, terms = contracted("mk,kn->mn", x, w)
    if got.dtype.kind == "i":
        exact = exact.astype(np.int64).astype(np.int32)
    check(got, exact, terms + 1, magnitude)
    assert not passes(got, np.roll(exact, 1, -1), terms + 1, magnitude)


@pytest.mark.parametrize(
    ("word", "value", "said"),
    [
        ("unroll", "0", "unroll = 0: family fma has 1 to"),
        ("unroll", "100000", "unroll = 100000: family fma has 1 to"),
        (
            "copy_rhs",
            '"behind"',
            'copy_rhs = "behind": a right operand that is not packed',
        ),
        ("convert_lhs", "16", "convert_lhs = 16: the left operand stays as it is"),
        ("copy_rhs", '""', "nothing fetches argument 1, which comes in no panels"),
    ],
)
def test_refusals(word: str, value: str, said: str) -> None:
    with pytest.raises(Error) as refused:
        vector_code("float32", with_number(chosen("float32"), word, value))
    assert said in str(refused.value)


def test_rounds_may_be_as_long_as_is_said() -> None:
    """The number that a refusal names is taken, the next one is not."""
    with pytest.raises(Error) as refused:
        vector_code("float32", with_number(chosen("float32"), "unroll", "100000"))
    found = re.search(r"1 to (\d+) steps", str(refused.value))
    assert found
    most = int(found[1])
    assert vector_code("float32", with_number(chosen("float32"), "unroll", str(most)))
    with pytest.raises(Error, match=f"unroll = {most + 1}: family fma has 1 to {most}"):
        vector_code("float32", with_number(chosen("float32"), "unroll", str(most + 1)))


def test_a_prefetch_of_what_no_nanokernel_reads() -> None:
    schedule = Schedule((Prefetch(0, ahead=8),))
    program = program_of(product("float32"), *operands("float32"))
    with pytest.raises(Error, match="nothing fetches argument 0"):
        stage_text(program, "vector", TARGET, script=schedule)
