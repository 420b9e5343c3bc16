"""What a file says twice: pads beside auto_pad, and outputs that are listed again.

Everybody else reads such files, and so they are made into what they mean.
"""

from __future__ import annotations

import onnx

from nanoloom.frontend.proto_walk import bodies, walk

WINDOWS = frozenset(
    ("AveragePool", "Conv", "ConvInteger", "DeformConv", "LpPool",
     "MaxPool", "QLinearConv")
)  # fmt: skip


def drop_redundant(model: onnx.ModelProto, where: str) -> None:
    """Say it once, in place.

    auto_pad decides where it says anything; an output has one array, by its name.
    Outputs of a loop's body or a branch count by their places: each has a name.
    """
    names = [value.name for value in model.graph.output]
    for place in reversed(range(len(names))):
        if names[place] in names[:place]:
            del model.graph.output[place]
    for nodes in (model.graph.node, *(f.node for f in model.functions)):
        for node, _ in walk(nodes, where):
            if node.domain in ("", "ai.onnx") and node.op_type in WINDOWS:
                drop_pads(node)
            for body in bodies(node):
                name_apart(body)


def name_apart(body: onnx.GraphProto) -> None:
    """A name of its own for each output that is listed again: a copy of the first."""
    names = [value.name for value in body.output]
    made = {name for node in body.node for name in (*node.input, *node.output)}
    for place, name in enumerate(names):
        if name and name in names[:place]:
            fresh = f"{name}.{place}"
            while fresh in made:
                fresh += "_"
            made.add(fresh)
            body.node.add(op_type="Identity", input=[name], output=[fresh])
            body.output[place].name = fresh


def drop_pads(node: onnx.NodeProto) -> None:
    modes = [a.s for a in node.attribute if a.name == "auto_pad"]
    if not modes or modes[0] in (b"", b"NOTSET"):
        return
    kept = [a for a in node.attribute if a.name != "pads"]
    if len(kept) < len(node.attribute):
        del node.attribute[:]
        node.attribute.extend(kept)
