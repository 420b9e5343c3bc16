"""Einsum: general equations taken apart into contractions of two operands each."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from nanoloom.graph import einsum_equation
from nanoloom.graph.einsum_equation import DOTS, hidden_dimensions
from nanoloom.linalg.builder.builder import PARALLEL, Builder, Map, computed_as
from nanoloom.linalg.builder.indexing import dims
from nanoloom.linalg.builder.node import Node
from nanoloom.linalg.builder.tensor import Tensor


@dataclass(frozen=True, eq=False)
class Term:
    """An operand and the letters of its dimensions."""

    tensor: Tensor
    letters: str


def einsum(b: Builder, node: Node) -> Tensor:
    operands = [x for x in node.inputs if x is not None]
    inputs, output = letters(node, operands)
    require_extents(node, inputs, operands)
    dtype = operands[0].dtype
    terms = [diagonal(b, Term(x, t)) for x, t in zip(operands, inputs, strict=True)]
    terms = without_broadcast(b, terms)
    while len(terms) > 1:
        one, other, *rest = terms
        needed = set(output).union(*(t.letters for t in rest))
        terms = [contract(b, one, other, needed), *rest]
    final = sum_out(b, terms[0], set(output))
    shape = node.output_shapes[0]
    missing = [c for c in output if c not in final.letters]  # of extent 1 everywhere
    whole = b.reshape(final.tensor, (*final.tensor.shape, *[1] * len(missing)))
    order = [*final.letters, *missing]
    turned = b.transpose(whole, [order.index(c) for c in output])
    return b.cast(b.broadcast_to(turned, shape), dtype)


def letters(node: Node, operands: list[Tensor]) -> tuple[list[str], str]:
    """The terms with own letters for `...`, and the output."""
    equation = node.string("equation").replace(" ", "")
    terms = equation.partition("->")[0].split(",")
    if len(terms) != len(operands):
        raise node.unsupported(f"{len(operands)} operands for equation {equation}")
    for term, x in zip(terms, operands, strict=True):
        count = hidden_dimensions(term, x.rank)
        if count < 0 or (count and DOTS not in term):
            raise node.unsupported(f"{term} names {len(term)} of {x.rank} dimensions")
    return einsum_equation.letters(equation, [x.rank for x in operands])


def require_extents(node: Node, terms: list[str], operands: list[Tensor]) -> None:
    """A letter has one extent in all terms, or 1; in a term it has one."""
    extents: dict[str, int] = {}
    for term, x in zip(terms, operands, strict=True):
        places = sorted(set(zip(term, x.shape, strict=True)))
        for (letter, size), (following, other) in pairwise(places):
            if letter == following:
                raise node.invalid(f"its letter {letter} is {size} and {other} at once")
        for letter, size in zip(term, x.shape, strict=True):
            if size != 1 and extents.setdefault(letter, size) != size:
                raise node.invalid(
                    f"its letter {letter} is {extents[letter]} and {size}"
                )


def diagonal(b: Builder, term: Term) -> Term:
    """A letter that stands twice in one operand walks both dimensions together."""
    unique = "".join(dict.fromkeys(term.letters))
    if len(unique) == len(term.letters):
        return term
    x = term.tensor
    shape = tuple(x.shape[term.letters.index(c)] for c in unique)
    out = Tensor(shape, x.dtype, b.empty(shape, x.dtype))
    made = b.generic(
        [(x, dims(len(unique), [unique.index(c) for c in term.letters]))],
        [(out, Map.get_identity(len(unique)))],
        [PARALLEL] * len(unique),
        lambda element, _: element,
    )[0]
    return Term(made, unique)


def without_broadcast(b: Builder, terms: list[Term]) -> list[Term]:
    """Drop dimensions of extent 1: a contraction repeats what lacks a letter."""
    made: list[Term] = []
    for term in terms:
        kept = [
            (c, size)
            for c, size in zip(term.letters, term.tensor.shape, strict=True)
            if size != 1
        ]
        thin = b.reshape(term.tensor, [size for _, size in kept])
        made.append(Term(thin, "".join(c for c, _ in kept)))
    return made


def contract(b: Builder, one: Term, other: Term, needed: set[str]) -> Term:
    """The product of two operands, summed over the letters nobody needs any more."""
    one = sum_out(b, one, needed | set(other.letters))
    other = sum_out(b, other, needed | set(one.letters))
    kept = [c for c in dict.fromkeys(one.letters + other.letters) if c in needed]
    result = "".join(kept)
    wide = computed_as(one.tensor.dtype)
    equation = f"{one.letters},{other.letters}->{result}"
    return Term(b.einsum(equation, one.tensor, other.tensor, dtype=wide), result)


def sum_out(b: Builder, term: Term, needed: set[str]) -> Term:
    """The operand summed over the dimensions that nobody needs."""
    axes = [d for d, c in enumerate(term.letters) if c not in needed]
    if not axes:
        return term
    summed = b.reduce(
        lambda sofar, element: sofar + element,
        term.tensor,
        axes,
        0,
        keepdims=False,
        dtype=computed_as(term.tensor.dtype),
    )
    return Term(summed, "".join(c for c in term.letters if c in needed))


OPERATORS = {"Einsum": einsum}
