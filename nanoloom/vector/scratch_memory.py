"""Where temporaries lie: small ones on the stack, the others in scratch memory.

    func @kernel_0(buffers..., begin, end):     ->    ... (buffers..., begin, end, t):
        t = alloc() : 256 x 64 x f32                      use(t)
        use(t)

Each thread that runs tasks has scratch memory of its own, made before the program runs.
Every temporary in it is an argument: code that does not know where it lies does know
that it overlaps nothing.  No stack has to be larger for a program than for any other.
"""

from __future__ import annotations

from math import prod

from nanoloom.ir.access import function_around
from nanoloom.ir.mlir import function_named, ir, memref, named, sign
from nanoloom.vector.temporaries import LINE, bytes_of

LOOPS = ("scf.for", "scf.while", "scf.forall", "scf.parallel")
MADE = ("memref.alloc", "memref.alloca")
SCRATCH = "_scratch"  # behind a phase's name: a function that says how much it wants
IN_FRONT = "nanoloom.in_front"  # of a function: bytes, see `ask_in_front`
SAME = ("memref.subview", "memref.view", "memref.cast", "memref.collapse_shape",
        "memref.expand_shape", "memref.reinterpret_cast", "arith.select")  # fmt: skip


def place_temporaries(module: ir.Module, stack: int) -> None:
    """Every allocation to the beginning of its function, or out of it.

    None for what has stayed in registers.  stack: bytes of a phase's temporaries that
    lie on the stack.
    """
    for function in module.body.operations:
        for op in reversed(named(function, *MADE, *SAME)):
            if not any(list(made.uses) for made in op.operation.results):
                op.operation.erase()
        made = sorted(named(function, *MADE), key=lambda op: room_for(op))
        used = 0
        if IN_FRONT in function.operation.attributes:
            put_in_front(function)
            used = stack
        for op in made:
            used += room_for(op)
            (to_stack if used <= stack else to_scratch)(op, function)


def ask_in_front(op: ir.OpView, size: int) -> None:
    """Have memory in front of all temporaries of an operation's function.

    Whoever begins to read before a temporary, and uses nothing of that, reads no memory
    that is not there.  size: bytes.
    """
    asked = function_around(op).attributes
    before = asked[IN_FRONT].value if IN_FRONT in asked else 0  # type: ignore[attr-defined]
    kind = ir.IntegerType.get_signless(64)
    asked[IN_FRONT] = ir.IntegerAttr.get(kind, max(before, size))


def put_in_front(function: ir.OpView) -> None:
    """The first argument in scratch memory: bytes that nobody names."""
    attributes = function.operation.attributes
    kind = ir.MemRefType.get(
        [attributes[IN_FRONT].value],  # type: ignore[attr-defined]
        ir.IntegerType.get_signless(8),
    )
    entry_block(function).add_argument(kind, function.operation.location)
    sign(function, [])
    del attributes[IN_FRONT]


def room_for(op: ir.OpView) -> int:
    """Bytes of a temporary: of constant size, one made in a loop is dead at its end."""
    made = op.operation.results[0]
    kind = ir.MemRefType(made.type)
    assert kind.has_static_shape and not leaves_its_turn(made, loops_around(op)), op
    return lines_of(kind)


def lines_of(kind: ir.MemRefType) -> int:
    """The lines of cache that a buffer takes, in bytes."""
    return -(-prod(kind.shape) * bytes_of(kind.element_type) // LINE) * LINE


def loops_around(op: ir.OpView) -> list[ir.Operation]:
    found: list[ir.Operation] = []
    around = op.operation.parent
    while around is not None and around.name != "func.func":
        if around.name in LOOPS:
            found.append(around.operation)
        around = around.operation.parent
    return found


def leaves_its_turn(value: ir.Value, loops: list[ir.Operation]) -> bool:
    """Whether a temporary of one turn of these loops may be used in another."""
    for use in value.uses:
        user, place = use.owner.operation, 0
        if user.name == "scf.yield" and user.parent is not None:
            user, place = user.parent.operation, use.operand_number
        elif user.name not in SAME:
            continue
        if user in loops or leaves_its_turn(user.results[place], loops):
            return True
    return False


def to_stack(op: ir.OpView, function: ir.OpView) -> None:
    """Made once, however often the loops go round."""
    made = op.operation.results[0]
    start = ir.InsertionPoint.at_block_begin(entry_block(function))
    with start, op.operation.location:
        room = memref.alloca(made.type, [], [], alignment=LINE)
    made.replace_all_uses_with(room)
    op.operation.erase()


def to_scratch(op: ir.OpView, function: ir.OpView) -> None:
    """An argument behind the function's others."""
    made, block = op.operation.results[0], entry_block(function)
    made.replace_all_uses_with(block.add_argument(made.type, op.operation.location))
    op.operation.erase()
    sign(function, [])


def entry_block(function: ir.OpView) -> ir.Block:
    return function.operation.regions[0].blocks[0]


def scratch_arguments(function: ir.OpView) -> list[ir.MemRefType]:
    """What a phase has in scratch memory: its arguments behind begin and end."""
    kinds = [a.type for a in entry_block(function).arguments]
    bounds = [place for place, kind in enumerate(kinds) if kind == ir.IndexType.get()]
    return [ir.MemRefType(kind) for kind in kinds[bounds[-1] + 1 :]]


def scratch_bytes(module: ir.Module, phases: list[tuple[str, int]]) -> tuple[int, ...]:
    """How much scratch memory each phase wants, in whole lines of cache."""
    functions = [function_named(module, phase) for phase, _ in phases]
    return tuple(sum(map(lines_of, scratch_arguments(f))) for f in functions)
