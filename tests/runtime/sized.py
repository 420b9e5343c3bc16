"""A small program whose sizes are known at run time, made by hand."""

from __future__ import annotations

from nanoloom.binary.objects import emit
from nanoloom.binary.sizes import COUNTED, SizesTable
from nanoloom.binary.table import Buffer, ProgramTable, Step
from nanoloom.dynamic.polynomial import Size
from nanoloom.interface.bounds import Bounds
from nanoloom.interface.tensor import Element, Space, Tensor
from tests.runtime.native import TRIPLE, kernel_ir

# Tasks of three elements: as many as the first word of the step says.
TASKS = """
define i64 @add_f32_tasks(ptr %sizes) {
  %n = load i64, ptr %sizes
  ret i64 %n
}
"""
N, FLOATS = Size(((1, ("n",)),)), Size(((3, ("n",)),))
BYTES, LEFT = Size(((12, ("n",)),)), Size(((-1, ("n",)), (9, ())))


def table(bounds: tuple[Bounds, ...] = ()) -> ProgramTable:
    """out = (a + a) + b, of n rows of three, through the arena; at most 9 tasks."""
    a, b = Buffer(Space.INPUT), Buffer(Space.INPUT, index=1)
    twice, out = Buffer(Space.ARENA, slot=1), Buffer(Space.OUTPUT)
    flat, rows = (1,), (0, -1)
    return ProgramTable(
        steps=(
            Step("add_f32", COUNTED, (a, a, twice), "twice", word=0),
            Step("add_f32", COUNTED, (twice, b, out), "sum", word=0),
        ),
        arena_bytes=0,
        parameter_bytes=0,
        inputs=(
            Tensor("a", Element.F32, (0, 3), rows),
            Tensor("b", Element.F32, (0, 3), rows),
        ),
        outputs=(Tensor("out", Element.F32, (0,), flat),),
        sizes=SizesTable(("n",), (N, FLOATS, BYTES, LEFT), ((0,), (2,)), bounds),
    )


def kernels() -> list[bytes]:
    cpu = "x86-64" if TRIPLE.startswith("x86") else "generic"
    return [emit(kernel_ir("add_f32", "fadd") + TASKS, triple=TRIPLE, cpu=cpu)]
