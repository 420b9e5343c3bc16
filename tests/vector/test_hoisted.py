"""Copies of operands that are made once, in front of a loop around their stage."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nanoloom.errors import Error
from nanoloom.nest.extent import Lanes
from nanoloom.nest.printer import print_nest
from nanoloom.nest.statement import AxisKind, Statement
from nanoloom.notation import Buffer, Computation, axes, computation, maximum
from nanoloom.schedule.language import (
    ALL,
    CopyOperand,
    Directive,
    Hoist,
    Parallel,
    Schedule,
    Split,
    Stack,
    Tile,
    Unroll,
    UnrollAndJam,
    Vectorize,
)
from nanoloom.target import Target, by_name
from tests.filecheck import check_text
from tests.linalg.bounds import sample, wide
from tests.nest.nests import access, matmul
from tests.notation.programs import kernels
from tests.vector.checks import check
from tests.vector.kernel_harness import backwards, executable, stage_text, targets

TARGETS = pytest.mark.parametrize("target", targets(), ids=str)
AVX2 = by_name("x86-64-v3")
LANES = Lanes(8)


def product(m: int, k: int, n: int) -> Computation:
    """c = a b; y = max(c, 0)"""
    i, j, r = axes("i j r")
    a, b, c = Buffer("a", (m, k)), Buffer("b", (k, n)), Buffer("c", (m, n))
    y = Buffer("y")
    c[i, j] += a[i, r] * b[r, j]
    y[i, j] = maximum(c[i, j], 0)
    return computation(y)


def words(columns: int, *more: Directive, rows: int = 3) -> Schedule:
    """Tasks of columns, in each of them tiles of rows with the product inside."""
    return Schedule((
        Parallel("y", (0, columns), ALL), Tile("y", (rows, 0), ALL),
        CopyOperand("c", 1, LANES), *more,
        Vectorize("c", "j", LANES), UnrollAndJam("c", "i", 3),
        Vectorize("y", "j", LANES),
    ))  # fmt: skip


def test_the_loops_say_where_it_is_made() -> None:
    (kernel,) = kernels(product(7, 9, 70)).kernels.values()
    nest = words(32, Hoist("c", 1, "io")).apply(kernel.nest)
    lines = print_nest(nest).splitlines()
    assert lines[:3] == [
        "forall jo in 0..3 by 32 (j):",
        "  c: a copy of arg1",
        "  for io in 0..3 by 3 (i):",
    ]
    assert "arg1[r, j], with a copy of arg1" in "".join(lines)


def test_the_script_says_so() -> None:
    (kernel,) = kernels(product(7, 9, 70)).kernels.values()
    check_text(
        words(32, Hoist("c", 1, "io")).to_transform(kernel.nest),
        """
    CHECK: [[LOOPS:%loops.*]] = transform.structured.fuse {{.*}} tile_sizes [3, 0]
    CHECK: "nanoloom.copy_operand"([[C:%c_.*]], %lanes8) {operand = 1 : i64
    CHECK: [[NAME:%.*]] = transform.param.constant "y.io"
    CHECK-NEXT: transform.annotate {{%loops[0-9]+}} "nanoloom.loop" = [[NAME]]
    CHECK: "nanoloom.hoist"({{%c_.*}}) {operand = 1 : i64, loop = "y.io"}
    """,
    )


def test_it_is_copied_in_front_of_the_loop() -> None:
    program = kernels(product(9, 7, 32))
    text = stage_text(
        program, "vector", AVX2, script=words(16, Hoist("c", 1, "io"), Stack(4096))
    )
    check_text(
        text,
        """
    CHECK: [[PART:%.*]] = memref.alloca() {{.*}} : memref<7x16xf32>
    CHECK: scf.for {{.*}} to %c7 step %c1
    CHECK: vector.store {{.*}}, [[PART]]
    CHECK: scf.for {{.*}} to %c9 step %c3
    CHECK-NOT: vector.store {{.*}}, [[PART]][
    CHECK: vector.load [[PART]][
    CHECK-NOT: vector.store {{.*}}, [[PART]][
    CHECK: return
    """,
    )


@pytest.mark.drawn
@TARGETS
@pytest.mark.parametrize("sizes", [(7, 9, 70), (5, 3, 33), (11, 4, 17)], ids=str)
@pytest.mark.parametrize("columns", [16, 32])
def test_numbers(target: Target, sizes: tuple[int, int, int], columns: int) -> None:
    m, k, n = sizes
    a, b = sample(1, (m, k), "float32"), sample(2, (k, n), "float32")
    program = kernels(product(m, k, n))
    (kernel,) = program.kernels.values()
    text = words(columns, Hoist("c", 1, "io")).to_transform(kernel.nest)
    (got,) = executable(program, target, text)(a, b, order=backwards)
    exact = (wide(a) @ wide(b)).clip(0)
    check(got, exact, k + 1, abs(wide(a)) @ abs(wide(b)))


def test_several_loops_out() -> None:
    """Rows of the left operand do not change with the columns, nor with chunks of r."""
    made = product(7, 12, 70)
    program = kernels(made)
    (kernel,) = program.kernels.values()
    schedule = Schedule((
        Parallel("y", (4, 0), ALL), Tile("y", (0, 24), ("c",)), Tile("c", (2, 0, 0)),
        CopyOperand("c", 1), Hoist("c", 1, "io"), CopyOperand("c", 0),
        Hoist("c", 0, "io"), Vectorize("c", "j", LANES), Vectorize("y", "j", LANES),
    ))  # fmt: skip
    with pytest.raises(Error, match="the part of arg0 changes with io"):
        schedule.apply(kernel.nest)
    right = [word for word in schedule.directives if word != Hoist("c", 0, "io")]
    text = Schedule((*right, Hoist("c", 0, "jo"))).to_transform
    with pytest.raises(Error, match="the part of arg0 changes with io"):
        text(kernel.nest)
    a, b = sample(1, (7, 12), "float32"), sample(2, (12, 70), "float32")
    run = executable(program, AVX2, Schedule(tuple(right)).to_transform(kernel.nest))
    (got,) = run(a, b, order=backwards)
    check(got, (wide(a) @ wide(b)).clip(0), 13, abs(wide(a)) @ abs(wide(b)))


REFUSED: list[tuple[tuple[Directive, ...], str]] = [
    ((Hoist("c", 0, "io"),), "c reads no copy of its operand 0"),
    ((Hoist("c", 1, "k"),), "no loop k is around c; there are jo, io"),
    ((Hoist("c", 1, "r"),), "the copy is in front of the loop r already"),
    ((Hoist("c", 1, "jo"),), "the steps of jo are tasks"),
    (
        (CopyOperand("c", 0), Hoist("c", 0, "io")),
        "the part of arg0 changes with io: i is one of its axes",
    ),
]


@pytest.mark.parametrize(("more", "said"), REFUSED)
def test_what_is_refused(more: tuple[Directive, ...], said: str) -> None:
    (kernel,) = kernels(product(7, 9, 70)).kernels.values()
    given = words(32, *more).directives[: 3 + len(more)]
    with pytest.raises(Error) as found:
        Schedule(given).apply(kernel.nest)
    assert str(found.value).startswith(str(more[-1]))
    assert said in str(found.value)


def test_an_operand_that_is_made_inside_is_refused() -> None:
    """product[i, j] += x[i, k] * twice[k, j], where twice is made for blocks of i."""
    nest = matmul()
    product = nest.stage("product")
    axes_ = tuple(product.axes[product.place(name)] for name in ("k", "j"))
    made = [replace(axis, kind=AxisKind.PARALLEL) for axis in axes_]
    place = access("twice", "k", "j")
    twice = Statement(
        "twice", tuple(made), (access("w", "k", "j"),), (place,), ("",), ("",)
    )
    reads = product.reads[0], place
    stages = (twice, nest.stages[0], replace(product, reads=reads), nest.stages[2])
    given = (
        Tile("product", (4, 0, 0), ("twice",)),
        CopyOperand("product", 1),
        Hoist("product", 1, "io"),
    )
    with pytest.raises(Error, match="twice makes the operand inside of io"):
        Schedule(given).apply(replace(nest, stages=stages))


def test_a_loop_that_is_written_out_has_no_front() -> None:
    given = (
        Split("product", "i", "io", "ii", 4),
        Unroll("product", "io"),
        CopyOperand("product", 1),
        Hoist("product", 1, "io"),
    )
    with pytest.raises(Error, match=r"Hoist.*io is unrolled in 0\.\.16: no loop"):
        Schedule(given).apply(matmul())


def test_an_edited_script_names_a_loop_that_is_there() -> None:
    program = kernels(product(7, 9, 70))
    (kernel,) = program.kernels.values()
    text = words(32, Hoist("c", 1, "io")).to_transform(kernel.nest)
    for edited, said in (
        (text.replace('loop = "y.io"', 'loop = "y.jo"'), "no loop y.jo is around"),
        (text.replace('1 : i64, loop', '0 : i64, loop'), "operand 0 is not copied"),
    ):  # fmt: skip
        assert edited != text, text
        with pytest.raises(Error, match=said):
            stage_text(program, "vector", AVX2, script=edited)
