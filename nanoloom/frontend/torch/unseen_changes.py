"""Changes in place that nobody sees but who reads their result.

    x = conv2d(...);  y = relu_(x)      ->      y = relu(x)

where nothing else reads x, or what lies in its memory.  That is how modules are written
that save memory, and all there is to do: torch would trace all of the program again.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import fx

from nanoloom.frontend.torch.call import arguments, fake_of, is_mutation
from nanoloom.frontend.torch.copied_graph import copied

# Composed of other operators, of which the last makes its result: never an argument.
MADE_NEW = (
    "aten::batch_norm", "aten::conv1d", "aten::conv2d", "aten::conv3d",
    "aten::conv_transpose1d", "aten::conv_transpose2d", "aten::conv_transpose3d",
    "aten::group_norm", "aten::layer_norm", "aten::linear", "aten::matmul",
    "aten::max_pool2d",
)  # fmt: skip


def without_unseen(graph: fx.Graph) -> fx.Graph | None:
    """A copy without changes in place; None where others see one of them."""
    changed = [node for node in graph.nodes if is_mutation(node)]
    twins = {node: pure(node) for node in changed}
    if not all(twins[node] is not None and is_unseen(node) for node in changed):
        return None
    made, copies = copied(graph)
    for node in changed:
        copies[node].target = twins[node]
    return made


def pure(node: fx.Node) -> Any:
    """The operator that makes what this one changes a tensor to; None without one.

    Named as it is without the last letter, with the same arguments: relu of relu_.
    """
    target: Any = node.target
    if not isinstance(target, torch._ops.OpOverload) or target.namespace != "aten":
        return None
    schema, name = target._schema, target._opname
    packet = getattr(torch.ops.aten, name.removesuffix("_"), None)
    twin = getattr(packet, target._overloadname, None) if name.endswith("_") else None
    if twin is None or twin._schema.is_mutable or len(schema.returns) != 1:
        return None
    own, its = (
        [(a.name, str(a.type)) for a in each.arguments]
        for each in (schema, twin._schema)
    )
    written = [
        a.name for a in schema.arguments if a.alias_info and a.alias_info.is_write
    ]
    return twin if own == its and written == [own[0][0]] else None


def is_unseen(node: fx.Node) -> bool:
    """Whether what a node changes is read by it alone, and its like in type."""
    changed: Any = node.args[0] if node.args else None
    if not isinstance(changed, fx.Node) or [*changed.users] != [node]:
        return False
    given = [fake_of(x) for x in arguments(node).values()]
    types = {x.dtype for x in given if isinstance(x, torch.Tensor)}
    return len(types) == 1 and has_own_memory(changed)


def has_own_memory(node: fx.Node) -> bool:
    """Whether a node makes a tensor of its own, and none that lies in another."""
    target: Any = node.target
    if node.op != "call_function" or not isinstance(target, torch._ops.OpOverload):
        return False
    if is_mutation(node):  # of what nobody else sees: it is told of that one as well
        return pure(node) is not None and is_unseen(node)
    if target.namespace != "aten" or any(r.alias_info for r in target._schema.returns):
        return False
    composite = torch._C.DispatchKey.CompositeImplicitAutograd
    is_composed = target.has_kernel_for_dispatch_key(composite)
    return not is_composed or target._schema.name in MADE_NEW
