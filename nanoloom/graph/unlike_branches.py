"""What to do about an If whose branches give what no one program can hold."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from nanoloom.errors import DataDependent, ModelError
from nanoloom.graph.types import deciding_sources, shape_of

BRANCHES = "then_branch", "else_branch"


def unlike_branches(
    node: ir.Node, index: int, given: tuple[str, str], wanted: str
) -> DataDependent:
    """The refusal of one output.

    index: of the output.  given: what it is from either branch.  wanted: what both have
    to give.  Its inputs decide about the condition: a call from Python has their values
    and compiles for them.
    """
    condition = node.inputs[0]
    called = "its condition" if condition is None else f"its condition {condition.name}"
    sources = deciding_sources(condition)
    ways = [f"let both branches give {wanted}"]
    if sources:
        those = ", ".join(sources)
        ways.append(f"make {those} constant in the model")
        ways.append(f"call it from Python, which compiles for each value of {those}")
    else:
        ways.append("export the model with one of the branches alone")
    pairs = zip(given, BRANCHES, strict=True)
    found = " and ".join(f"{what} from {branch}" for what, branch in pairs)
    return DataDependent(
        f"output {node.outputs[index].name} is {found}, and {called} is known only "
        "when the program runs",
        sources,
        where=f"node {node.name} (If)",
        hint=f"{', '.join(ways[:-1])} or {ways[-1]}",
    )


def other_ranks(
    node: ir.Node, pairs: Sequence[tuple[ir.Value, ir.Value]]
) -> list[ir.Value]:
    """The outputs of an If to which its branches give tensors of other ranks.

    pairs: what they give to each of them.
    """
    return [
        value
        for value, (x, y) in zip(node.outputs, pairs, strict=True)
        if x.dtype == y.dtype and len(shape_of(x)) != len(shape_of(y))
    ]


def require_alike(
    node: ir.Node, index: int, outputs: tuple[ir.Value, ir.Value], *, joined: bool
) -> None:
    """Raise an Error for branches whose outputs no value of the program can hold.

    joined: one can hold other extents of the same rank.
    """
    x, y = outputs
    if x.dtype != y.dtype:
        raise ModelError(
            f"its branches give {x.dtype} and {y.dtype}", where=f"node {node.name} (If)"
        )
    shapes = shape_of(x), shape_of(y)
    if shapes[0] != shapes[1] and not (joined and len(shapes[0]) == len(shapes[1])):
        raise unlike_branches(
            node,
            index,
            (f"of shape {shapes[0]}", f"of shape {shapes[1]}"),
            "one rank" if joined else "one shape",
        )
