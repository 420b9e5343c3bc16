"""A script that leaves a directive out gets plain code there, and the same numbers."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from nanoloom.errors import Error
from nanoloom.kernels.program import Program
from nanoloom.nest.extent import Lanes
from nanoloom.schedule.choose import choose
from nanoloom.schedule.language import (
    ALL,
    Instruction,
    Nanokernel,
    Pack,
    Parallel,
    PrivateAccumulator,
    ReduceJointly,
    Scalarize,
    Schedule,
    Stack,
    Tail,
    Tile,
    UnrollAndJam,
)
from nanoloom.target import Target, by_name
from tests.linalg.bounds import sample, wide
from tests.notation.programs import kernels
from tests.vector.checks import check
from tests.vector.kernel_harness import (
    backwards,
    executable,
    program_of,
    stage_text,
)
from tests.vector.test_scalable_products import product

F32, X86 = "float32", "x86-64-v3"
Make = Callable[..., Any]


def scores(b: Any, q: Any, k: Any) -> Any:
    return b.einsum("mk,nk->mn", q, k)


def weights(b: Any, x: Any) -> Any:
    return b.einsum("mk,kn->mn", x, b.constant(sample(2, (37, 136), F32)))


TILES = Schedule(
    (
        Pack(1, (), 1, (0,), 32),
        Parallel("product", (26, 32, 0), ALL),
        Tile("product", (6, 0, 0), ALL),
        Nanokernel(6, 4, Lanes(8), True),
        Tail("product", 1),
    )
)


def chosen(program: Program, target: Target) -> Schedule:
    (kernel,) = program.kernels.values()
    if any(x.axes[-1].extent == 37 for x in kernel.nest.stages):
        return TILES
    return choose(kernel.nest, target)


def without(schedule: Schedule, kind: type[Any]) -> Schedule:
    kept = tuple(word for word in schedule.directives if not isinstance(word, kind))
    assert kept != schedule.directives, f"no {kind.__name__} is chosen"
    return Schedule(kept)


def named(value: object) -> str:
    """Part of a test's name, the same in each process."""
    return str(getattr(value, "__name__", value))


CASES = [
    (scores, [(1, 64), (100, 64)], X86, ReduceJointly, r"vector\.store .*<4xf32>"),
    (weights, [(130, 37)], X86, Tail, r"= scf\.if %\S+ -> \(vector<8xf32>, v"),
]


@pytest.mark.parametrize("make, shapes, cpu, kind, mark", CASES, ids=named)
def test_without_it_the_code_is_plain(
    make: Make, shapes: list[tuple[int, ...]], cpu: str, kind: type[Any], mark: str
) -> None:
    target = by_name(cpu)
    program = program_of(make, *((shape, F32) for shape in shapes), target=target)
    made = chosen(program, target)
    assert re.search(mark, stage_text(program, "vector", target, script=made))
    plain = without(made, kind)
    assert not re.search(mark, stage_text(program, "vector", target, script=plain))
    assert str(kind.__name__) in str(made)


@pytest.mark.parametrize("make, shapes, cpu, kind, mark", CASES, ids=named)
def test_numbers_without_it(
    make: Make, shapes: list[tuple[int, ...]], cpu: str, kind: type[Any], mark: str
) -> None:
    del mark
    target = by_name(cpu)
    arrays = [sample(n + 1, shape, F32) for n, shape in enumerate(shapes)]
    program = program_of(make, *arrays, target=target)
    plain = without(chosen(program, target), kind)
    (got,) = executable(program, target, plain)(*arrays, order=backwards)
    left = wide(arrays[0])
    right = wide(arrays[1]).T if len(arrays) > 1 else wide(sample(2, (37, 136), F32))
    check(got, left @ right, left.shape[1], abs(left) @ abs(right))
    with pytest.raises(AssertionError):
        check(got[:, ::-1], left @ right, left.shape[1], abs(left) @ abs(right))


def test_temporaries_are_in_scratch_memory_unless_a_stack_is_said() -> None:
    program, target = program_of(scores, ((2, 64), F32), ((100, 64), F32)), by_name(X86)
    words = (PrivateAccumulator("product"),)
    text = stage_text(program, "vector", target, script=Schedule(words))
    assert "memref.alloca" not in text
    for size, found in ((1024, True), (512, False)):
        said = Schedule((*words, Stack(size)))
        text = stage_text(program, "vector", target, script=said)
        assert ("memref.alloca" in text) is found


def test_a_function_of_f64_is_said_to_be_numbers() -> None:
    target = by_name(X86)

    def sine(b: Any, x: Any) -> Any:
        return b.elementwise(lambda s: s.math("sin"), x)

    program = program_of(sine, ((3, 21), "float64"), target=target)
    made = chosen(program, target)
    assert any(isinstance(word, Scalarize) for word in made.directives)
    assert "math.sin" in stage_text(program, "vector", target, script=made)
    reason = r"point has no vectors of 4 along its axis 0: .* is single numbers"
    with pytest.raises(Error, match=reason):
        stage_text(program, "vector", target, script=without(made, Scalarize))


def test_scalar_code_of_what_could_have_vectors() -> None:
    target = by_name(X86)
    program = program_of(
        lambda b, x: b.elementwise(lambda s: s + s, x), ((3, 21), F32), target=target
    )
    made = chosen(program, target)
    scalar = Schedule((*made.directives, Scalarize("point")))
    assert "vector<8xf32>" in stage_text(program, "vector", target, script=made)
    assert "vector<" not in stage_text(program, "vector", target, script=scalar)


@pytest.mark.parametrize(("kind", "name"), [("int8", "sdot"), ("uint8", "udot")])
def test_bytes_are_multiplied_one_by_one_without_an_instruction(
    kind: str, name: str
) -> None:
    target, program = by_name("aarch64+sve"), kernels(product(kind, kind, "int32", 12))
    made = chosen(program, target)
    (found,) = (x for x in made.directives if isinstance(x, Instruction))
    assert found == Instruction("y", name)
    assert name in stage_text(program, "vector", target, script=made)
    plain = without(made, Instruction)
    assert name not in stage_text(program, "vector", target, script=plain)
    wrong = Schedule((*plain.directives, Instruction("y", "usdot")))
    with pytest.raises(Error, match="no usdot of this CPU adds the products"):
        stage_text(program, "vector", target, script=wrong)


def test_what_the_loops_cannot_have_is_refused_in_a_script() -> None:
    """A script says it of a stage as it lies: the code finds what is wrong."""
    target = by_name(X86)
    program = program_of(scores, ((1, 64), F32), ((100, 64), F32), target=target)
    (kernel,) = program.kernels.values()
    text = chosen(program, target).to_transform(kernel.nest)
    assert '"nanoloom.reduce_jointly"' in text
    word = re.search(r'"nanoloom.reduce_jointly"\((\S+)\)', text)
    assert word is not None
    old = re.search(r'"nanoloom.reduce_jointly".*', text)
    assert old is not None
    init = f'"nanoloom.init_with_addend"({word[1]}) : (!transform.any_op) -> ()'
    with pytest.raises(Error, match="is not computed at the register tile"):
        stage_text(program, "vector", target, script=text.replace(old[0], init))
    wide_ = old[0].replace("count = 4", "count = 16")
    with pytest.raises(Error, match="no 16 results that lie side by side"):
        stage_text(program, "vector", target, script=text.replace(old[0], wide_))


def test_a_joint_reduction_of_any_power_of_two() -> None:
    """Eight results of eight lanes, and two."""
    target = by_name(X86)
    q, k = sample(1, (1, 64), F32), sample(2, (100, 64), F32)
    program = program_of(scores, q, k, target=target)
    made = chosen(program, target)
    for count in (2, 8):
        words = tuple(
            ReduceJointly("product", count)
            if isinstance(x, ReduceJointly)
            else replace(x, count=8)
            if isinstance(x, UnrollAndJam)
            else x
            for x in made.directives
        )
        (got,) = executable(program, target, Schedule(words))(q, k, order=backwards)
        exact = wide(q) @ wide(k).T
        check(got, exact, 64, abs(wide(q)) @ abs(wide(k)).T)
