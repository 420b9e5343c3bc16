"""What is said of a stage's code: legal where it can be, refused with a sentence."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nanoloom.errors import Error
from nanoloom.nest.extent import Lanes
from nanoloom.nest.nest import LoopNest
from nanoloom.schedule.choose import choose
from nanoloom.schedule.directives.tails import has_all_points
from nanoloom.schedule.language import (
    ALL,
    Balance,
    Directive,
    InitWithAddend,
    Instruction,
    Nanokernel,
    Pack,
    ReduceJointly,
    ReuseWindow,
    Scalarize,
    Schedule,
    Stack,
    Tail,
    Tile,
    Unroll,
    UnrollAndJam,
    Vectorize,
    VectorizeRest,
    Versions,
)
from nanoloom.target import by_name
from tests.nest.nests import convolution, matmul

KERNEL = Nanokernel(6, 2, Lanes(16), False)
TILED = Tile("point", (6, 32), ALL), KERNEL  # of 64 x 40
PACKED = (
    Pack(1, (), 1, (0,), 32),
    Tile("point", (6, 32), ALL),
    Nanokernel(6, 2, Lanes(16), True),
)
COLUMNS = Vectorize("product", "j", Lanes(8)), UnrollAndJam("product", "i", 4)
SUMS = Vectorize("product", "k", Lanes(8)), UnrollAndJam("product", "j", 4)


def said(*words: Directive) -> str:
    """The script's lines for directives, behind the loops."""
    return Schedule(words).to_transform(matmul())


@pytest.mark.parametrize(
    "words, line",
    [
        ((*TILED, Versions("product", (4, 1))), '"nanoloom.versions"'),
        ((*PACKED, Tail("product", 1)), "{vectors = 1 : i64}"),
        ((*SUMS, ReduceJointly("product", 4)), "{count = 4 : i64}"),
        ((Stack(4096),), '"nanoloom.stack"'),
        ((VectorizeRest(128),), '"nanoloom.vectorize_rest"'),
        (
            (*COLUMNS, Instruction("product", "fmla")),
            '"nanoloom.use_instruction"',
        ),
        ((*COLUMNS, Scalarize("product")), '"nanoloom.scalarize"'),
    ],
)
def test_a_script_says_it(words: tuple[Directive, ...], line: str) -> None:
    assert line in said(*words)
    assert line not in said(*words[:-1])


@pytest.mark.parametrize(
    "words, reason",
    [
        ((Versions("product", (4,)),), "is no nanokernel of multiply-adds"),
        ((*TILED, Versions("product", (1, 4))), "fewer than 6 rows are wanted"),
        ((*TILED, Versions("product", (6,))), "fewer than 6 rows are wanted"),
        (
            (Tile("point", (8, 32), ALL), Nanokernel(8, 2, Lanes(16), False),
             Versions("product", (4,))),
            "every tile of product has 8 rows of i",
        ),
        (
            (TILED[0], Nanokernel(6, 2, Lanes(16), False, "int8-pairs"),
             Versions("product", (4,))),
            "the right operand of product is not packed",
        ),
        ((*TILED, Balance("product")), "the tiles of i are known"),
        ((*PACKED, Tail("product", 2)), "a full tile has 2 vectors"),
        ((*TILED, Tail("product", 1)), "product multiplies no panels"),
        ((*COLUMNS, ReduceJointly("product", 4)), "are no 4 lanes of a sum"),
        ((SUMS[0], ReduceJointly("product", 4)), "no 4 results of product lie"),
        ((*SUMS, ReduceJointly("product", 3)), "a power of two"),
        ((*COLUMNS, ReuseWindow("product")), "read no places of each other"),
        ((*COLUMNS, InitWithAddend("product")), "not computed at its reader's"),
        ((InitWithAddend("point"),), "point is no sum of products"),
        ((*COLUMNS, Instruction("product", "add")), "is no instruction that adds"),
        ((*COLUMNS, Instruction("product", "sdot")), "sdot does not multiply f32"),
        ((Instruction("product", "fmla"),), "product has no vectors yet"),
        ((Scalarize("product"),), "it is computed one by one"),
        ((Stack(1 << 20),), "at most 32768 are on a stack"),
        ((VectorizeRest(96),), "a power of two"),
    ],
)  # fmt: skip
def test_refused(words: tuple[Directive, ...], reason: str) -> None:
    with pytest.raises(Error, match=reason) as found:
        Schedule(words).apply(matmul())
    assert found.value.where == str(words[-1])


def test_a_window_is_reused_where_it_is_written_out() -> None:
    nest = convolution()
    points = Vectorize("conv", "c", Lanes(8)), UnrollAndJam("conv", "x", 4)
    unrolled = Unroll("conv", "ry"), Unroll("conv", "rx")
    words = (*points, *unrolled, ReuseWindow("conv"))
    assert '"nanoloom.reuse_window"' in Schedule(words).to_transform(nest)
    with pytest.raises(Error, match="read no places of each other"):
        Schedule((*points, ReuseWindow("conv"))).apply(nest)


@pytest.mark.parametrize("target", ["x86-64-v3", "neoverse-v1", "rv64gcv"])
@pytest.mark.parametrize("nest", [matmul(), convolution()], ids=["matmul", "conv"])
def test_chosen_schedules_are_legal_as_they_print(nest: LoopNest, target: str) -> None:
    """Each directive once, behind the loops that it is said of."""
    words = choose(nest, by_name(target)).directives
    assert Stack(16384) in words
    assert len(set(words)) == len(words)
    Schedule(words).apply(nest)


@pytest.mark.parametrize("target", ["x86-64-v3", "znver4", "neoverse-v1"])
def test_the_last_rows_of_a_known_number_have_a_version(target: str) -> None:
    """No tile computes rows that nobody stores; a multiple of a tile's has no other."""
    for m in (7, 14, 49, 65, 197):
        words = choose(matmul(m), by_name(target)).directives
        (tile,) = (x for x in words if isinstance(x, Nanokernel))
        few = m % tile.rows
        said = [x for x in words if isinstance(x, Versions)]
        assert said == ([Versions("product", (few,))] if few and m > tile.rows else [])


def test_rows_that_a_reader_leaves_out_are_no_last_ones() -> None:
    """Windows of a pool over 7 rows may want 6 of them: tiles of 6 are whole then."""
    nest = matmul(7)
    product, point = nest.stages[1:]
    assert has_all_points(nest, "product", product.axes[0])
    fewer = replace(point, axes=(replace(point.axes[0], extent=6), point.axes[1]))
    read = replace(nest, stages=(*nest.stages[:2], fewer))
    assert not has_all_points(read, "product", product.axes[0])
