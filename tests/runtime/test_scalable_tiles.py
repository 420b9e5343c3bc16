"""Tiles as wide as the machine's vectors, which sums in memory are computed in."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nanoloom.cache import Cache
from nanoloom.compile_program import compile
from nanoloom.nest.extent import Lanes
from nanoloom.notation import Buffer, Computation, axes, computation, maximum
from nanoloom.options import CompileOptions
from nanoloom.runtime.emulation import machine, run_emulated
from nanoloom.schedule.language import (
    ALL,
    ComputeAt,
    Directive,
    Parallel,
    Schedule,
    Tile,
    Unroll,
    UnrollAndJam,
    Vectorize,
)
from tests.c_libraries import lend

M, K, N = 7, 20, 517
FOUR, TWO = Lanes(4, scalable=True), Lanes(2, scalable=True)
LENGTHS = {
    "aarch64+sve": (":sve=128", ":sve=512", ":sve=2048"),
    "riscv64+v": (":vlen=128", ":vlen=1024"),
}


def chain() -> Computation:
    i, j, k = axes("i j k")
    a, b, s, y = Buffer("a", (M, K)), Buffer("b", (K, N)), Buffer("s"), Buffer("y")
    s[i, j] += a[i, k] * b[k, j]
    y[i, j] = maximum(s[i, j], 0)
    return computation(y)


def at(loop: str) -> tuple[Directive, ...]:
    """The sums at a loop of what reads them, in vectors half as wide."""
    places = ComputeAt("s", "y", loop), ComputeAt("fill", "y", loop)
    return *places, Vectorize("s", "j", TWO), Vectorize("fill", "d1", FOUR)


# Sizes of the tile that the sums are computed in, and what makes it.
WORDS = {
    "[4]": (Vectorize("y", "j", FOUR), *at("j")),
    "[8]": (Vectorize("y", "j", FOUR), UnrollAndJam("y", "j", 2), *at("j")),
    "2 x [12]": (Vectorize("y", "j", FOUR), Tile("y", (2, 3)), *at("jo")),
    "2 x [4]": (
        Vectorize("y", "j", FOUR),
        Vectorize("y", "i", Lanes(2)),
        *at("j"),
    ),
    "[4] in tasks": (Parallel("y", (3, 0), ALL), Vectorize("y", "j", FOUR), *at("j")),
    "[4] twice": (Vectorize("y", "j", FOUR), Unroll("y", "j", 2), *at("ju")),
}


@pytest.mark.drawn
@pytest.mark.parametrize("name", LENGTHS)
@pytest.mark.parametrize("words", WORDS.values(), ids=list(WORDS))
def test_numbers_at_every_length(
    tmp_path: Path, name: str, words: tuple[Directive, ...]
) -> None:
    target, cache = machine(name).target, Cache(tmp_path)
    lend(target.arch, cache)
    options = CompileOptions(target, schedules=(("*", Schedule(words)),))
    program = compile(chain(), options=options, cache=cache)
    path = program.save(tmp_path / "chain", form="executable")
    rng = np.random.default_rng(4)
    given = {
        "a": rng.standard_normal((M, K)).astype(np.float32),
        "b": rng.standard_normal((K, N)).astype(np.float32),
    }
    a, b = (x.astype(np.float64) for x in given.values())
    bound = (K + 2) * np.finfo(np.float32).eps * (abs(a) @ abs(b))
    for length in LENGTHS[name]:
        arrays = [given[x.name] for x in program.inputs]
        kinds = {x.name: x.dtype for x in program.outputs}
        got = run_emulated(machine(name + length), path, arrays, kinds)["y"]
        assert (abs(got - np.maximum(a @ b, 0)) <= bound).all()
        assert not (abs(0 * got - np.maximum(a @ b, 0)) <= bound).all()
