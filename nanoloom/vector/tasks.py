"""The outer `scf.forall` loops of a kernel become its tasks.

    func @kernel(buffers...)  ->  func @kernel_0(buffers..., begin, end), kernel_1, ...

Each top-level forall is a phase: a function that runs the iterations begin..end-1 of
the loop's linearized space.  A kernel without one, or with work between its loops, is a
single phase of one task.  The split depends on shapes only, so that results are the
same at any thread count.
"""

from __future__ import annotations

from math import prod

from nanoloom.mlir import arith, ir, named, scf
from nanoloom.vector.access import add, index, multiply

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
    ]
    if not loops or others:
        for loop in reversed(named(module, "scf.forall")):
            sequential(loop)
        add_bounds(kernel)
        kernel.operation.attributes["sym_name"] = ir.StringAttr.get("kernel_0")
        return [("kernel_0", 1)]
    phases: list[tuple[str, int]] = []
    for number in range(len(loops)):
        name = f"kernel_{number}"
        phases.append((name, only_phase(module, kernel, number, name)))
    kernel.operation.erase()
    return phases


def reads_constant(op: ir.OpView, kernel: ir.OpView) -> bool:
    """Whether an operation loads what no task writes: every phase may load it again."""
    block = kernel.operation.regions[0].blocks[0]
    attributes = kernel.operation.attributes
    if op.operation.name != "memref.load" or "arg_attrs" not in attributes:
        return False
    known = zip(block.arguments, attributes["arg_attrs"], strict=True)  # type: ignore[call-overload]
    constants = [a for a, words in known if "nanoloom.constant" in words]
    return op.operation.operands[0] in constants


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
    counts = trip_counts(loop)
    with ir.InsertionPoint(loop), loop.operation.location:
        tasks = scf.ForOp(begin, end, index(1))
        with ir.InsertionPoint(tasks.body):
            ivs = delinearized(loop, tasks.induction_variable, counts)
            scf.YieldOp([])
        move_body(loop, tasks, ivs)
    loop.operation.erase()
    for inner in reversed(named(phase, "scf.forall")):
        sequential(inner)
    return prod(counts)


def add_bounds(kernel: ir.OpView) -> tuple[ir.Value, ir.Value]:
    """Append the arguments begin and end to a function."""
    kind = ir.IndexType.get()
    block = kernel.operation.regions[0].blocks[0]
    bounds = [block.add_argument(kind, ir.Location.unknown()) for _ in range(2)]
    signature = ir.FunctionType.get([a.type for a in block.arguments], [])
    kernel.operation.attributes["function_type"] = ir.TypeAttr.get(signature)
    if "arg_attrs" in kernel.operation.attributes:
        del kernel.operation.attributes["arg_attrs"]
    return bounds[0], bounds[1]


def bounds_of(loop: ir.OpView) -> tuple[list[int], list[int], list[int]]:
    attributes = loop.operation.attributes
    lower, upper, step = (
        list(attributes[k])  # type: ignore[call-overload]
        for k in ("staticLowerBound", "staticUpperBound", "staticStep")
    )
    return lower, upper, step


def trip_counts(loop: ir.OpView) -> list[int]:
    lower, upper, step = bounds_of(loop)
    return [
        max(0, -(-(u - b) // s)) for b, u, s in zip(lower, upper, step, strict=True)
    ]


def delinearized(loop: ir.OpView, task: ir.Value, counts: list[int]) -> list[ir.Value]:
    """The loop variables of a task's number, the last loop fastest."""
    lower, _, step = bounds_of(loop)
    places: list[ir.Value] = []
    rest = task
    for count in reversed(counts[1:]):
        places.append(arith.remui(rest, index(count)))
        rest = arith.divui(rest, index(count))
    places.append(rest)
    return [
        add(multiply(p, index(s)), index(b))
        for p, b, s in zip(reversed(places), lower, step, strict=True)
    ]


def move_body(loop: ir.OpView, target: scf.ForOp, ivs: list[ir.Value]) -> None:
    """Move a forall's operations to the end of a for loop's body."""
    block = loop.operation.regions[0].blocks[0]
    end = list(target.body.operations)[-1]
    for argument, value in zip(block.arguments, ivs, strict=True):
        argument.replace_all_uses_with(value)
    for op in list(block.operations):
        if op.operation.name != "scf.forall.in_parallel":
            op.operation.move_before(end.operation)


def sequential(loop: ir.OpView) -> None:
    """A forall as plain loops."""
    ivs: list[ir.Value] = []
    place = ir.InsertionPoint(loop)
    inner: scf.ForOp | None = None
    for lower, upper, step in zip(*bounds_of(loop), strict=True):
        with place, loop.operation.location:
            inner = scf.ForOp(index(lower), index(upper), index(step))
        with ir.InsertionPoint(inner.body), loop.operation.location:
            end = scf.YieldOp([])
        ivs.append(inner.induction_variable)
        place = ir.InsertionPoint(end)
    assert inner is not None
    move_body(loop, inner, ivs)
    loop.operation.erase()


__all__ = ["split_into_phases"]
