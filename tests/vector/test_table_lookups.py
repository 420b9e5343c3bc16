"""Tables of 256 bytes: all numbers, any number of them, and what looks them up."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nanoloom.linalg.builder.builder import Map
from nanoloom.linalg.builder.indexing import map_generic
from nanoloom.target import by_name
from nanoloom.target.host import host
from tests.vector.assembly import count
from tests.vector.kernel_harness import program_of, run, stage_text, targets

OLD = by_name("x86-64-v2")  # every x86 can run it
HERE = (*targets(), OLD) if host().arch == OLD.arch else targets()
TABLE = np.random.default_rng(3).permutation(256).astype(np.uint8)


def looked_up(b: Any, x: Any) -> Any:
    table = b.value(b.constant(TABLE))
    same = Map.get_identity(x.rank)
    return map_generic(
        b, x.shape, x.dtype, [(x, same)], lambda s: b.load(table, x.dtype, [s])
    )


def widened(b: Any, x: Any) -> Any:
    return b.cast(looked_up(b, x), np.dtype(np.float32))


@pytest.mark.drawn
@pytest.mark.parametrize("target", HERE, ids=str)
@pytest.mark.parametrize("shape", [(256,), (1,), (31,), (3, 65), (5, 7, 48)], ids=str)
@pytest.mark.parametrize("make", [looked_up, widened])
def test_numbers(target: Any, shape: tuple[int, ...], make: Any) -> None:
    size = int(np.prod(shape))
    x = np.resize(np.arange(256, dtype=np.uint8)[::-1], size).reshape(shape)
    got = run(make, x, target=target)
    np.testing.assert_array_equal(got, TABLE[x])
    assert size < 2 or (got != x).any()


INSTRUCTIONS = {
    "x86-64-v2": "pshufb",
    "x86-64-v3": "vpshufb",
    "x86-64-v4": "vpshufb",
    "aarch64": "tbl",
}


@pytest.mark.parametrize("name", INSTRUCTIONS)
def test_instructions(name: str) -> None:
    program = program_of(looked_up, ((64, 256), "uint8"))
    lines = [x.strip() for x in stage_text(program, "asm", by_name(name)).splitlines()]
    assert count(lines, INSTRUCTIONS[name]) in (4, 16)
    assert not count(lines, "pextrb") and not count(lines, "umov")


@pytest.mark.parametrize("name", ["riscv64+v", "x86-64-v3"])
def test_other_lanes_load_one_after_another(name: str) -> None:
    program = program_of(widened, ((64, 256), "uint8"))
    lines = [x.strip() for x in stage_text(program, "asm", by_name(name)).splitlines()]
    assert not count(lines, "pshufb")
