"""The passes of the vector stage: each finds what it needs, and what holds stays."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nanoloom.errors import Error
from nanoloom.ir import mlir
from nanoloom.schedule.choose import choose
from nanoloom.target import by_name
from nanoloom.vector.conditions import NO_GENERICS, Condition
from nanoloom.vector.directives import Directives, tile
from nanoloom.vector.passes import PASSES, Pass, Work
from tests.vector.kernel_harness import program_of
from tests.vector.test_stage import KERNELS

TARGETS = ("x86-64-v3", "sapphirerapids", "neoverse-v1", "apple-m1", "rv64gcv")


def broken(module: mlir.ir.Module, conditions: dict[str, Condition]) -> list[str]:
    return [
        f"{name}: {op.operation.name}"
        for name, condition in conditions.items()
        for op in condition.against(module)
    ]


def run(order: tuple[Pass, ...], kernel: str, target: str) -> list[str]:
    """What is broken in front of a pass or behind it, by a run of some passes."""
    make, shape = KERNELS[kernel]
    program = program_of(make, (shape, "float32"))
    found: list[str] = []
    for each in program.kernels.values():
        holds: dict[str, Condition] = {}
        script = choose(each.nest, by_name(target)).to_transform(each.nest)
        with mlir.context():
            module = mlir.ir.Module.parse(each.text)
            work = Work(module, by_name(target), Directives(by_name(target)))
            tile(module, script, work.said)
            for number, each_pass in enumerate(order):
                found += broken(module, {str(c): c for c in each_pass.needs})
                each_pass.run(work)
                holds |= {str(c): c for c in each_pass.makes}
                found += [f"pass {number}: {said}" for said in broken(module, holds)]
            module.operation.verify()
    return found


@pytest.mark.drawn
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kernel", KERNELS)
def test_what_holds(kernel: str, target: str) -> None:
    assert run(PASSES, kernel, target) == []


def test_what_a_pass_needs_was_made() -> None:
    """By one in front of it; and nothing is made that nobody knows."""
    made: set[str] = set()
    for each in PASSES:
        assert {str(c) for c in each.needs} <= made
        made |= {str(c) for c in each.makes}


def test_what_is_missing_is_noticed() -> None:
    """A pass without those in front of it, and one that does nothing."""
    said = run(PASSES[1:2], "sum", TARGETS[0])
    assert any(each.startswith("no tensors: ") for each in said)
    order = tuple(
        replace(each, run=lambda _: None) if NO_GENERICS in each.makes else each
        for each in PASSES
    )
    said = run(order[: order.index(order[-1])], "sum", TARGETS[0])
    assert any("loops, no generics: linalg.generic" in each for each in said)


def test_a_script_that_does_not_fit_is_an_error() -> None:
    make, shape = KERNELS["sum"]
    (kernel,) = program_of(make, (shape, "float32")).kernels.values()
    with mlir.context(), pytest.raises(Error):
        module = mlir.ir.Module.parse(kernel.text)
        tile(module, "nothing", Directives(by_name(TARGETS[0])))
