"""The equation of an Einsum, as numpy and ONNX Runtime read it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from string import ascii_letters

DOTS = "..."


def equation_fault(equation: str, operands: int) -> str:
    """What is wrong with an equation for so many operands, "" for nothing."""
    left, arrow, output = equation.replace(" ", "").partition("->")
    terms, about = left.split(","), f"its equation {equation!r}"
    strange = sorted({c for c in left + output if c not in ascii_letters + ",."})
    if strange or "," in output:
        found = strange[0] if strange else ","
        return f"{about} has {found!r} in a place where none may be"
    if any("." in term.replace(DOTS, "", 1) for term in (*terms, output)):
        return f"{about} has dots that are not one '...' in a term"
    if len(terms) != operands:
        return f"{about} has {len(terms)} terms, the node {operands} inputs"
    letters = output.replace(DOTS, "")
    twice = [c for c in letters if letters.count(c) > 1]
    if twice:
        return f"{about} has {twice[0]} twice in its output"
    unknown = [c for c in letters if c not in left]
    if arrow and unknown:
        return f"{about} has {unknown[0]} in its output, but in no input"
    return ""


def hidden_dimensions(term: str, rank: int) -> int:
    """How many dimensions `...` stands for; below 0 if the letters are too many."""
    return rank - len(term.replace(DOTS, ""))


def letters(equation: str, ranks: Sequence[int]) -> tuple[list[str], str]:
    """The terms with own letters for `...`; the output is added if it is implicit."""
    equation = equation.replace(" ", "")
    left, arrow, output = equation.partition("->")
    terms = left.split(",")
    hidden = [hidden_dimensions(t, n) for t, n in zip(terms, ranks, strict=True)]
    free = [c for c in ascii_letters if c not in equation]
    dots = "".join(free[: max(*hidden, 0)])
    if not arrow:
        counted = Counter(c for c in left if c.isalpha())
        once = sorted(c for c, count in counted.items() if count == 1)
        output = DOTS * (DOTS in left) + "".join(once)
    made = [
        term.replace(DOTS, dots[len(dots) - count :])
        for term, count in zip(terms, hidden, strict=True)
    ]
    return made, output.replace(DOTS, dots)


def result_shape(equation: str, shapes: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """Each letter of the output is as long as the longest dimension of its name: those
    of 1 are repeated."""
    terms, output = letters(equation, [len(shape) for shape in shapes])
    sizes: dict[str, int] = {}
    for term, shape in zip(terms, shapes, strict=True):
        for letter, size in zip(term, shape, strict=True):
            if sizes.get(letter, 1) == 1:
                sizes[letter] = size
    return tuple(sizes[letter] for letter in output)
