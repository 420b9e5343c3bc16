"""The outer `scf.forall` loops of a kernel become its tasks.

    func @kernel(buffers...)  ->  func @kernel_0(buffers..., begin, end), kernel_1, ...

Each top-level forall is a phase: a function that runs the iterations begin..end-1 of
the loop's linearized space, and, where sizes that are known at run time decide how many
there are, a function that counts them.  A kernel without one, or with work between its
loops, is a single phase of one task.  The split depends on shapes only, so that results
are the same at any thread count.
"""

from __future__ import annotations

from functools import reduce
from math import prod
from typing import TypeAlias

from nanoloom.ir.access import add, as_index, index, multiply
from nanoloom.ir.linalg_query import input_count, is_generic
from nanoloom.ir.mlir import arith, func, ir, run_pipeline, scf, sign

PURE = (
    "arith.",
    "memref.subview",
    "memref.cast",
    "memref.expand_shape",
    "memref.collapse_shape",
    "memref.reinterpret_cast",
    "affine.apply",
    "func.return",
    "memref.dim",
    "vector.broadcast",
    "ub.poison",
)


SEQUENTIAL = ("func.func(scf-forall-to-for)",)  # loops within a task
COUNTED = -1  # tasks that depend on sizes: a function of the kernel counts them
SLOWEST = "nanoloom.slowest"  # of a forall: the place of a loop
TASKS = "_tasks"  # behind the name of a phase: that function's
DYNAMIC = ir.ShapedType.get_dynamic_size()
Bound: TypeAlias = int | ir.Value


def split_into_phases(module: ir.Module) -> list[tuple[str, int]]:
    """Rewrite @kernel into its phases; gives each one's name and number of tasks."""
    kernel = module.body.operations[0]
    loops = top_loops(kernel)
    block = kernel.operation.regions[0].blocks[0]
    others = [
        op
        for op in block.operations
        if op.operation not in [loop.operation for loop in loops]
        and not op.operation.name.startswith(PURE)
        and not reads_constant(op, kernel)
        and not is_shape(op)
    ]
    if not loops or others:
        run_pipeline(module, SEQUENTIAL, verify=False)
        add_bounds(kernel)
        kernel.operation.attributes["sym_name"] = ir.StringAttr.get("kernel_0")
        return [("kernel_0", 1)]
    phases: list[tuple[str, int]] = []
    for number in range(len(loops)):
        name = f"kernel_{number}"
        phases.append((name, only_phase(module, kernel, number, name)))
    kernel.operation.erase()
    run_pipeline(module, SEQUENTIAL, verify=False)
    return phases


def reads_constant(op: ir.OpView, kernel: ir.OpView) -> bool:
    """Whether an operation loads what no task writes: every phase may load it again."""
    block = kernel.operation.regions[0].blocks[0]
    attributes = kernel.operation.attributes
    if op.operation.name != "memref.load" or "arg_attrs" not in attributes:
        return False
    known = zip(block.arguments, attributes["arg_attrs"], strict=True)  # type: ignore[call-overload] - MLIR's stubs know no kinds of attributes
    constants = [a for a, words in known if "nanoloom.constant" in words]
    return op.operation.operands[0] in constants


def is_shape(op: ir.OpView) -> bool:
    """Whether an operation makes a buffer that nothing writes: only its extents count,
    as those of a pool's windows do."""
    if op.operation.name != "memref.alloc":
        return False
    uses = [
        (use.owner.opview, use.operand_number) for use in op.operation.results[0].uses
    ]
    return all(is_generic(user) and n < input_count(user) for user, n in uses)


def top_loops(kernel: ir.OpView) -> list[ir.OpView]:
    block = kernel.operation.regions[0].blocks[0]
    return [op for op in block.operations if op.operation.name == "scf.forall"]


def only_phase(module: ir.Module, kernel: ir.OpView, number: int, name: str) -> int:
    """A copy of the kernel with one of its loops, over tasks."""
    with ir.InsertionPoint(module.body):
        phase = kernel.operation.clone().opview
    phase.operation.attributes["sym_name"] = ir.StringAttr.get(name)
    loops = top_loops(phase)
    for other in loops[:number] + loops[number + 1 :]:
        other.operation.erase()
    begin, end = add_bounds(phase)
    loop = loops[number]
    with ir.InsertionPoint(loop), loop.operation.location:
        counts = trip_counts(loop)
        tasks = scf.ForOp(begin, end, index(1))
        with ir.InsertionPoint(tasks.body):
            ivs = delinearized(loop, tasks.induction_variable, counts)
            scf.YieldOp([])
        move_body(loop, tasks, ivs)
    loop.operation.erase()
    known = [count for count in counts if isinstance(count, int)]
    if len(known) == len(counts):
        return prod(known)
    count_tasks(module, kernel, number, name)
    return COUNTED


def count_tasks(module: ir.Module, kernel: ir.OpView, number: int, name: str) -> None:
    """A function beside a phase with the kernel's arguments: how many tasks it has."""
    with ir.InsertionPoint(module.body):
        counting = kernel.operation.clone().opview
    counting.operation.attributes["sym_name"] = ir.StringAttr.get(name + TASKS)
    loops = top_loops(counting)
    returned = list(counting.operation.regions[0].blocks[0].operations)[-1]
    with ir.InsertionPoint(returned), returned.operation.location:
        first, *others = map(as_index, trip_counts(loops[number]))
        total = reduce(multiply, others, first)
        func.ReturnOp([total])
    returned.operation.erase()
    for loop in loops:
        loop.operation.erase()
    sign(counting, [ir.IndexType.get()])
    del counting.operation.attributes["arg_attrs"]


def add_bounds(kernel: ir.OpView) -> tuple[ir.Value, ir.Value]:
    """Append the arguments begin and end to a function."""
    kind = ir.IndexType.get()
    block = kernel.operation.regions[0].blocks[0]
    bounds = [block.add_argument(kind, ir.Location.unknown()) for _ in range(2)]
    sign(kernel, [])
    if "arg_attrs" in kernel.operation.attributes:
        del kernel.operation.attributes["arg_attrs"]
    return bounds[0], bounds[1]


def bounds_of(loop: ir.OpView) -> tuple[list[Bound], list[Bound], list[Bound]]:
    """Lower bounds, upper bounds and steps: numbers, or values of sizes."""
    attributes = loop.operation.attributes
    rest = iter(loop.operation.operands)
    lower, upper, step = (
        [next(rest) if n == DYNAMIC else n for n in attributes[k]]  # type: ignore[attr-defined] - MLIR's stubs know no kinds of attributes
        for k in ("staticLowerBound", "staticUpperBound", "staticStep")
    )
    return lower, upper, step


def trip_counts(loop: ir.OpView) -> list[Bound]:
    """How often each loop runs, at the insertion point where sizes decide that."""
    return [trips(*bounds) for bounds in zip(*bounds_of(loop), strict=True)]


def trips(lower: Bound, upper: Bound, step: Bound) -> Bound:
    if isinstance(lower, int) and isinstance(upper, int) and isinstance(step, int):
        return max(0, -(-(upper - lower) // step))
    length = arith.subi(as_index(upper), as_index(lower))
    return arith.ceildivsi(length, as_index(step))


def delinearized(
    loop: ir.OpView, task: ir.Value, counts: list[Bound]
) -> list[ir.Value]:
    """The loop variables of a task's number, the last loop fastest, or as annotated."""
    lower, _, step = bounds_of(loop)
    places: dict[int, ir.Value] = {}
    rest = task
    outermost, *others = slowest_first(loop, len(counts))
    for place in reversed(others):
        places[place] = arith.remui(rest, as_index(counts[place]))
        rest = arith.divui(rest, as_index(counts[place]))
    places[outermost] = rest
    return [
        add(multiply(places[n], as_index(s)), as_index(b))
        for n, (b, s) in enumerate(zip(lower, step, strict=True))
    ]


def slowest_first(loop: ir.OpView, count: int) -> list[int]:
    """The places of a forall's loops, the one first that changes most rarely."""
    attributes = loop.operation.attributes
    known = SLOWEST in attributes
    first = int(ir.IntegerAttr(attributes[SLOWEST]).value) if known else 0
    return [first, *(n for n in range(count) if n != first)]


def move_body(loop: ir.OpView, target: scf.ForOp, ivs: list[ir.Value]) -> None:
    """Move a forall's operations to the end of a for loop's body."""
    block = loop.operation.regions[0].blocks[0]
    end = list(target.body.operations)[-1]
    for argument, value in zip(block.arguments, ivs, strict=True):
        argument.replace_all_uses_with(value)
    for op in list(block.operations):
        if op.operation.name != "scf.forall.in_parallel":
            op.operation.move_before(end.operation)


__all__ = ["split_into_phases"]
