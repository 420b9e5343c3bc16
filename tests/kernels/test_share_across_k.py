"""Kernels that differ in the length of a sum alone are one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from nanoloom import compiler
from nanoloom.binary.kernel import CompiledKernel
from nanoloom.kernels.program import Program
from nanoloom.kernels.share_across_k import share_across_k
from nanoloom.memory.calls import Storage
from nanoloom.options import CompileOptions
from nanoloom.schedule.choose import choose
from nanoloom.schedule.language import Schedule
from nanoloom.target import Target, by_name
from nanoloom.target.host import host
from tests.linalg.bounds import sample, wide
from tests.vector.checks import check
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


def layer(n: int, filters: int) -> list[Array]:
    """Factors, shifts, and two matrices with three ones and two in each column.

    Whole numbers: a layer makes them six times as large, and twelve more, at most, so
    that all are exact in f32 in any order.
    """
    rng, depth = np.random.default_rng(n), FIRST + n * GROWTH
    factor = rng.choice([-1.0, 1.0], depth)
    shift = rng.integers(-2, 3, depth).astype(float)
    narrow, more = np.zeros((depth, filters)), np.zeros((filters, GROWTH))
    for matrix, ones in ((narrow, 3), (more, 2)):
        for column in matrix.T:
            places = rng.choice(len(column), ones, replace=False)
            column[places] = rng.choice([-1.0, 1.0], ones)
    narrow[-1, 0] = 1  # the last step of the sum counts
    return [x.astype(np.float32) for x in (factor, shift, narrow, more)]


def network(filters: int, *, fronts: bool = True) -> Make:
    """A densely connected network: each layer reads all that were before.

    fronts: and normalizes it in front of its products.
    """

    def make(b: Any, x: Any) -> Any:
        for n in range(LAYERS):
            factor, shift, narrow, more = map(b.constant, layer(n, filters))
            read = x
            if fronts:
                read = b.elementwise(lambda s, f, c: s * f + c, x, factor, shift)
                read = b.elementwise(lambda s: s.maximum(0), read)
            made = b.einsum(EQUATION, b.einsum(EQUATION, read, narrow), more)
            x = b.concat([x, made], 3)
        return x

    return make


def image(high: int, wide: int) -> Array:
    shape = (1, high, wide, FIRST)
    return np.random.default_rng(high).integers(-3, 4, shape).astype(np.float32)


def expected(x: Array, filters: int, *, fronts: bool = True) -> Array:
    x = x.astype(np.float64)
    for n in range(LAYERS):
        factor, shift, narrow, more = layer(n, filters)
        read = np.maximum(x * factor + shift, 0) if fronts else x
        made = np.einsum(EQUATION, read, narrow)
        x = np.concatenate([x, np.einsum(EQUATION, made, more)], 3)
    return x


def open_kernels(program: Program) -> list[str]:
    return [k.name for k in program.kernels.values() if "nanoloom.sizes" in k.text]


@pytest.mark.drawn
@TARGETS
@pytest.mark.parametrize("size", [(31, 37, 38), (7, 7, 128), (1, 997, 19)], ids=str)
def test_numbers(size: tuple[int, int, int], target: Target) -> None:
    high, wide, filters = size
    x = image(high, wide)
    apart = program_of(network(filters), x)
    program = share_across_k(apart)
    assert len(program.kernels) == len(apart.kernels) - (LAYERS - 1) + 1
    made, exact = executable(program, target), expected(x, filters)
    assert exact[..., -GROWTH:].any() and abs(exact).max() < 2**24
    for order in (at_once, backwards):
        (got,) = made(x, order=order)
        assert np.array_equal(got, exact)


@TARGETS
def test_sums_are_in_the_same_order(target: Target) -> None:
    """The same bits as each layer's own kernel gives, of numbers that are rounded."""
    x = sample(1, (1, 29, 31, FIRST), "float32")
    apart = program_of(network(38), x)
    (got,), (own,) = (executable(p, target)(x) for p in (share_across_k(apart), apart))
    assert np.array_equal(got, own) and got.any()


def test_a_call_says_how_deep_it_is() -> None:
    program = share_across_k(program_of(network(32), image(30, 30)))
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
    assert name.split("_")[-2].endswith(f"x{max(depths)}")


def test_temporaries_have_room_for_the_deepest() -> None:
    """What scratch memory it takes, and its tasks, are numbers."""
    program = share_across_k(program_of(network(128), image(56, 56)))
    (name,) = open_kernels(program)
    number = list(program.kernels).index(name)
    text = stage_text(program, "vector", by_name("x86-64-v4"), number)
    assert "memref<?x" in text  # panels are as deep as the sum
    options = CompileOptions(by_name("x86-64-v4"))
    made = compiler.compile_kernels(program, options, shared_cache(), compiler.Report())
    assert not any(kernel.is_counted for kernel in made.values())


def test_rows_that_come_ahead_are_as_long_as_a_call_says() -> None:
    """A script names the usual length; of another one, too, it is a tile of rows."""
    x, target = image(64, 64), by_name("znver4")
    program = share_across_k(program_of(network(32, fronts=False), x))
    (name,) = open_kernels(program)
    kernel, number = program.kernels[name], list(program.kernels).index(name)
    assert "Prefetch(0, ahead=" in str(choose(kernel.nest, target))
    assert "memref.prefetch" in stage_text(program, "vector", target, number)
    exact = expected(x, 32, fronts=False)
    assert exact[..., -GROWTH:].any() and abs(exact).max() < 2**24
    for target in targets():
        (got,) = executable(program, target)(x, order=backwards)
        assert np.array_equal(got, exact)


def test_what_has_a_schedule_stays_apart() -> None:
    apart = program_of(network(32), image(30, 30))
    assert share_across_k(apart, set(apart.kernels)) is apart
    deepest = f"x{FIRST + (LAYERS - 1) * GROWTH}_"
    (last,) = (name for name in apart.kernels if deepest in name)
    some = share_across_k(apart, {last})
    assert last in some.kernels and open_kernels(some)


def test_two_prove_nothing() -> None:
    def make(b: Any, x: Any) -> Any:
        made = [b.einsum("mk,kn->mn", x, b.constant(sample(1, (40, 9), "float32")))]
        y = b.concat([x, *made], 1)
        made += [b.einsum("mk,kn->mn", y, b.constant(sample(2, (49, 9), "float32")))]
        return made

    program = program_of(make, ((70, 40), "float32"))
    assert share_across_k(program) is program


def test_the_compiler_joins_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """But not what is searched or has a schedule; nor where sizes count tasks."""
    apart = program_of(network(32), image(30, 30))
    plain = CompileOptions(host())
    made = shared_cache(), compiler.Report()
    fewer, compiled = compiler.compile_shared_k(apart, plain, *made)
    assert len(fewer.kernels) == len(compiled) < len(apart.kernels)
    assert compiler.with_shared_k(apart, replace(plain, search=1.0)) is apart
    given = replace(plain, schedules=(("contraction_*", Schedule(())),))
    assert compiler.with_shared_k(apart, given) is apart
    monkeypatch.setattr(CompiledKernel, "is_counted", True)
    same, compiled = compiler.compile_shared_k(apart, plain, *made)
    assert same is apart and list(compiled) == list(apart.kernels)


SQUARES = {  # rows, sum and columns of a product by its size
    "N = K": lambda s: (20, s, s),
    "M = K": lambda s: (s, s, 20),
    "all equal": lambda s: (s, s, s),
    "K alone": lambda s: (20, s, 20),
    "K and one of the others": lambda s: (s // 2, s, 64),
}


@pytest.mark.drawn
@pytest.mark.parametrize("form", SQUARES)
@pytest.mark.parametrize("sizes", [(64, 80, 128), (48, 50, 52), (128, 64, 33, 7)])
def test_products_of_different_sizes(form: str, sizes: tuple[int, ...]) -> None:
    """What is as long as the sum is an extent of its own."""
    shapes = [SQUARES[form](size) for size in sizes]
    lefts = [sample(s, (m, k), "float32") for s, (m, k, _) in enumerate(shapes)]
    rights = [sample(9 + s, (k, n), "float32") for s, (_, k, n) in enumerate(shapes)]

    def make(b: Any, *given: Any) -> Any:
        return [
            b.einsum("mk,kn->mn", x, b.constant(w))
            for x, w in zip(given, rights, strict=True)
        ]

    shared = share_across_k(program_of(make, *lefts))
    got = executable(shared, host())(*lefts)
    for y, x, w in zip(got, lefts, rights, strict=True):
        exact, most = wide(x) @ wide(w), abs(wide(x)) @ abs(wide(w))
        check(y, exact, x.shape[1] + 1, most)
    assert (len(shared.kernels) < len(sizes)) == (form == "K alone")
