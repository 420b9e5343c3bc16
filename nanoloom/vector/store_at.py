"""Where stages store what they make: what "nanoloom.store_at" does.

For registers it requires that a stage is computed at the tile that reads it
(compute_at_tile.py).  In the arena:

    func @kernel(inputs..., results...): t = empty(); forall: t = f(x); forall: y = g(t)
      ->  func @kernel(inputs..., results..., t): ...

A tensor that the tasks of one loop write and those of the next one read is an argument
behind the results, memory of the program as results of other kernels are.  What is not
an argument makes all of the kernel a single task (tasks.py).
"""

from __future__ import annotations

from nanoloom.errors import Error
from nanoloom.ir.access import function_around
from nanoloom.ir.linalg_query import Op, is_generic, outputs
from nanoloom.ir.mlir import bufferization, ir, made_by, named, sign
from nanoloom.target.facts import VectorUnit
from nanoloom.vector.padded_buffer import write_padding
from nanoloom.vector.scratch_memory import lines_of

APART = "nanoloom.split_symbols"  # on a copy of what was set apart; others stay copies
PLACES = ("registers", "task", "arena", "source", "padded")
STORED = "nanoloom.stored"  # of a stage: where
ARENA = "nanoloom.arena"  # of a kernel: how many arguments it has for such tensors


def store_at(op: Op, where: str) -> None:
    """Note where a stage's results lie, and make room in the arena.

    Raises Error unless it writes a tensor that nothing has made.
    """
    if where not in PLACES:
        raise Error(f"where = {where}: one of {', '.join(PLACES)} is wanted")
    if where == "padded":
        write_padding(op)
        return
    op.operation.attributes[STORED] = ir.StringAttr.get(where)
    if where in ("task", "source"):
        separate_buffer(op)
    if where != "arena":
        return
    user, place = first_of(op)
    empty = user.operands[place]
    if made_by(empty, "tensor.empty") is None:
        raise Error("only what is written anew can be stored in the arena")
    user.operands[place] = add_argument(function_around(op), empty.type)


def separate_buffer(op: Op) -> None:
    """Let no loop that is made from now on take a stage in: its readers have a copy.

    Of a copy nothing is left (`join_copies`).
    """
    for result in op.operation.results:
        uses = list(result.uses)
        with ir.InsertionPoint.after(op.operation), op.operation.location:
            copy = bufferization.AllocTensorOp(result.type, [], copy=result)
        copy.operation.attributes[APART] = ir.UnitAttr.get()
        for use in uses:
            use.owner.operation.operands[use.operand_number] = copy.result


def join_copies(module: ir.Module) -> None:
    """The readers of stages that were set apart read these themselves."""
    for op in named(module, "bufferization.alloc_tensor"):
        if APART not in op.operation.attributes:
            continue
        op.operation.results[0].replace_all_uses_with(op.operation.operands[0])
        op.operation.erase()


def is_at_source(op: Op) -> bool:
    """Whether what reads a border is to read what is within it itself."""
    words = op.operation.attributes
    return STORED in words and words[STORED] == ir.StringAttr.get("source")


def require_left_out(module: ir.Module) -> None:
    """Error if a border is to be left out, and is read (on tensors)."""
    for op in named(module, "linalg.generic"):
        if is_at_source(op):
            raise Error(
                "a border is to be left out, and what reads it is no nanokernel of "
                "multiply-adds that can",
                hint='where = "task" makes it in each task',
            )


def require_room(op: Op, points: int, lanes: int, unit: VectorUnit) -> None:
    """Error if a tile of so many vectors is to be in registers and there are fewer."""
    output = outputs(op)[0]
    width: int = ir.MemRefType(output.type).element_type.width  # type: ignore[attr-defined]
    wanted = points * max(1, lanes * width // unit.bits)
    if is_kept(op) and wanted > unit.registers:
        raise Error(
            f"a stage is to be stored in registers, {wanted} of them, and there are "
            f"{unit.registers}"
        )


def is_kept(op: Op) -> bool:
    """Whether a stage's results are to be in registers."""
    attributes = op.operation.attributes
    return STORED in attributes and attributes[STORED] == ir.StringAttr.get("registers")


def first_of(op: Op) -> tuple[ir.Operation, int]:
    """What writes first to where a stage writes, and as which operand."""
    operation = op.operation
    while is_generic(operation.opview) and len(list(operation.results)) == 1:
        (output,) = outputs(operation.opview)
        owner = made_by(output, "linalg.generic")
        if owner is None:
            return operation, len(list(operation.operands)) - 1
        operation = owner
    raise Error("only a stage with a single result has a place of its own")


def add_argument(kernel: ir.Operation, kind: ir.Type) -> ir.Value:
    """One more argument of a kernel, behind its results."""
    block = kernel.regions[0].blocks[0]
    made = block.add_argument(kind, ir.Location.unknown())
    attributes = kernel.attributes
    sign(kernel)
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
