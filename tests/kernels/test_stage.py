"""The whole stage: random programs run as they should, kernels are made once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nanoloom.fusion.constants_to_arguments import NONE, Arguments
from nanoloom.fusion.group import Group
from nanoloom.fusion.outline import outline
from nanoloom.ir import mlir
from nanoloom.kernels import partition
from nanoloom.kernels.printer import describe_program
from nanoloom.kernels.program import Program
from nanoloom.memory.calls import Storage
from tests.filecheck import check_text
from tests.kernels.random_programs import grown, inputs_of
from tests.linalg.bounds import sample
from tests.vector.kernel_harness import backwards, program_of, run, targets

X = sample(1, (5, 17), "float32")


@pytest.mark.parametrize("seed", range(10))
def test_random_programs_are_exact(seed: int) -> None:
    """Elementwise, reductions, products, transposes and slices of integers in f32."""
    arrays = inputs_of(seed)
    make, exact = grown(seed, arrays, 10)
    target = targets()[seed % len(targets())]
    got = run(make, *arrays, target=target, order=backwards)
    for made, right in zip(got, exact, strict=True):
        assert made.shape == right.shape
        assert (made == right).all()
        assert not (made == right + 1).any()


def written(program: Program) -> list[tuple[int, int]]:
    """(offset, end) of every arena buffer."""
    return [
        (o, o + size) for o, size in zip(program.offsets, program.buffers, strict=True)
    ]


@pytest.mark.parametrize("seed", range(20))
def test_no_call_writes_over_what_a_later_call_reads(seed: int) -> None:
    """Played through on paper: who owns each byte of the arena when it is read."""
    arrays = inputs_of(seed)
    make, _ = grown(seed, arrays, 25)
    program = program_of(make, *arrays)
    owner = np.full(max(program.arena_bytes, 1), -1)
    spans = written(program)
    for call in program.calls:
        count = len(program.kernels[call.kernel].nest.results)
        for place in call.arguments[:-count]:
            if place.storage is Storage.ARENA:
                begin, end = spans[place.index]
                assert (owner[begin:end] == place.index).all()
        for result in call.arguments[-count:]:
            if result.storage is Storage.ARENA:
                begin, end = spans[result.index]
                owner[begin:end] = result.index


def test_kernels_equal_up_to_their_parameters_are_made_once() -> None:
    """Twelve layers with weights of their own: one kernel, twelve calls."""
    weights = [sample(i, (17, 17), "float32", -0.2, 0.2) for i in range(12)]

    def make(b: Any, x: Any) -> Any:
        for weight in weights:
            product = b.einsum("mk,kn->mn", x, b.constant(weight))
            x = b.elementwise(lambda s: s.maximum(0), product)
        return x

    program = program_of(make, X)
    assert len(program.kernels) == 1
    assert len(program.calls) == 12
    places = [call.arguments[1] for call in program.calls]
    assert [p.index for p in places] == list(range(12))
    assert program.arena_bytes <= 2 * 384  # two buffers take turns
    exact = X.astype(np.float64)
    for weight in weights:
        exact = np.maximum(exact @ weight, 0)
    got = run(make, X)
    assert abs(got - exact).max() <= 1e-4 * abs(exact).max()
    assert abs(0 * got - exact).max() > 1e-4 * abs(exact).max()


@pytest.mark.parametrize("numbers", [(2.0, 2.0, 2.0), (2.0, 3.0, 5.0)])
def test_a_call_is_outlined_once(
    numbers: tuple[float, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And a kernel once more where numbers in which its calls differ are arguments."""
    made: list[Arguments] = []

    def counted(
        group: Group, known: Any, factors: Any, given: Arguments = NONE, **words: Any
    ) -> Any:
        made.append(given)
        return outline(group, known, factors, given, **words)

    def make(b: Any, x: Any) -> Any:
        weight = b.constant(sample(1, (17, 17), "float32"))
        for number in numbers:
            scaled = b.elementwise(lambda v, n=number: v * n, x)
            x = b.einsum("mk,kn->mn", scaled, weight)
        return x

    monkeypatch.setattr(partition, "outline", counted)
    program = program_of(make, X)
    differ = len(set(numbers)) > 1
    assert len([each for each in made if each.types]) == differ
    assert len(made) == len(program.calls) + differ
    assert any("2.000000e+00" in k.text for k in program.kernels.values())


def test_views_cost_nothing() -> None:
    program = program_of(
        lambda b, x: b.reshape(b.elementwise(lambda s: s + s, x), (17, 5)), X
    )
    assert len(program.calls) == 1
    assert program.arena_bytes == 0


def test_a_program_in_words() -> None:
    def make(b: Any, x: Any) -> Any:
        weight = b.constant(sample(2, (17, 19), "float32"))
        return b.reduce(lambda a, s: a + s, b.einsum("mk,kn->mn", x, weight), [1], 0)

    with mlir.context():
        text = describe_program(program_of(make, X))
    check_text(
        text,
        """
    CHECK: func.func @contraction_f32_5x19x17_
    CHECK: // -----
    CHECK: func.func @reduction_f32_5x19_
    CHECK: // calls in order:
    CHECK-NEXT: contraction_f32_5x19x17_{{[0-9a-f]+}}(input0, parameter0, arena0)
    CHECK-NEXT: reduction_f32_5x19_{{[0-9a-f]+}}(arena0, output0)
    """,
    )
