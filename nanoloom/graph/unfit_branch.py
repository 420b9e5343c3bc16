"""Branches that cannot run for these sizes, which matters only where they are taken.

    nanoloom::Fails<reason>() -> what the other branch gives, zeros here

A model that takes two kinds of input has a branch for each; bound to the sizes of one,
the other one's nodes do not fit together.
"""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from nanoloom.errors import ModelError
from nanoloom.graph.splice import detach
from nanoloom.graph.types import shape_of
from nanoloom.graph.unique_names import Names


def fail(
    bodies: Sequence[ir.Graph], errors: Sequence[ModelError | None], names: Names
) -> None:
    """Put `Fails` in the place of the one of two branches that has an error.

    Raises the first error if both have one.
    """
    first, second = errors
    if first is not None and second is not None:
        raise first
    if first is not None:
        put(bodies[0], bodies[1].outputs, first, names)
    if second is not None:
        put(bodies[1], bodies[0].outputs, second, names)


def for_all_sizes(where: str, branch: str) -> ModelError:
    """The error of a program for all sizes, in the same words for each of them.

    branch: what one of the sizes that were tried does not fit.
    """
    return ModelError(
        f"its {branch} is taken, which is not for all sizes",
        where=where,
        hint="give the open dimensions numbers (--dim NAME=N)",
    )


def put(
    body: ir.Graph, like: Sequence[ir.Value], error: ModelError, names: Names
) -> None:
    """like: the outputs of the other branch."""
    detach(body)
    body.outputs.clear()
    body.remove(list(body), safe=False)
    body.initializers.clear()
    node = ir.Node(
        "nanoloom",
        "Fails",
        [],
        [ir.AttrString("reason", str(error))],
        num_outputs=len(like),
        name=names.node("fails"),
    )
    for made, other in zip(node.outputs, like, strict=True):
        made.name = names.value("failed")
        made.type, made.shape = other.type, ir.Shape(shape_of(other))
    body.append(node)
    body.outputs.extend(node.outputs)
