"""The script of a schedule: every directive, one line of its own for each step."""

from __future__ import annotations

from nanoloom.mlir import context, ir
from nanoloom.nest.extent import Lanes
from nanoloom.schedule.emit import script
from nanoloom.schedule.language import (
    Directive,
    Nanokernel,
    Parallel,
    Schedule,
    Split,
    StoreApart,
    Tile,
    Vectorize,
)
from nanoloom.schedule.packing import Packing
from nanoloom.vector.transform_ops import load_operations
from tests.filecheck import check_text


def emitted(*directives: Directive) -> str:
    """The script, once MLIR has read and verified it."""
    text = script(Schedule(directives, "a reason"))
    with context():
        load_operations()
        assert ir.Module.parse(text).operation.verify()
    return text


def test_a_contraction_is_tiled_fused_and_handed_to_its_nanokernel() -> None:
    check_text(
        emitted(
            Parallel("point", (0, 64), ("all",)), Tile("point", (6, 0), ("all",)),
            Nanokernel(6, 4, True),
        ),
        """
    CHECK: // a reason
    CHECK-NEXT: transform.named_sequence @__transform_main(%kernel
    CHECK-NEXT: [[LAST:%.*]] = {{.*}}match attributes {nanoloom.stage = "point"}
    CHECK-NEXT: transform.structured.fuse [[LAST]] tile_sizes [0, 64]
    CHECK-SAME: {apply_cleanup, use_forall}
    CHECK: transform.apply_patterns
    CHECK: transform.structured.fuse {{.*}} tile_sizes [6, 0] {apply_cleanup} :
    CHECK: [[ROOT:%.*]] = {{.*}}match attributes {nanoloom.stage = "product"}
    CHECK-NEXT: "nanoloom.nanokernel"([[ROOT]]) {rows = 6 : i64, vectors = 4 : i64,
    CHECK-SAME: packed = 1 : i64, family = "fma", depth = 0 : i64,
    CHECK-SAME: copied = 0 : i64, swapped = 0 : i64}
    CHECK: transform.apply_patterns
    CHECK: transform.yield
    """,
    )  # fmt: skip


def test_a_tile_without_fusion() -> None:
    check_text(
        emitted(Tile("point", (4, 8))),
        """
    CHECK: %tile{{.*}}, %loops{{.*}}:2 = transform.structured.tile_using_for
    CHECK-SAME: tile_sizes [4, 8]
    """,
    )


def test_a_forall_without_fusion() -> None:
    check_text(
        emitted(Parallel("point", (4, 8))),
        """
    CHECK: %tile{{.*}}, %loops{{[0-9]*}} = transform.structured.tile_using_forall
    CHECK-SAME: tile_sizes [4, 8]
    """,
    )


def test_fusion_of_named_operations() -> None:
    check_text(
        emitted(Parallel("point", (4, 8), ("product",))),
        """
    CHECK: [[LOOPS:%loops[0-9]*]] = transform.structured.tile_using_forall
    CHECK: [[ROOT:%.*]] = {{.*}}match attributes {nanoloom.stage = "product"}
    CHECK: fuse_into_containing_op [[ROOT]] into [[LOOPS]]
    """,
    )


def test_the_first_part_of_a_split_has_a_mark() -> None:
    check_text(
        emitted(Split("product", 2, 96), Tile("product.first", (0, 0, 32))),
        """
    CHECK: [[ROOT:%.*]] = {{.*}}match attributes {nanoloom.stage = "product"}
    CHECK-NEXT: [[PARTS:%.*]] = transform.structured.split [[ROOT]] after 96
    CHECK-SAME: {dimension = 2}
    CHECK-NEXT: [[FIRST:%.*]], {{%.*}} = transform.split_handle [[PARTS]]
    CHECK-NEXT: [[WORD:%.*]] = transform.param.constant "first"
    CHECK-NEXT: transform.annotate [[FIRST]] "nanoloom.part" = [[WORD]]
    CHECK: attributes {nanoloom.stage = "product", nanoloom.part = "first"}
    CHECK-NEXT: tile_using_for {{.*}} tile_sizes [0, 0, 32]
    """,
    )


def test_a_dimension_that_changes_slowest() -> None:
    check_text(
        emitted(Parallel("point", (4, 8), ("all",), slowest=1)),
        """
    CHECK: [[SLOWEST:%.*]] = transform.param.constant 1 : i64
    CHECK: transform.annotate {{%loops[0-9]+}} "nanoloom.slowest" = [[SLOWEST]]
    """,
    )


def test_packing_sums_apart_and_vectors_are_steps_of_the_script() -> None:
    check_text(
        emitted(
            Packing(1, (0,), 2, (1,), 64, group=2),
            StoreApart("product"),
            Vectorize("point", 1, Lanes(16), chains=4),
        ),
        """
    CHECK: [[KERNEL:%.*]] = transform.structured.match ops {["func.func"]}
    CHECK-NEXT: "nanoloom.pack"([[KERNEL]]) {argument = 1 : i64, shared = [0 : i64],
    CHECK-SAME: column = 2 : i64, reduced = [1 : i64], columns = 64 : i64,
    CHECK-SAME: group = 2 : i64, sums = 0 : i64, steps = 1 : i64}
    CHECK: "nanoloom.store_apart"(%product
    CHECK: "nanoloom.vectorize"(%point{{.*}}) {axis = 1 : i64, lanes = 16 : i64,
    CHECK-SAME: scalable = 0 : i64, chains = 4 : i64}
    """,
    )


def test_no_directive_at_all() -> None:
    assert "transform.yield" in emitted()


def test_equal_schedules_give_equal_text() -> None:
    """The text is part of what a kernel's code follows from."""
    one = Schedule((Parallel("point", (4, 8), ("all",)),))
    assert script(one) == script(Schedule((Parallel("point", (4, 8), ("all",)),)))
    assert script(one) != script(Schedule((Parallel("point", (4, 9), ("all",)),)))
