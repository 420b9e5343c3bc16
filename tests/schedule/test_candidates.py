"""What a schedule was chosen from is kept with it, each a schedule of its own."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from nanoloom.nest.nest import LoopNest
from nanoloom.notation import Buffer, Computation, axes, computation, exp, minimum
from nanoloom.schedule.choose import choose
from nanoloom.schedule.language import Nanokernel, Schedule, no_candidates
from nanoloom.schedule.printer import print_schedule
from nanoloom.target import by_name
from tests.kernels.attention_programs import Attention, attention_program
from tests.linalg.bounds import sample, wide
from tests.nest.nests import matmul
from tests.notation.programs import kernels, stencil
from tests.vector.checks import check
from tests.vector.kernel_harness import program_of, run, targets

TARGET = by_name("x86-64-v3")


def test_the_cheapest_is_the_chosen_one() -> None:
    made = choose(matmul(), TARGET)
    costs = [candidate.cost for candidate in made.candidates]
    assert len(costs) > 2
    assert costs == sorted(costs)
    assert min(costs) >= 1
    assert made.candidates[0].directives == made.directives
    words = [candidate.directives for candidate in made.candidates]
    assert len(set(words)) == len(words)


def test_they_are_no_part_of_the_schedule() -> None:
    made = choose(matmul(), TARGET)
    bare = dataclasses.replace(made, make_candidates=no_candidates)
    assert bare == made and hash(bare) == hash(made)
    assert "Candidate" not in repr(made)


def test_a_target_of_more_registers_has_larger_tiles() -> None:
    narrow = choose(matmul(512, 512, 512), TARGET).candidates
    wide_ones = choose(matmul(512, 512, 512), by_name("x86-64-v4")).candidates
    assert narrow[0].directives != wide_ones[0].directives


@pytest.mark.parametrize("number", range(3))
def test_each_is_a_schedule(number: int) -> None:
    """The numbers are those of the first, up to how sums are rounded."""
    target = targets()[-1]
    w = sample(1, (29, 50), "float32")

    def make(b: Any, x: Any) -> Any:
        return b.einsum("mk,kn->mn", x, b.constant(w))

    x = sample(2, (37, 29), "float32")
    (kernel,) = program_of(make, x).kernels.values()
    other = choose(kernel.nest, target).candidates[number]
    got = run(make, x, target=target, script=Schedule(other.directives))
    check(got, wide(x) @ wide(w), 30, np.abs(wide(x)) @ np.abs(wide(w)))


def shortest() -> Computation:
    i, j, r = axes("i j r")
    a, b, c = Buffer("a", (130, 70)), Buffer("b", (70, 95)), Buffer("c", (130, 95))
    c[i, j] = minimum(c[i, j], a[i, r] + b[r, j])
    return computation(c)


def rows() -> Computation:
    i, j = axes("i j")
    x, total, y = Buffer("x", (37, 70)), Buffer("total", (37,)), Buffer("y")
    total[i] += exp(x[i, j])
    y[i, j] = exp(x[i, j]) / total[i]
    return computation(y)


def depthwise() -> Computation:
    n, y, x, c, u, v = axes("n y x c u v")
    image, weights = Buffer("image", (1, 16, 19, 24)), Buffer("weights", (3, 3, 24))
    made = Buffer("made", (1, 14, 17, 24))
    made[n, y, x, c] += image[n, y + u, x + v, c] * weights[u, v, c]
    return computation(made)


def chosen(made: Computation) -> Schedule:
    (kernel,) = kernels(made).kernels.values()
    return choose(kernel.nest, TARGET)


@pytest.mark.parametrize(
    ("made", "least"), [(shortest, 3), (stencil, 1), (rows, 1), (depthwise, 3)]
)
def test_every_chooser_keeps_what_it_weighed(made: Any, least: int) -> None:
    schedule = chosen(made())
    costs = [candidate.cost for candidate in schedule.candidates]
    assert len(costs) >= least
    rounded = [round(cost, 3) for cost in costs]
    assert rounded == sorted(rounded)
    assert all(0.9 < cost < 20 for cost in costs)
    assert schedule.directives in [x.directives for x in schedule.candidates]


@pytest.mark.parametrize("machine", ["x86-64-v3", "sapphirerapids"])
def test_attention_weighs_the_tiles_of_both_products(machine: str) -> None:
    given = Attention((2, 3), 197, 197, 40)
    program = attention_program(
        given.make, *given.inputs(), bf16=machine == "sapphirerapids"
    )
    (kernel,) = [k for k in program.kernels.values() if k.root == "contractions"]
    schedule = choose(kernel.nest, by_name(machine))
    assert len(schedule.candidates) == (1 if machine == "sapphirerapids" else 9)
    assert schedule.directives in [x.directives for x in schedule.candidates]
    assert all(1 <= x.cost < 20 for x in schedule.candidates)


def of_elements(left: str, right: str, sums: str) -> LoopNest:
    """A product of numbers of these types."""
    nest = matmul(256, 512, 256)
    product = nest.stage("product")
    pairs = zip(product.reads, (left, right), strict=True)
    reads = tuple(dataclasses.replace(read, element=kind) for read, kind in pairs)
    writes = tuple(dataclasses.replace(x, element=sums) for x in product.writes)
    made = dataclasses.replace(product, reads=reads, writes=writes)
    stages = tuple(made if s == product else s for s in nest.stages)
    return dataclasses.replace(nest, stages=stages)


def families(nest: LoopNest, machine: str) -> list[str]:
    """Of the nanokernels that were weighed, the chosen one first, each once."""
    made = choose(nest, by_name(machine))
    words = [word for each in (made, *made.candidates) for word in each.directives]
    return list(dict.fromkeys(w.family for w in words if isinstance(w, Nanokernel)))


@pytest.mark.parametrize(
    ("elements", "machine", "found"),
    [
        (("bf16", "bf16", "f32"), "sapphirerapids", ["amx-bf16", "bf16-halves", "fma"]),
        (("bf16", "bf16", "f32"), "x86-64-v3", ["bf16-halves", "fma"]),
        (
            ("u8", "s8", "i32"),
            "sapphirerapids",
            ["amx-int8", "int8-dot", "int8-pairs", "int8-lanes"],
        ),
        (
            ("u8", "s8", "i32"),
            "x86-64-v3",
            ["int8-inner", "int8-pairs", "int8-lanes"],
        ),
        (("s16", "s16", "i32"), "x86-64-v3", ["int16-pairs"]),
        (("f32", "f32", "f32"), "x86-64-v3", ["fma"]),
    ],
    ids=str,
)
def test_families_of_nanokernels(
    elements: tuple[str, str, str], machine: str, found: list[str]
) -> None:
    assert families(of_elements(*elements), machine) == found


def test_what_is_weighed_is_shown_with_the_script() -> None:
    (kernel,) = kernels(shortest()).kernels.values()
    schedule = choose(kernel.nest, TARGET)
    lines = print_schedule(kernel, schedule).splitlines()
    place = lines.index("// weighed: predicted cycles for the least work:")
    first = schedule.candidates[0]
    assert lines[place + 1] == f"//   * {first.cost:6.2f}  {first.reason}"
    assert lines[place + 2].startswith("//       1.")
    assert "// words, for the reader: an edit counts in the script above:" in lines
    bare = dataclasses.replace(schedule, make_candidates=no_candidates)
    assert "weighed" not in print_schedule(kernel, bare)
