"""The only door to the MLIR bindings: every other file imports MLIR from here.

Traps that this file keeps away from the rest (each one crashes the process): values of
one Context used in another, operations kept while their Module is collected, and
operations erased while they still have uses.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from types import ModuleType

from torch_mlir import ir, passmanager, rewrite
from torch_mlir.dialects import (
    affine,
    arith,
    bufferization,
    ext,
    func,
    linalg,
    llvm,
    math,
    memref,
    scf,
    tensor,
    vector,
)
from torch_mlir.dialects import transform as transform_dialect
from torch_mlir.dialects.transform import interpreter

from nanoloom.fork_lock import wait_for_compiler

__all__ = [
    "affine",
    "arith",
    "bufferization",
    "ext",
    "func",
    "interpreter",
    "ir",
    "linalg",
    "llvm",
    "math",
    "memref",
    "rewrite",
    "scf",
    "tensor",
    "transform_dialect",
    "vector",
]

# The bindings look for a module of each dialect, again at every operation of one that
# has none: of nanoloom's own.
OWN_DIALECT = "torch_mlir.dialects.nanoloom"
sys.modules.setdefault(OWN_DIALECT, ModuleType(OWN_DIALECT))

# Whose operations are made here.  Text and passes bring the others, when there are any:
# with all that are known a context takes three times as long, and so does
# each `canonicalize`, which begins with the patterns of every dialect.
DIALECTS = ("affine", "arith", "bufferization", "func", "linalg", "llvm", "math",
            "memref", "scf", "tensor", "ub", "vector", "x86")  # fmt: skip


@contextmanager
def context() -> Generator[ir.Context]:
    """A fresh MLIR context, current inside the `with`, single threaded."""
    with wait_for_compiler():
        made = ir.Context(DIALECTS)  # type: ignore[call-arg] - of the package, not of MLIR
        made.enable_multithreading(False)
        with made, ir.Location.unknown():
            yield made


def run_pipeline(
    module: ir.Module, passes: tuple[str, ...], *, verify: bool = True
) -> None:
    """Run passes, in order, on a builtin.module.

    verify: the module after each pass, which takes as long as the passes: False for
    who verifies what comes of them all.
    """
    manager = passmanager.PassManager.parse(f"builtin.module({','.join(passes)})")
    manager.enable_verifier(verify)
    manager.run(module.operation)


def operations(
    root: ir.Operation | ir.OpView | ir.Module,
    wanted: Callable[[ir.OpView], bool],
) -> list[ir.OpView]:
    """Every operation below `root` for which `wanted` holds, parents before children.

    Collected before anything is changed, so that the caller may erase them.
    """
    found: list[ir.OpView] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        view = op.opview
        if wanted(view):
            found.append(view)
        return ir.WalkResult.ADVANCE

    root.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


def named(root: ir.Operation | ir.OpView | ir.Module, *names: str) -> list[ir.OpView]:
    """`root` and all below it with one of these names, parents before children.

    MLIR looks for them, as it looks for what a pattern matches: most operations have
    other names, and Python would take a hundred times as long to ask each for its own.
    """
    found: list[ir.OpView] = []

    def note(op: ir.OpView, _: rewrite.PatternRewriter) -> bool:
        is_parent = bool(len(op.operation.regions))
        place = before_children(op.operation, found) if is_parent else len(found)
        found.insert(place, op)
        return True  # nothing is changed

    patterns = rewrite.RewritePatternSet()
    for name in names:
        patterns.add(name, note)
    rewrite.walk_and_apply_patterns(root.operation, patterns.freeze())
    own = [root.operation.opview] if root.operation.name in names else []
    return own + found


def before_children(op: ir.Operation, found: list[ir.OpView]) -> int:
    """Where among found operations, of which the last may be in it, one comes first."""
    place = len(found)
    while place and is_inside(found[place - 1].operation, op):
        place -= 1
    return place


def made_by(value: ir.Value, *names: str) -> ir.Operation | None:
    """The operation that makes a value, if it is one of these; without names, any."""
    owner = value.owner
    known = not isinstance(owner, ir.Block) and (not names or owner.name in names)
    return owner.operation if known else None  # type: ignore[union-attr] - `known` says so


def is_inside(op: ir.Operation, around: ir.Operation) -> bool:
    parent = op.parent
    while parent is not None and parent.operation != around:
        parent = parent.operation.parent
    return parent is not None


def names(root: ir.Operation | ir.OpView | ir.Module) -> set[str]:
    """Of all operations below `root`, and its own."""
    found: set[str] = set()

    def visit(op: ir.Operation) -> ir.WalkResult:
        found.add(op.name)
        return ir.WalkResult.ADVANCE

    root.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


def function_named(module: ir.Module, name: str) -> ir.OpView:
    """The module's function of that name."""
    for op in module.body.operations:
        if op.operation.attributes["sym_name"].value == name:  # type: ignore[attr-defined]
            return op
    raise AssertionError(f"no function {name}")


def sign(
    function: ir.Operation | ir.OpView, results: Sequence[ir.Type] | None = None
) -> None:
    """Give a function the type of its block's arguments, and of results; None: as they
    are."""
    words = function.operation.attributes
    if results is None:
        results = ir.FunctionType(words["function_type"].value).results  # type: ignore[attr-defined] - MLIR's stubs know no kinds of attributes
    kinds = [a.type for a in function.operation.regions[0].blocks[0].arguments]
    words["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(kinds, results))
