"""The script of a schedule: every directive, one line of its own for each step."""

from __future__ import annotations

from nanoloom.mlir import context, ir
from nanoloom.schedule.emit import script
from nanoloom.schedule.language import (
    Directive,
    Loops,
    Nanokernel,
    Parallel,
    Schedule,
    Split,
    Tile,
)
from nanoloom.vector.transform_ops import Dialect, attach
from tests.filecheck import check_text


def emitted(*directives: Directive) -> str:
    """The script, once MLIR has read and verified it."""
    text = script(Schedule(directives, "a reason"))
    with context():
        Dialect.load()
        attach(lambda op, plan: None)
        assert ir.Module.parse(text).operation.verify()
    return text


def test_a_contraction_is_tiled_fused_and_handed_to_its_nanokernel() -> None:
    check_text(
        emitted(
            Parallel((0, 64), ("all",)), Tile((6, 0), ("all",)),
            Nanokernel(6, 4, True), Loops(),
        ),
        """
    CHECK: // a reason
    CHECK-NEXT: transform.named_sequence @__transform_main(%kernel
    CHECK-NEXT: [[LAST:%.*]] = transform.structured.match attributes {nanoloom.last}
    CHECK-NEXT: transform.structured.fuse [[LAST]] tile_sizes [0, 64]
    CHECK-SAME: {apply_cleanup, use_forall}
    CHECK: transform.apply_patterns
    CHECK: transform.structured.fuse {{.*}} tile_sizes [6, 0] {apply_cleanup} :
    CHECK: [[ROOT:%.*]] = transform.structured.match attributes {nanoloom.root}
    CHECK-NEXT: "nanoloom.nanokernel"([[ROOT]]) {rows = 6 : i64, vectors = 4 : i64,
    CHECK-SAME: packed = 1 : i64, family = "fma", depth = 0 : i64,
    CHECK-SAME: copied = 0 : i64, swapped = 0 : i64}
    CHECK: transform.apply_patterns
    CHECK: transform.yield
    """,
    )  # fmt: skip


def test_a_tile_without_fusion() -> None:
    check_text(
        emitted(Tile((4, 8))),
        """
    CHECK: %tile{{.*}}, %loops{{.*}}:2 = transform.structured.tile_using_for
    CHECK-SAME: tile_sizes [4, 8]
    """,
    )


def test_a_forall_without_fusion() -> None:
    check_text(
        emitted(Parallel((4, 8))),
        """
    CHECK: %tile{{.*}}, %loops{{[0-9]*}} = transform.structured.tile_using_forall
    CHECK-SAME: tile_sizes [4, 8]
    """,
    )


def test_fusion_of_named_operations() -> None:
    check_text(
        emitted(Parallel((4, 8), ("root",))),
        """
    CHECK: [[LOOPS:%loops[0-9]*]] = transform.structured.tile_using_forall
    CHECK: [[ROOT:%.*]] = transform.structured.match attributes {nanoloom.root}
    CHECK: fuse_into_containing_op [[ROOT]] into [[LOOPS]]
    """,
    )


def test_the_first_part_of_a_split_has_a_mark() -> None:
    check_text(
        emitted(Split(2, 96), Tile((0, 0, 32), mark="first")),
        """
    CHECK: [[ROOT:%.*]] = transform.structured.match attributes {nanoloom.root}
    CHECK-NEXT: [[PARTS:%.*]] = transform.structured.split [[ROOT]] after 96
    CHECK-SAME: {dimension = 2}
    CHECK-NEXT: [[FIRST:%.*]], {{%.*}} = transform.split_handle [[PARTS]]
    CHECK-NEXT: transform.annotate [[FIRST]] "nanoloom.first"
    CHECK: transform.structured.match attributes {nanoloom.first}
    CHECK-NEXT: tile_using_for {{.*}} tile_sizes [0, 0, 32]
    """,
    )


def test_a_dimension_that_changes_slowest() -> None:
    check_text(
        emitted(Parallel((4, 8), ("all",), slowest=1)),
        """
    CHECK: [[SLOWEST:%.*]] = transform.param.constant 1 : i64
    CHECK: transform.annotate {{%loops[0-9]+}} "nanoloom.slowest" = [[SLOWEST]]
    """,
    )


def test_no_directive_at_all() -> None:
    assert "transform.yield" in emitted()


def test_equal_schedules_give_equal_text() -> None:
    """The text is part of what a kernel's code follows from."""
    one = Schedule((Parallel((4, 8), ("all",)), Loops()))
    assert script(one) == script(Schedule((Parallel((4, 8), ("all",)), Loops())))
    assert script(one) != script(Schedule((Parallel((4, 9), ("all",)), Loops())))
