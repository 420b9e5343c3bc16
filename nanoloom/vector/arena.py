"""Whole tensors between phases: what "nanoloom.store_at" does with "arena".

    func @kernel(inputs..., results...): t = empty(); forall: t = f(x); forall: y = g(t)
      ->  func @kernel(inputs..., results..., t): ...

A tensor that the tasks of one loop write and those of the next one read is an argument
behind the results, memory of the program as results of other kernels are.  What is not
an argument makes all of the kernel a single task (tasks.py).
"""

from __future__ import annotations

from nanoloom.errors import Error
from nanoloom.kernels.structure import Op, is_generic, outputs
from nanoloom.mlir import ir
from nanoloom.vector.scratch import lines_of

ARENA = "nanoloom.arena"  # of a kernel: how many arguments it has for such tensors


def store_at(op: Op, where: str) -> None:
    """Let a stage's results lie in the arena; for other places nothing has to be done.

    Raises Error unless it writes a tensor that nothing has made.
    """
    if where not in PLACES:
        raise Error(f"where = {where}: {' or '.join(PLACES)} is wanted")
    if where != "arena":
        return
    user, place = first_of(op)
    empty = user.operands[place]
    owner = empty.owner
    if isinstance(owner, ir.Block) or owner.name != "tensor.empty":
        raise Error("only what is written anew can be stored in the arena")
    kernel = op.operation
    while kernel.name != "func.func":
        assert kernel.parent is not None, "a stage is in a kernel"
        kernel = kernel.parent.operation
    user.operands[place] = add_argument(kernel, empty.type)


PLACES = ("task", "arena")


def first_of(op: Op) -> tuple[ir.Operation, int]:
    """What writes first to where a stage writes, and as which operand."""
    operation = op.operation
    while is_generic(operation.opview) and len(list(operation.results)) == 1:
        (output,) = outputs(operation.opview)
        owner = output.owner
        if isinstance(owner, ir.Block) or not is_generic(owner.opview):
            return operation, len(list(operation.operands)) - 1
        operation = owner
    raise Error("only a stage with a single result has a place of its own")


def add_argument(kernel: ir.Operation, kind: ir.Type) -> ir.Value:
    """One more argument of a kernel, behind its results."""
    block = kernel.regions[0].blocks[0]
    made = block.add_argument(kind, ir.Location.unknown())
    attributes = kernel.attributes
    results = list(attributes["function_type"].value.results)  # type: ignore[attr-defined]
    kinds = [argument.type for argument in block.arguments]
    attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(kinds, results))
    if "arg_attrs" in attributes:
        words = list(attributes["arg_attrs"])  # type: ignore[call-overload]
        attributes["arg_attrs"] = ir.ArrayAttr.get([*words, ir.DictAttr.get({})])
    attributes[ARENA] = ir.IntegerAttr.get(
        ir.IntegerType.get_signless(64), arena_count(kernel) + 1
    )
    return made


def arena_count(kernel: ir.Operation) -> int:
    """How many of a kernel's last arguments are tensors of its own."""
    attributes = kernel.attributes
    return int(attributes[ARENA].value) if ARENA in attributes else 0  # type: ignore[attr-defined]


def arena_bytes(kernel: ir.Operation) -> tuple[int, ...]:
    """Their sizes, on buffers, in whole lines of cache."""
    arguments = list(kernel.regions[0].blocks[0].arguments)
    own = arguments[len(arguments) - arena_count(kernel) :]
    return tuple(lines_of(ir.MemRefType(argument.type)) for argument in own)
