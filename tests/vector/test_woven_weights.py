"""Weights that are woven while compiling, for vectors as wide as the machine's.

tests/runtime/test_emulated_bytes.py and test_emulated_halves.py have the numbers.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from nanoloom.errors import Error
from nanoloom.kernels.program import Program
from nanoloom.schedule.choose import choose
from nanoloom.schedule.language import (
    CopyOperand,
    Directive,
    Parallel,
    Schedule,
    Tile,
    UnrollAndJam,
)
from nanoloom.schedule.packing import Pack
from nanoloom.target import by_name
from tests.linalg.bounds import dtype_of
from tests.vector.assembly import count, loop_with, touches_stack
from tests.vector.kernel_harness import program_of, stage_text

M, K, N = 70, 131, 517
SUMS = {"int8": "int32", "uint8": "int32", "bfloat16": "float32", "float16": "float32"}


def product(left: str, right: str, rows: int = M) -> Program:
    """x @ w, w a weight."""
    weight = np.zeros((K, N), dtype_of(right))

    def make(b: Any, x: Any) -> Any:
        return b.einsum("mk,kn->mn", x, b.constant(weight), dtype=np.dtype(SUMS[left]))

    return program_of(make, ((rows, K), left))


def words_of(program: Program, name: str) -> tuple[Directive, ...]:
    (kernel,) = program.kernels.values()
    return choose(kernel.nest, by_name(name)).directives


@pytest.mark.drawn
@pytest.mark.parametrize(
    ("target", "left", "right", "dot", "steps", "more"),
    [
        ("armv9-sve2", "int8", "int8", "sdot", 4, 0),
        ("aarch64+sve", "uint8", "int8", "sdot", 4, 1),
        ("aarch64+sve+i8mm", "int8", "int8", "smmla", 8, 0),
        ("aarch64+sve+i8mm", "uint8", "uint8", "ummla", 8, 0),
        ("aarch64+sve+i8mm", "uint8", "int8", "usmmla", 8, 0),
        ("aarch64+sve+i8mm", "int8", "uint8", "usmmla", 8, 0),
        ("aarch64+sve+bf16", "bfloat16", "bfloat16", "bfmmla", 4, 0),
    ],
)
def test_a_step_is_loads_and_products(
    target: str, left: str, right: str, dot: str, steps: int, more: int
) -> None:
    """Nothing of the weight is shuffled; of two rows at once, theirs are beside."""
    program = product(left, right)
    words = words_of(program, target)
    (packing,) = (x for x in words if isinstance(x, Pack))
    assert packing.group == steps
    assert not [x for x in words if isinstance(x, CopyOperand)]
    rows, *_ = (x.count for x in words if isinstance(x, UnrollAndJam))
    loop = loop_with(stage_text(program, "asm", by_name(target)), dot)
    matrices = dot.endswith("mmla")
    products = count(loop, dot)
    loads = len([x for x in loop if re.match(r"ld1[bhwd]|ldr\s+z", x)])
    assert products % (rows + more) == 0 and not touches_stack(loop)
    shuffles = [x for x in loop if re.match(r"(zip|uzp|trn|tbl|ext)", x)]
    assert len(shuffles) == (rows // 2 if matrices else 0)
    registers = products // (rows // 2 if matrices else rows + more)
    factors = rows * (1 if matrices else registers // 4)
    assert loads == registers
    assert len(loop) <= products + loads + len(shuffles) + (2 + more) * factors + 16


def test_pairs_of_f16() -> None:
    """SVE2.1's fdot: whole registers of woven pairs, and all sums stay in registers."""
    program, name = product("float16", "float16"), "aarch64+sve2p1"
    words = words_of(program, name)
    (packing,) = (x for x in words if isinstance(x, Pack))
    rows, *_ = (x.count for x in words if isinstance(x, UnrollAndJam))
    loop = loop_with(stage_text(program, "asm", by_name(name)), "fdot")
    assert packing.group == 2 and count(loop, "fdot") == 8 * rows
    assert len([x for x in loop if re.match(r"ld1[bhwd]|ldr\s+z", x)]) == 8
    assert not [x for x in loop if re.match(r"str\s+z|zip|uzp|trn|tbl|fmla", x)]


def test_panels_are_alike_and_as_wide_as_a_task() -> None:
    """517 columns are three panels of 176, no whole vectors at every width."""
    words = words_of(product("int8", "int8"), "armv9-sve2")
    (packing,) = (x for x in words if isinstance(x, Pack))
    (tasks,) = (x for x in words if isinstance(x, Parallel))
    assert packing.columns == tasks.sizes[1] == 176


def test_a_row_alone_reads_all_columns_as_one_panel() -> None:
    words = words_of(product("int8", "int8", rows=1), "aarch64+sve+i8mm")
    (packing,) = (x for x in words if isinstance(x, Pack))
    assert (packing.columns, packing.group) == (528, 4)


def changed(words: tuple[Directive, ...], **sizes: int) -> Schedule:
    """With tasks of so many columns, or the sum cut in parts of so many steps."""
    made: list[Directive] = []
    for word in words:
        if isinstance(word, Parallel) and "columns" in sizes:
            word = replace(word, sizes=(*word.sizes[:1], sizes["columns"]))
        made.append(word)
        if isinstance(word, Parallel) and "steps" in sizes:
            made.append(Tile(word.stage, (0, 0, sizes["steps"])))
    return Schedule(tuple(made))


@pytest.mark.parametrize(
    ("sizes", "reason"),
    [
        ({"columns": 64}, "begins inside of a panel of 176"),
        ({"columns": 352}, "reads 352 columns of panels that have 176"),
        ({"steps": 30}, "begins inside of a group of steps of 4"),
    ],
)
def test_parts_that_panels_do_not_have_are_refused(
    sizes: dict[str, int], reason: str
) -> None:
    program = product("int8", "int8")
    script = changed(words_of(program, "armv9-sve2"), **sizes)
    with pytest.raises(Error, match=reason):
        stage_text(program, "llvm", by_name("armv9-sve2"), script=script)


def test_parts_of_whole_groups_are_read() -> None:
    program = product("int8", "int8")
    script = changed(words_of(program, "armv9-sve2"), steps=32)
    text = stage_text(program, "asm", by_name("armv9-sve2"), script=script)
    assert "sdot" in text and not re.search(r"zip1\s+z", text)
