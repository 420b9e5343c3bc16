"""Whether the equation of an Einsum is one, as numpy and ONNX Runtime read it."""

from __future__ import annotations

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
