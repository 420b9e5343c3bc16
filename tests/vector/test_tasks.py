"""The outer loops of a kernel become phases, their iterations tasks."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from nanoloom.ir.mlir import context, ir, named, run_pipeline
from nanoloom.vector.tasks import split_into_phases
from tests.filecheck import check_text

A = "memref<7x9xf32>"
STORE = f"%c = arith.constant 1.0 : f32 memref.store %c, %a[%i, %j] : {A}"
INNER = (
    "%z = arith.constant 0 : index %e = arith.constant 9 : index %s = arith.constant 1 "
    f": index scf.for %j = %z to %e step %s {{ {STORE} }}"
)
LOOP = f"scf.forall (%k) in (7) {{ {INNER.replace('%i', '%k')} }}"


@pytest.fixture(autouse=True)
def _mlir() -> Iterator[None]:  # pyright: ignore[reportUnusedFunction]
    with context():
        yield


def kernel(*lines: str) -> ir.Module:
    body = "\n".join(lines)
    return ir.Module.parse(f"func.func @kernel(%a: {A}, %b: {A}) {{\n{body}\nreturn }}")


def simplified(module: ir.Module) -> str:
    assert module.operation.verify()
    run_pipeline(module, ("canonicalize", "cse"))
    return str(module)


def test_one_loop_is_one_phase() -> None:
    module = kernel(f"scf.forall (%i) in (7) {{ {INNER} }}")
    assert split_into_phases(module) == [("kernel_0", 7)]
    text = simplified(module)
    check_text(
        text,
        """
    CHECK: func.func @kernel_0({{.*}}, %arg2: index, %arg3: index)
    CHECK: scf.for [[I:%.*]] = %arg2 to %arg3 step %c1
    CHECK: scf.for [[J:%.*]] = %c0 to %c9
    CHECK: memref.store {{.*}}[[[I]], [[J]]]
    CHECK-NOT: forall
    """,
    )


def test_a_buffer_that_only_has_a_shape_is_no_work() -> None:
    """Of a pool's windows; one that is filled in front of the loop is."""
    made = "%w = memref.alloc() : memref<3xf32>"
    assert split_into_phases(kernel(made, LOOP)) == [("kernel_0", 7)]
    filled = "%n = arith.constant 0 : index %v = arith.constant 1.0 : f32"
    filled += " memref.store %v, %w[%n] : memref<3xf32>"
    assert split_into_phases(kernel(made, filled, LOOP)) == [("kernel_0", 1)]


def test_two_dimensions_are_one_number_of_the_task() -> None:
    """The last loop runs fastest; steps and lower bounds are put back."""
    module = kernel(f"scf.forall (%i, %j) = (1, 0) to (7, 9) step (2, 4) {{ {STORE} }}")
    assert split_into_phases(module) == [("kernel_0", 3 * 3)]
    check_text(
        simplified(module),
        """
    CHECK: scf.for [[TASK:%.*]] = %arg2 to %arg3
    CHECK: [[COLUMN:%.*]] = arith.remui [[TASK]], %c3
    CHECK: [[ROW:%.*]] = arith.divui [[TASK]], %c3
    CHECK: arith.muli [[ROW]], %c2
    CHECK: arith.addi {{.*}}, %c1
    CHECK: arith.muli [[COLUMN]], %c4
    """,
    )


def test_two_loops_are_two_phases() -> None:
    module = kernel(
        f"scf.forall (%i) in (7) {{ {INNER} }}",
        f"scf.forall (%i, %j) in (5, 9) {{ {STORE} }}",
    )
    assert split_into_phases(module) == [("kernel_0", 7), ("kernel_1", 45)]
    names = [op.operation.attributes["sym_name"].value for op in module.body.operations]
    assert names == ["kernel_0", "kernel_1"]
    assert len(named(module, "memref.store")) == 2


def test_a_kernel_without_loops_is_one_task() -> None:
    module = kernel(
        "%i = arith.constant 0 : index", "%j = arith.constant 0 : index", STORE
    )
    assert split_into_phases(module) == [("kernel_0", 1)]
    check_text(simplified(module), "CHECK: @kernel_0({{.*}}index, {{.*}}index)\n")


def test_work_between_loops_makes_one_task_of_all() -> None:
    module = kernel(
        f"scf.forall (%i) in (7) {{ {INNER} }}", f"memref.copy %a, %b : {A} to {A}"
    )
    assert split_into_phases(module) == [("kernel_0", 1)]
    check_text(
        simplified(module),
        """
    CHECK: scf.for {{.*}} to %c7
    CHECK: memref.copy
    """,
    )


def test_views_are_no_work() -> None:
    view = f"%v = memref.subview %a[0, 0] [7, 4] [1, 1] : {A} to " \
           "memref<7x4xf32, strided<[9, 1]>>"  # fmt: skip
    module = kernel(view, f"scf.forall (%i) in (7) {{ {INNER} }}")
    assert split_into_phases(module) == [("kernel_0", 7)]


def test_a_loop_inside_a_task_runs_in_order() -> None:
    module = kernel(
        f"scf.forall (%i) in (7) {{ scf.forall (%j) in (9) {{ {STORE} }} }}"
    )
    assert split_into_phases(module) == [("kernel_0", 7)]
    assert named(module, "scf.forall") == []
    check_text(
        simplified(module),
        """
    CHECK: scf.for {{.*}} = %arg2 to %arg3
    CHECK: scf.for {{.*}} to %c9
    """,
    )


def test_a_loop_without_iterations_has_no_tasks() -> None:
    module = kernel(f"scf.forall (%i) in (0) {{ {INNER} }}")
    assert split_into_phases(module) == [("kernel_0", 0)]


def test_the_loop_that_changes_most_rarely_is_outermost() -> None:
    """Task 3 of 7 x 9 is (0, 3); with the second loop first it is (3, 0)."""
    module = kernel(
        f'scf.forall (%i, %j) in (7, 9) {{ {STORE} }} {{"nanoloom.slowest" = 1 : i64}}'
    )
    assert split_into_phases(module) == [("kernel_0", 63)]
    check_text(
        simplified(module),
        """
    CHECK: scf.for [[T:%.*]] = %arg2 to %arg3 step %c1
    CHECK: [[I:%.*]] = arith.remui [[T]], %c7
    CHECK: [[J:%.*]] = arith.divui [[T]], %c7
    CHECK: memref.store {{.*}}[[[I]], [[J]]]
    """,
    )
