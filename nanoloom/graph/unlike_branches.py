"""What to do about an If whose branches give what no one program can hold."""

from __future__ import annotations

import onnx_ir as ir

from nanoloom.errors import DataDependent
from nanoloom.graph.types import deciding_sources

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
