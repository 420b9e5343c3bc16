"""The script of a schedule: every directive, one line of its own for each step."""

from __future__ import annotations

from nanoloom.ir.mlir import context, ir
from nanoloom.nest.extent import Lanes
from nanoloom.nest.nest import Buffer, LoopNest, Role
from nanoloom.nest.statement import AxisKind, Statement
from nanoloom.schedule.emit import script
from nanoloom.schedule.language import (
    ComputeAt,
    Directive,
    Nanokernel,
    Parallel,
    Peel,
    PrivateAccumulator,
    Reorder,
    Schedule,
    Split,
    Tile,
    Unroll,
    UnrollAndJam,
    Vectorize,
)
from nanoloom.schedule.packing import Pack
from nanoloom.vector.transform_ops import load_operations
from tests.filecheck import check_text
from tests.nest.nests import access, axes, convolution, matmul

NEST = matmul(64, 128, 40)


def emitted(*directives: Directive) -> str:
    """The script, once MLIR has read and verified it."""
    text = script(Schedule(directives, "a reason"), NEST)
    with context():
        load_operations()
        assert ir.Module.parse(text).operation.verify()
    return text


def test_a_contraction_is_tiled_fused_and_handed_to_its_nanokernel() -> None:
    check_text(
        emitted(
            Parallel("point", (0, 64), ("all",)), Tile("point", (6, 0), ("all",)),
            Nanokernel(6, 4, Lanes(8), True),
        ),
        """
    CHECK: // a reason
    CHECK-NEXT: transform.named_sequence @__transform_main(%kernel
    CHECK-NEXT: %lanes8 = transform.param.constant 8 : i64 -> !transform.param<i64>
    CHECK-NEXT: [[LAST:%.*]] = {{.*}}match attributes {nanoloom.stage = "point"}
    CHECK-NEXT: transform.structured.fuse [[LAST]] tile_sizes [0, 64]
    CHECK-SAME: {apply_cleanup, use_forall}
    CHECK: transform.apply_patterns
    CHECK: transform.structured.fuse {{.*}} tile_sizes [6, 0] {apply_cleanup} :
    CHECK: [[ROOT:%.*]] = {{.*}}match attributes {nanoloom.stage = "product"}
    CHECK-NEXT: "nanoloom.nanokernel"([[ROOT]], %lanes8) {rows = 6 : i64,
    CHECK-SAME: vectors = 4 : i64, packed = 1 : i64, family = "fma", depth = 0 : i64,
    CHECK-SAME: copy_rhs = "", hold_lhs = 0 : i64, unroll = 1 : i64,
    CHECK-SAME: convert_lhs = 0 : i64, pin_order = 1 : i64,
    CHECK-SAME: keep_broadcast_live = 0 : i64, unfused_mul_add = 0 : i64,
    CHECK-SAME: unmasked_fast_path = 0 : i64}
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
        emitted(Peel("product", "k", 96), Tile("product.first", (0, 0, 32))),
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


def test_packing_and_vectors_are_steps_of_the_script() -> None:
    check_text(
        emitted(
            Pack(1, (), 1, (0,), 64, group=2),
            Vectorize("point", "j", Lanes(16)),
        ),
        """
    CHECK: [[LANES:%.*]] = transform.param.constant 16 : i64
    CHECK: [[KERNEL:%.*]] = transform.structured.match ops {["func.func"]}
    CHECK-NEXT: "nanoloom.pack"([[KERNEL]]) {argument = 1 : i64, shared = [],
    CHECK-SAME: column = 1 : i64, reduced = [0 : i64], columns = 64 : i64,
    CHECK-SAME: group = 2 : i64, sums = 0 : i64, steps = 1 : i64, bits = 0 : i64,
    CHECK-SAME: differences = 0 : i64}
    CHECK: "nanoloom.vectorize"(%point{{.*}}, [[LANES]]) {axis = 1 : i64,
    CHECK-SAME: scalable = 0 : i64, chains = 1 : i64, form = "masked remainder"}
    """,
    )


def test_sums_apart_are_a_stage_that_is_tiled() -> None:
    bare = LoopNest(NEST.buffers, NEST.stages[:2], ("product",))
    words = PrivateAccumulator("product"), Parallel("result", (8, 0), ("all",))
    check_text(
        script(Schedule(words), bare),
        """
    CHECK: "nanoloom.private_accumulator"(%product
    CHECK: [[LAST:%.*]] = {{.*}}match attributes {nanoloom.stage = "result"}
    CHECK-NEXT: transform.structured.fuse [[LAST]] tile_sizes [8, 0]
    """,
    )


def test_loops_are_made_in_the_order_of_the_nest() -> None:
    """Chapter H's: blocks of c outside of all, x in blocks inside of y."""
    words: tuple[Directive, ...] = (
        Split("relu", "c", "co", "ci", 64),
        Split("relu", "x", "xo", "xi", 5),
        Reorder("relu", ("co", "n", "y", "xo", "xi", "ci")),
        ComputeAt("conv", "relu", "xo"),
        Vectorize("conv", "c", Lanes(16)),
        Reorder("conv", ("rz", "ry", "rx", "x", "c")),
        Unroll("conv", "x"),
        Unroll("conv", "c"),
        Unroll("conv", "rx", 2),
    )
    check_text(
        script(Schedule(words), convolution()),
        """
    CHECK: transform.structured.fuse {{.*}} tile_sizes [0, 0, 0, 64]
    CHECK: transform.structured.fuse {{.*}} tile_sizes [1, 1, 5, 0]
    CHECK-NOT: tile_using_for
    CHECK: "nanoloom.vectorize"(%conv{{.*}}, %lanes16) {axis = 3 : i64,
    CHECK: "nanoloom.unroll"(%conv{{.*}}) {axis = 6 : i64, count = 2 : i64}
    CHECK: "nanoloom.unroll_and_jam"(%conv{{.*}}) {axis = 2 : i64, count = 5 : i64}
    CHECK: "nanoloom.unroll_and_jam"(%conv{{.*}}) {axis = 3 : i64, count = 4 : i64}
    """,
    )


def test_sums_outside_of_their_results_are_loops_around_them() -> None:
    words = (
        Reorder("product", ("k", "i", "j")),
        Vectorize("product", "j", Lanes(8)),
        UnrollAndJam("product", "i", 4),
    )
    check_text(
        emitted(*words),
        """
    CHECK: [[PRODUCT:%.*]] = {{.*}}match attributes {nanoloom.stage = "product"}
    CHECK-NEXT: tile_using_for [[PRODUCT]] tile_sizes [0, 0, 1]
    CHECK: "nanoloom.vectorize"
    CHECK: "nanoloom.unroll_and_jam"
    """,
    )


def test_unrolled_before_it_is_vectors() -> None:
    """Early unrolling: each copy of the stage gets its own vectors."""
    words = Vectorize("point", "j", Lanes(8)), Split("point", "i", "io", "ii", 4)
    check_text(
        emitted(*words, Unroll("point", "ii")),
        """
    CHECK: tile_using_for {{.*}} tile_sizes [4, 0]
    CHECK: [[LOOP:%loops.*]] = {{.*}}tile_using_for {{.*}} tile_sizes [1, 0]
    CHECK: transform.loop.unroll [[LOOP]] {factor = 4}
    CHECK: "nanoloom.vectorize"
    """,
    )


def test_the_inner_one_of_two_loops_is_unrolled_first() -> None:
    """Once the outer one has copies, there is no single loop inside of it."""
    words = (
        Split("point", "i", "io", "ii", 4),
        Split("point", "j", "jo", "ji", 8),
        Vectorize("point", "ji", Lanes(8)),
        Unroll("point", "jo"),
        Unroll("point", "ii"),
    )
    check_text(
        emitted(*words),
        """
    CHECK: [[ROWS:%loops.*]] = {{.*}}tile_using_for {{.*}} tile_sizes [1, 0]
    CHECK: [[COLUMNS:%loops.*]] = {{.*}}tile_using_for {{.*}} tile_sizes [0, 8]
    CHECK: transform.loop.unroll [[COLUMNS]] {factor = 5}
    CHECK-NEXT: transform.loop.unroll [[ROWS]] {factor = 4}
    """,
    )


def test_vectors_of_two_axes() -> None:
    words = Vectorize("point", "j", Lanes(16)), Vectorize("point", "i", Lanes(5))
    check_text(
        emitted(*words),
        """
    CHECK: "nanoloom.vectorize"(%point{{.*}}, %lanes16) {axis = 1 : i64,
    CHECK: "nanoloom.vectorize"(%point{{.*}}, %lanes5) {axis = 0 : i64,
    CHECK-NOT: "nanoloom.order"
    """,
    )


def test_a_scalable_size_is_written_once() -> None:
    """Tiles of two vectors of [4], and the vectors: one number decides."""
    lanes = Lanes(4, scalable=True)
    words = (
        Vectorize("point", "j", lanes),
        UnrollAndJam("point", "j", 2),
        ComputeAt("product", "point", "j"),
        ComputeAt("fill", "point", "j"),
    )
    text = emitted(*words)
    check_text(
        text,
        """
    CHECK: %scalable4 = transform.param.constant 4 : i64 -> !transform.param<i64>
    CHECK: [[TILE:%size.*]] = "nanoloom.scaled"([[POINT:%.*]], %scalable4) {vectors = 2
    CHECK-NEXT: transform.structured.fuse [[POINT]] tile_sizes [1, [[TILE]]]
    CHECK: "nanoloom.vectorize"(%point{{.*}}, %scalable4) {axis = 1 : i64,
    """,
    )
    assert "4 : i64" not in text.replace("constant 4 : i64", "")


def test_another_order_of_the_loops_of_vector_code() -> None:
    check_text(
        emitted(Reorder("point", ("j", "i"))),
        """
    CHECK: "nanoloom.order"(%point{{.*}}) {axes = [1 : i64, 0 : i64]}
    """,
    )


def test_no_directive_at_all() -> None:
    assert "transform.yield" in emitted()


def test_equal_schedules_give_equal_text() -> None:
    """The text is part of what a kernel's code follows from."""
    one = Schedule((Parallel("point", (4, 8), ("all",)),))
    same = Schedule((Parallel("point", (4, 8), ("all",)),))
    other = Schedule((Parallel("point", (4, 9), ("all",)),))
    assert script(one, NEST) == script(same, NEST) == one.to_transform(NEST)
    assert script(one, NEST) != script(other, NEST)


def test_many_ways_through_the_stages_in_front_are_gone_once() -> None:
    """Each stage reads the two before it: some 10^8 ways lead from last to first."""
    outer = axes(AxisKind.PARALLEL, i=64)
    names = ["x", "y", *(f"stage_{n}" for n in range(40))]
    stages = tuple(
        Statement(
            names[n],
            outer,
            (access(names[n - 1], "i"), access(names[n - 2], "i")),
            (access(names[n], "i"),),
            ("",) * 3,
            ("",) * 3,
        )
        for n in range(2, len(names))
    )
    inputs, made = names[:2], names[2:-1]
    buffers = (
        *(Buffer(name, (64,), "f32", Role.INPUT) for name in inputs),
        *(Buffer(name, (64,), "f32", Role.TEMPORARY) for name in made),
        Buffer(names[-1], (64,), "f32", Role.RESULT),
    )
    nest = LoopNest(buffers, stages, (names[-1],))
    last = Parallel(names[-1], (16,), ("all",))
    assert "structured.fuse " in script(Schedule((last,), "a reason"), nest)
