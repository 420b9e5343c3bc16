"""Kernels that differ in the length of a sum alone are one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from nanoloom import compiler
from nanoloom.binary.kernel import CompiledKernel
from nanoloom.kernels.depths import join_depths
from nanoloom.kernels.program import Program, Storage
from nanoloom.options import CompileOptions
from nanoloom.schedule.language import Schedule
from nanoloom.target import Target, by_name
from nanoloom.target.host import host
from tests.linalg.bounds import sample
from tests.vector.kernel_harness import (
    Array,
    Make,
    at_once,
    backwards,
    executable,
    program_of,
    shared_cache,
    stage_text,
    targets,
)

TARGETS = pytest.mark.parametrize("target", targets(), ids=str)
EQUATION = "nhwc,cf->nhwf"
FIRST, GROWTH = 40, 24
LAYERS = 5  # the first one reads the input, the others what is joined


def network(high: int, wide: int, filters: int, *, normalized: bool = True) -> Make:
    """A densely connected network: each layer reads all that were before."""

    def make(b: Any, x: Any) -> Any:
        for n in range(LAYERS):
            depth = FIRST + n * GROWTH
            read = normalize(b, x, n, depth) if normalized else x
            narrow = sample(3 * n + 2, (depth, filters), "float32") / depth
            made = b.einsum(EQUATION, read, b.constant(narrow))
            more = sample(3 * n + 3, (filters, GROWTH), "float32")
            x = b.concat([x, b.einsum(EQUATION, made, b.constant(more))], 3)
        return x

    return make


def normalize(b: Any, x: Any, n: int, depth: int) -> Any:
    factor, shift = (sample(n + i, (depth,), "float32") for i in (40, 60))
    both = b.constant(factor), b.constant(shift)
    made = b.elementwise(lambda s, f, c: s * f + c, x, *both)
    return b.elementwise(lambda s: s.maximum(0), made)


def expected(x: Array, filters: int) -> Array:
    x = x.astype(np.float64)
    for n in range(LAYERS):
        depth = FIRST + n * GROWTH
        factor, shift = (sample(n + i, (depth,), "float32") for i in (40, 60))
        narrow = sample(3 * n + 2, (depth, filters), "float32") / depth
        made = np.einsum(EQUATION, np.maximum(x * factor + shift, 0), narrow)
        more = sample(3 * n + 3, (filters, GROWTH), "float32")
        x = np.concatenate([x, np.einsum(EQUATION, made, more)], 3)
    return x


def open_kernels(program: Program) -> list[str]:
    return [k.name for k in program.kernels.values() if "nanoloom.sizes" in k.text]


@TARGETS
@pytest.mark.parametrize("size", [(31, 37, 38), (7, 7, 128), (1, 997, 19)], ids=str)
def test_numbers(size: tuple[int, int, int], target: Target) -> None:
    """The same bits as each layer's own kernel gives."""
    high, wide, filters = size
    x = sample(1, (1, high, wide, FIRST), "float32")
    apart = program_of(network(*size), x)
    program = join_depths(apart)
    assert len(program.kernels) == len(apart.kernels) - (LAYERS - 1) + 1
    made = executable(program, target)
    (got,), (again,) = (made(x, order=order) for order in (at_once, backwards))
    assert np.array_equal(got, again)
    (own,) = executable(apart, target)(x)
    assert np.array_equal(got, own)
    exact = expected(x, filters)
    assert np.allclose(got, exact, rtol=1e-4, atol=1e-4 * abs(exact).max())


def test_a_call_says_how_deep_it_is() -> None:
    program = join_depths(program_of(network(30, 30, 32), ((1, 30, 30, 40), "float32")))
    (name,) = open_kernels(program)
    calls = [call for call in program.calls if call.kernel == name]
    inputs = len(program.kernels[name].constants)
    depths: list[int] = []
    for call in calls:
        place = call.arguments[inputs - 1]
        assert place.storage is Storage.PARAMETER
        depths += program.parameters[place.index].array().tolist()
        assert len(call.shapes) == len(call.arguments)
    assert depths == [FIRST + n * GROWTH for n in range(1, LAYERS)]
    assert program.kernels[name].name.split("_")[-2].endswith(f"x{max(depths)}")


def test_temporaries_have_room_for_the_deepest() -> None:
    """A row of scratch memory lies at a known distance from the next."""
    program = join_depths(
        program_of(network(56, 56, 128), ((1, 56, 56, 40), "float32"))
    )
    (name,) = open_kernels(program)
    number = list(program.kernels).index(name)
    text = stage_text(program, "vector", by_name("x86-64-v4"), number)
    assert "memref<?x" in text  # panels are as deep as the sum
    options = CompileOptions(by_name("x86-64-v4"))
    made = compiler.compile_kernels(program, options, shared_cache(), compiler.Report())
    assert not any(kernel.is_counted for kernel in made.values())


def test_what_has_a_schedule_stays_apart() -> None:
    apart = program_of(network(30, 30, 32), ((1, 30, 30, 40), "float32"))
    deep = [k for k in apart.kernels if not k.startswith("contraction")]
    assert join_depths(apart, set(apart.kernels)) is apart
    layers = [k for k in apart.kernels if k not in deep]
    some = join_depths(apart, {layers[0]})
    assert layers[0] in some.kernels


def test_two_prove_nothing() -> None:
    def make(b: Any, x: Any) -> Any:
        made = [b.einsum("mk,kn->mn", x, b.constant(sample(1, (40, 9), "float32")))]
        y = b.concat([x, *made], 1)
        made += [b.einsum("mk,kn->mn", y, b.constant(sample(2, (49, 9), "float32")))]
        return made

    program = program_of(make, ((70, 40), "float32"))
    assert join_depths(program) is program


def test_the_compiler_joins_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """But not what is searched or has a schedule; nor where sizes count tasks."""
    apart = program_of(network(30, 30, 32), ((1, 30, 30, 40), "float32"))
    plain = CompileOptions(host())
    made = shared_cache(), compiler.Report()
    fewer, compiled = compiler.compile_depths(apart, plain, *made)
    assert len(fewer.kernels) == len(compiled) < len(apart.kernels)
    assert compiler.with_depths(apart, replace(plain, search=1.0)) is apart
    given = replace(plain, schedules=(("contraction_*", Schedule(())),))
    assert compiler.with_depths(apart, given) is apart
    monkeypatch.setattr(CompiledKernel, "is_counted", True)
    same, compiled = compiler.compile_depths(apart, plain, *made)
    assert same is apart and list(compiled) == list(apart.kernels)
