"""Each word of a schedule: the loops before and after, and what it refuses."""

from __future__ import annotations

from typing import Any

import pytest

from nanoloom.errors import Error
from nanoloom.nest.extent import Lanes
from nanoloom.nest.nest import LoopNest
from nanoloom.nest.printer import print_nest
from nanoloom.schedule.language import (
    ALL,
    ComputeAt,
    CopyOperand,
    Directive,
    Nanokernel,
    Pack,
    Parallel,
    Peel,
    Prefetch,
    PrivateAccumulator,
    Reorder,
    Schedule,
    Split,
    SplitReduction,
    Tile,
    Unroll,
    UnrollAndJam,
    Vectorize,
)
from tests.nest.nests import convolution, matmul

PRODUCT = "product: product[i, j] <- x[i, k], w[k, j]"
POINT = "point: point[i, j] <- product[i, j]"
FILL = "fill: fill[i, j] <- "

PACKED = Pack(1, (), 1, (0,), 32)


def loops(nest: LoopNest, *words: Directive) -> str:
    """The loops of the last stages, behind those words."""
    return print_nest(Schedule(words).apply(nest))


def of(stage: str, text: str) -> list[str]:
    """The lines of one stage that stands alone, its loops and itself."""
    lines = text.splitlines()
    end = next(n for n, x in enumerate(lines) if x.strip().startswith(f"{stage}:"))
    begin = max(n for n, x in enumerate(lines[: end + 1]) if not x.startswith(" "))
    return lines[begin : end + 1]


def test_split() -> None:
    text = loops(matmul(), Split("point", "j", "jo", "ji", 16))
    assert of("point", text) == [
        "for i in 0..64:",
        "  for jo in 0..3 by 16 (j):",
        "    for ji in 0..16 (j):",
        f"      {POINT}",
    ]


def test_reorder() -> None:
    words = Split("point", "j", "jo", "ji", 16), Reorder("point", ("jo", "i"))
    assert of("point", loops(matmul(), *words)) == [
        "for jo in 0..3 by 16 (j):",
        "  for i in 0..64:",
        "    for ji in 0..16 (j):",
        f"      {POINT}",
    ]


def test_tasks_with_all_that_they_need() -> None:
    text = loops(matmul(), Parallel("point", (16, 8), ALL, slowest=1))
    assert text.splitlines() == [
        "forall io in 0..4 by 16 (i):",
        "  forall jo in 0..5 by 8 (j, slowest):",
        "    for i in 0..16:",
        "      for j in 0..8:",
        f"        {FILL}",
        "    for i in 0..16:",
        "      for j in 0..8:",
        "        for k in 0..48 (sum):",
        f"          {PRODUCT}",
        "    for i in 0..16:",
        "      for j in 0..8:",
        f"        {POINT}",
    ]


def test_tiles_inside_of_tasks() -> None:
    words = Parallel("point", (16, 0), ALL), Tile("point", (4, 8), ("product",))
    text = loops(matmul(), *words)
    assert text.splitlines()[:8] == [
        "forall io in 0..4 by 16 (i):",
        "  for i in 0..16:",
        "    for j in 0..40:",
        f"      {FILL}",
        "  for io2 in 0..4 by 4 (i):",
        "    for jo in 0..5 by 8 (j):",
        "      for i in 0..4:",
        "        for j in 0..8:",
    ]


def test_a_window_is_computed_where_it_is_read() -> None:
    words = Split("relu", "x", "xo", "xi", 5), ComputeAt("conv", "relu", "xo")
    assert loops(convolution(), *words).splitlines() == [
        "for n in 0..5:",
        "  for y in 0..80:",
        "    for xo in 0..20 by 5 (x):",
        "      for x in 0..5:",
        "        for c in 0..128:",
        "          for rz in 0..3 (sum):",
        "            for ry in 0..3 (sum):",
        "              for rx in 0..128 (sum):",
        "                conv: conv[n, y, x, c] <- filter[rx, rz, ry, c], "
        "input[n, y + rz, x + ry, rx]",
        "      for xi in 0..5 (x):",
        "        for c in 0..128:",
        "          relu: relu[n, y, x, c] <- conv[n, y, x, c]",
    ]


def test_vectors_are_innermost() -> None:
    text = loops(matmul(), Vectorize("product", "j", Lanes(16)))
    assert of("product", text) == [
        "for i in 0..64:",
        "  for j in 0..3 by 16:",
        "    for k in 0..48 (sum):",
        "      vector jv in 0..16 (j):",
        f"        {PRODUCT}",
    ]


def test_vectors_of_two_axes() -> None:
    words = Vectorize("product", "j", Lanes(16)), Vectorize("product", "i", Lanes(5))
    assert of("product", loops(matmul(), *words)) == [
        "for i in 0..13 by 5:",
        "  for j in 0..3 by 16:",
        "    for k in 0..48 (sum):",
        "      vector iv in 0..5 (i):",
        "        vector jv in 0..16 (j):",
        f"          {PRODUCT}",
    ]


def test_vectors_of_sums_have_chains() -> None:
    text = loops(matmul(), Vectorize("product", "k", Lanes(4, scalable=True), 4))
    assert of("product", text)[-3:] == [
        "    for k in 0..3 by [16] (sum):",
        "      vector kv in 0..[4] (k, sum, 4 chains):",
        f"        {PRODUCT}",
    ]


def test_unroll_in_place_and_in_part() -> None:
    text = loops(matmul(), Unroll("product", "k", 4))
    assert of("product", text)[-3:-1] == [
        "    for k in 0..12 by 4 (sum):",
        "      unrolled ku in 0..4 (k, sum):",
    ]
    assert of("product", loops(matmul(), Unroll("product", "k")))[-2] == (
        "    unrolled k in 0..48 (sum):"
    )


def test_points_side_by_side_are_inside_of_sums() -> None:
    words = (
        Vectorize("product", "j", Lanes(16)),
        UnrollAndJam("product", "i", 6),
        UnrollAndJam("product", "j", 2),
    )
    assert of("product", loops(matmul(), *words)) == [
        "for i in 0..11 by 6:",
        "  for j in 0..2 by 32:",
        "    for k in 0..48 (sum):",
        "      unrolled iu in 0..6 (i):",
        "        unrolled ju in 0..2 by 16 (j):",
        "          vector jv in 0..16 (j):",
        f"            {PRODUCT}",
    ]


def test_a_sum_in_two_parts() -> None:
    nest = Schedule((Peel("product", "k", 32),)).apply(matmul())
    assert [s.name for s in nest.stages] == [
        "fill",
        "product.first",
        "product",
        "point",
    ]
    assert nest.stage("product.first").extents == (64, 40, 32)
    behind = nest.stage("product")
    assert behind.extents == (64, 40, 16)
    assert str(behind.reads[0]) == "x[i, k + 32]"
    assert [s.name for s in nest.producers("product")] == ["product.first"]


def test_partial_sums_that_tasks_can_share() -> None:
    nest = matmul()
    words = SplitReduction("product", "k", 4), Parallel("product_parts", (0, 0, 1), ALL)
    text = loops(nest, *words)
    assert text.splitlines()[3:17] == [
        "forall koo in 0..4 (ko):",
        "  for i in 0..64:",
        "    for j in 0..40:",
        "      product_begin: product_begin[i, j, ko] <- ",
        "  for i in 0..64:",
        "    for j in 0..40:",
        "      for k in 0..12 (sum):",
        "        product_parts: product_parts[i, j, ko] <- x[i, 12*ko + k], "
        "w[12*ko + k, j]",
        "for i in 0..64:",
        "  for j in 0..40:",
        "    for ko in 0..4 (sum):",
        "      product: product[i, j] <- product_parts[i, j, ko]",
        "for i in 0..64:",
        "  for j in 0..40:",
    ]


def test_sums_apart_from_their_result() -> None:
    nest = matmul()
    bare = LoopNest(nest.buffers, nest.stages[:2], ("product",))
    made = Schedule((PrivateAccumulator("product"),)).apply(bare)
    assert made.results == ("result",)
    assert str(made.stages[-1]) == "result: result[i, j] <- product[i, j]"


def test_a_nanokernel_and_panels() -> None:
    words = PACKED, Nanokernel(6, 2, Lanes(16), True), Prefetch(1, ahead=64)
    text = loops(matmul(), *words)
    assert of("product", text)[-1].endswith("by fma, 6 rows x 2 vectors")
    weight = Schedule(words).apply(matmul()).buffer("w")
    assert str(weight) == (
        "constant w: 48x40xf32, in panels of 32 columns, fetched 64 ahead"
    )


EIGHT: Any = 8
NAME: Any = "w"
MISTYPED: list[tuple[LoopNest, tuple[Directive, ...], str]] = [
    (matmul(), (Vectorize("point", "j", EIGHT),), "lanes is 8: Lanes(8), for eight"),
    (matmul(), (Parallel("point", EIGHT),), "sizes is 8: a tuple is wanted, (8,)"),
    (matmul(), (Tile("point", EIGHT),), "sizes is 8: a tuple is wanted, (8,)"),
    (matmul(), (Tile("point", (8,), NAME),), "fuse is 'w': a tuple is wanted, ('w',)"),
    (matmul(), (Prefetch(NAME),), "argument is w: a number from 0 on is wanted"),
    (matmul(), (Pack(NAME, (), 1, (0,), 16),), "argument is w: a number from 0"),
]
REFUSED: list[tuple[LoopNest, tuple[Directive, ...], str]] = [
    (matmul(), (Tile("conv", (1,)),), "there is no stage conv"),
    (matmul(), (Split("point", "k", "a", "b", 4),), "point has no loop k; it has i, j"),
    (matmul(), (Split("point", "i", "j", "b", 4),), "has a loop j already"),
    (matmul(), (Split("point", "i", "a", "b", 0),), "size is 0"),
    (matmul(), (Parallel("product", (0, 0, 8)),), "axis k is summed over"),
    (matmul(), (Parallel("point", (1, 1, 1)),), "point has 2 axes (i, j), not more"),
    (
        matmul(),
        (Tile("point", (4, 0)), Parallel("point", (8, 0))),
        "other loops already: tasks come first",
    ),
    (
        matmul(),
        (Parallel("point", (8, 0), ALL), Parallel("product", (4, 0))),
        "product is computed inside of another stage's loops",
    ),
    (matmul(), (ComputeAt("point", "product", "i"),), "product reads nothing"),
    (matmul(), (ComputeAt("product", "point", "k"),), "point has no loop k"),
    (
        matmul(),
        (ComputeAt("fill", "point", "i"),),
        "product reads fill outside of the loop i",
    ),
    (
        matmul(),
        (Vectorize("product", "j", Lanes(8)), ComputeAt("product", "point", "i")),
        "the loops of product are scheduled already",
    ),
    (
        matmul(),
        (CopyOperand("product", 1), ComputeAt("product", "point", "i")),
        "the loops of product are scheduled already",
    ),
    (
        matmul(),
        (Split("point", "j", "jo", "ji", 8), Reorder("point", ("ji", "jo"))),
        "a part of j would be outside of the loop over it",
    ),
    (matmul(), (Reorder("point", ("i", "i")),), "a loop is named twice"),
    (
        matmul(),
        (ComputeAt("product", "point", "i"), Reorder("point", ("j", "i"))),
        "product is computed inside of i",
    ),
    (matmul(), (Vectorize("point", "j", Lanes(6)),), "lanes = 6: a power of two"),
    (
        matmul(),
        (Vectorize("point", "j", Lanes(8)), Vectorize("point", "i", Lanes(65))),
        "lanes = 65: at most 64 rows are wanted",
    ),
    (
        matmul(),
        (Vectorize("point", "j", Lanes(8)), Vectorize("point", "i", Lanes(4, True))),
        "only j, the innermost, can be scalable",
    ),
    (
        matmul(),
        (Vectorize("product", "j", Lanes(8)), Vectorize("product", "k", Lanes(4))),
        "of axes that are not summed over",
    ),
    (matmul(), (UnrollAndJam("product", "k", 4),), "k is summed over"),
    (matmul(), (UnrollAndJam("point", "i", 65),), "at most 64 is wanted"),
    (
        matmul(),
        (Unroll("point", "i"), Split("point", "i", "a", "b", 4)),
        "i is unrolled already",
    ),
    (matmul(), (Peel("product", "k", 48),), "k goes to 48: nothing is left"),
    (matmul(), (Peel("product", "j", 8),), "j is not summed over"),
    (matmul(), (SplitReduction("product", "k", 5),), "5 parts do not divide 48"),
    (matmul(), (SplitReduction("product", "j", 4),), "j is not all that product sums"),
    (
        matmul(),
        (Unroll("product", "i"), SplitReduction("product", "k", 4)),
        "the loops of product are scheduled already",
    ),
    (
        matmul(),
        (Nanokernel(6, 2, Lanes(8), False, stage="point"),),
        "point is no sum of products",
    ),
    (matmul(), (Pack(0, (), 1, (0,), 16),), "argument 0 is no weight"),
    (
        matmul(),
        (Tile("product", (0, 0, 16), ("fill",)),),
        "product begins with what fill makes: inside of ko, a sum, it would begin",
    ),
    (
        matmul(),
        (ComputeAt("fill", "product", "k"),),
        "product begins with what fill makes: inside of k, a sum, it would begin",
    ),
    (
        matmul(),
        (ComputeAt("product", "point", "j"), Vectorize("point", "j", Lanes(8))),
        "product is computed inside of j, for single points of j; say this word before",
    ),
    (
        matmul(),
        (ComputeAt("product", "point", "j"), UnrollAndJam("point", "i", 2)),
        "product is computed inside of j, for single points of i; say this word before",
    ),
    *MISTYPED,
    (matmul(), (Prefetch(7),), "the kernel has no argument 7"),
    (matmul(), (Prefetch(1),), "ahead is 0: a number from 1 on is wanted"),
    (matmul(), (Prefetch(1, 4, 1),), "argument 1 comes in no panels: pack it first"),
    *(
        (matmul(), (PACKED, word), said)
        for word, said in (
            (Prefetch(1), "ahead is 0: a number from 1 on is wanted"),
            (Prefetch(1, loops=("point.i",)), "lines is 0: a number from 1 on"),
            (Prefetch(1, 4, 64, ("point.i",)), "lines are of a panel that loops read"),
            (Prefetch(1, 4, loops=("point.io",)), "point has no loop io; it has i, j"),
        )
    ),
]


@pytest.mark.parametrize(("nest", "words", "said"), REFUSED)
def test_what_is_not_legal(
    nest: LoopNest, words: tuple[Directive, ...], said: str
) -> None:
    """By the word, what it is about, and the reason."""
    with pytest.raises(Error) as found:
        Schedule(words).apply(nest)
    assert str(found.value).startswith(str(words[-1]))
    assert said in str(found.value)


def test_what_is_no_tuple_of_words() -> None:
    with pytest.raises(Error, match="a schedule is a tuple of words"):
        Schedule(EIGHT).apply(matmul())
    with pytest.raises(Error, match="'w' is no word of schedules"):
        Schedule((NAME,)).apply(matmul())


def test_a_sum_in_blocks_begins_once() -> None:
    """ALL leaves in front of a block of a sum what the sum begins with."""
    text = loops(matmul(), Tile("product", (0, 0, 16), ALL))
    fill, block = text.index("fill: "), text.index("for ko in 0..3 by 16")
    assert fill < block


def test_a_word_is_written_as_it_is_given() -> None:
    assert str(Unroll("conv", "rx", 2)) == "Unroll('conv', 'rx', 2)"
    word = Nanokernel(6, 4, Lanes(8), True, copy_rhs="front")
    assert str(word) == "Nanokernel(6, 4, Lanes(8), True, copy_rhs='front')"
