"""Places in memory as sums of loop indices: equal, apart, or not known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from nanoloom.ir.mlir import ir

VIEWS = frozenset(
    f"memref.{name}"
    for name in (
        "cast", "collapse_shape", "expand_shape", "memory_space_cast",
        "reinterpret_cast", "subview", "transpose", "view", "assume_alignment",
    )
)  # fmt: skip
BUFFERS = ("memref.alloc", "memref.alloca")


@dataclass(frozen=True)
class Opaque:
    """What is no sum of products with numbers: d0 mod 4, by its parts."""

    word: str
    left: Index
    right: Index


Root: TypeAlias = tuple[
    str, "ir.Value | str"
]  # whether it is a global; it, or its name
Atom: TypeAlias = "ir.Value | Opaque"


@dataclass(frozen=True)
class Index:
    """A constant and atoms times numbers other than 0."""

    constant: int = 0
    terms: frozenset[tuple[Atom, int]] = frozenset()

    def plus(self, other: Index) -> Index:
        sums = dict(self.terms)
        for atom, factor in other.terms:
            sums[atom] = sums.get(atom, 0) + factor
        left = frozenset((atom, factor) for atom, factor in sums.items() if factor)
        return Index(self.constant + other.constant, left)

    def times(self, number: int) -> Index:
        if not number:
            return Index()
        terms = frozenset((atom, factor * number) for atom, factor in self.terms)
        return Index(self.constant * number, terms)

    def factor(self, value: ir.Value) -> int | None:
        """By what number a value goes in; None if it is in what is no sum, too."""
        hidden = (atom for atom, _ in self.terms if isinstance(atom, Opaque))
        if any(value in Index(0, frozenset({(atom, 1)})).values for atom in hidden):
            return None
        return dict(self.terms).get(value, 0)

    @property
    def values(self) -> set[ir.Value]:
        """All values that it is made of."""
        found: set[ir.Value] = set()
        for atom, _ in self.terms:
            if isinstance(atom, Opaque):
                found |= atom.left.values | atom.right.values
            else:
                found.add(atom)
        return found


@dataclass(frozen=True)
class Location:
    """An element of a buffer: one index for each dimension."""

    buffer: ir.Value
    indices: tuple[Index, ...]

    @property
    def values(self) -> set[ir.Value]:
        return set[ir.Value]().union(*(index.values for index in self.indices))


def location_of(access: ir.OpView) -> Location:
    """Of an affine.load or an affine.store."""
    operands = list(access.operation.operands)
    if access.operation.name == "affine.store":
        operands = operands[1:]  # the value that is stored
    buffer, *given = operands
    indexing: ir.AffineMap = access.operation.attributes["map"].value  # type: ignore[attr-defined]
    return Location(buffer, applied(indexing, given))


def applied(indexing: ir.AffineMap, given: list[ir.Value]) -> tuple[Index, ...]:
    """The results of an affine map for these operands, dimensions before symbols."""
    arguments = [index_of(value) for value in given]
    dims = arguments[: indexing.n_dims]
    symbols = arguments[indexing.n_dims :]
    return tuple(expression(e, dims, symbols) for e in indexing.results)


def index_of(value: ir.Value) -> Index:
    """A value; one that is computed of others with a map, by those."""
    owner = value.owner
    if isinstance(owner, ir.Block):
        return Index(0, frozenset({(value, 1)}))
    if owner.operation.name == "affine.apply":
        indexing: ir.AffineMap = owner.attributes["map"].value  # type: ignore[attr-defined]
        (result,) = applied(indexing, list(owner.operands))
        return result
    if owner.operation.name == "arith.constant":
        return Index(int(owner.attributes["value"].value))  # type: ignore[attr-defined]
    return Index(0, frozenset({(value, 1)}))


def expression(expr: ir.AffineExpr, dims: list[Index], symbols: list[Index]) -> Index:
    """An affine expression, its dimensions and symbols given."""
    if isinstance(expr, ir.AffineDimExpr):
        return dims[expr.position]
    if isinstance(expr, ir.AffineSymbolExpr):
        return symbols[expr.position]
    if isinstance(expr, ir.AffineConstantExpr):
        return Index(expr.value)
    assert isinstance(expr, ir.AffineBinaryExpr)
    left = expression(expr.lhs, dims, symbols)
    right = expression(expr.rhs, dims, symbols)
    if isinstance(expr, ir.AffineAddExpr):
        return left.plus(right)
    if isinstance(expr, ir.AffineMulExpr):
        if not right.terms:
            return left.times(right.constant)
        if not left.terms:
            return right.times(left.constant)
    word = type(expr).__name__.removeprefix("Affine").removesuffix("Expr").lower()
    return Index(0, frozenset({(Opaque(word, left, right), 1)}))


def root_of(buffer: ir.Value) -> Root | None:
    """What memory a buffer is a part of; None if that is not known.

    Two arguments of a function are two memories, as for all of MLIR's affine passes.
    """
    owner = buffer.owner
    if isinstance(owner, ir.Block):
        is_argument = owner.owner.operation.name == "func.func"
        return ("buffer", buffer) if is_argument else None
    if owner.operation.name in VIEWS:
        return root_of(owner.operands[0])
    if owner.operation.name == "memref.get_global":
        return ("global", str(owner.attributes["name"]))
    return ("buffer", buffer) if owner.operation.name in BUFFERS else None


def maker_of(value: ir.Value) -> ir.Operation | None:
    """The operation whose result a value is; None for an argument of a block."""
    owner = value.owner
    return None if isinstance(owner, ir.Block) else owner.operation


def is_inside(value: ir.Value, loop: ir.Operation) -> bool:
    """Whether a value is made in the loop: each of its steps has another."""
    owner = value.owner
    held = owner.owner if isinstance(owner, ir.Block) else owner.operation.parent
    return encloses(loop, held)


def encloses(outer: ir.Operation, inner: ir.Operation | ir.OpView | None) -> bool:
    """Whether an operation is `outer`, or lies in it."""
    while inner is not None:
        if inner.operation == outer:
            return True
        inner = inner.operation.parent
    return False


def stays(location: Location, loop: ir.Operation) -> bool:
    """Whether all steps of a loop reach the same elements: its index has no part in it.

    Loops further in may have: they reach all of their elements in each step.
    """
    if is_inside(location.buffer, loop):
        return False
    return all(
        not is_inside(value, loop) or is_index_within(value, loop)
        for value in location.values
    )


def is_index_within(value: ir.Value, loop: ir.Operation) -> bool:
    """Whether a value is the index of an affine.for further in than a loop."""
    owner = value.owner
    if not isinstance(owner, ir.Block):
        return False
    inner = owner.owner.operation
    first = value == next(iter(owner.arguments))
    return inner.name == "affine.for" and first and inner != loop


def is_apart(one: Location, other: Location, loop: ir.Operation) -> bool:
    """Whether no step of a loop reaches by one what any step reaches by the other."""
    if one.buffer != other.buffer:
        return False
    for left, right in zip(one.indices, other.indices, strict=True):
        fixed = not any(is_inside(value, loop) for value in left.values)
        if fixed and left.terms == right.terms and left.constant != right.constant:
            return True
    return False
