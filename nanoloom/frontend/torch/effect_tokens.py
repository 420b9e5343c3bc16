"""Tokens that torch threads through a graph to keep effects in order.

    info = linalg_inv_ex(x)[1]
    token_1 = with_effects(token, _linalg_check_errors, info, ...)[0]
    return token_1, y                                     ->  return None, y

What checks a result has no effect here, so its tokens go; those of others stay.
"""

from __future__ import annotations

from typing import Any

from torch import fx
from torch._higher_order_ops.effects import with_effects

from nanoloom.frontend.torch.call import is_assertion


def remove_tokens(graph: fx.Graph) -> None:
    """Take out of the graph what only checks, and tokens that nothing is left of."""
    first = set[fx.Node]()
    for node in [n for n in graph.nodes if checks(n)]:
        token: Any = node.args[0]
        if token.op == "placeholder":
            first.add(token)
        for taken in list(node.users):  # checks give nothing but the next token
            taken.replace_all_uses_with(token)
            graph.erase_node(taken)
        graph.erase_node(node)
    (output,) = (n for n in graph.nodes if n.op == "output")
    kept = [None if x in first else x for x in results_of(output)]
    if first:
        output.args = (type(output.args[0])(kept),)


def checks(node: fx.Node) -> bool:
    """Whether a node orders a check of a result among effects."""
    return node.target is with_effects and is_assertion(node.args[1])


def results_of(output: fx.Node) -> list[Any]:
    made: Any = output.args[0]
    return list(made) if isinstance(made, list | tuple) else [made]
