"""An ExportedProgram without changes in place, graphs inside and tokens of checks."""

from __future__ import annotations

import torch
from torch import fx
from torch.export import ExportedProgram

from nanoloom.errors import Unsupported
from nanoloom.frontend.torch.call import fake_of, is_mutation
from nanoloom.frontend.torch.copied_graph import copied
from nanoloom.frontend.torch.effect_tokens import checks, remove_tokens
from nanoloom.frontend.torch.unseen_changes import without_unseen


def functional(exported: ExportedProgram) -> tuple[ExportedProgram, fx.Graph]:
    """The program without changes in place, graphs inside and tokens of checks.

    And its graph, which may be another one than its own.
    """
    made, graph = out_of_place(exported)
    if any(map(checks, graph.nodes)):
        graph, _ = copied(graph)
        remove_tokens(graph)
    return made, graph


def out_of_place(exported: ExportedProgram) -> tuple[ExportedProgram, fx.Graph]:
    graph = exported.graph
    if not any(is_mutation(n) or n.op == "get_attr" for n in graph.nodes):
        return exported, graph
    is_plain = not any(n.op == "get_attr" for n in graph.nodes)
    if is_plain and (made := without_unseen(graph)) is not None:
        return exported, made
    made = decomposed(exported)
    restore_types(graph, made.graph)
    return made, made.graph


def decomposed(exported: ExportedProgram) -> ExportedProgram:
    """The program as torch makes it of others' operators, none of them in place.

    Raises Unsupported where torch cannot.
    """
    try:
        return exported.run_decompositions({})
    except Exception as error:  # whatever passes of torch raise
        said = str(error).strip().partition("\n")[0]
        raise Unsupported(
            f"torch cannot decompose what it exported: {type(error).__name__}: {said}",
            where="module",
            hint='torch.compile(module, backend="nanoloom") may trace it',
        ) from error


def restore_types(before: fx.Graph, graph: fx.Graph) -> None:
    """Results are of the types they had: torch loses casts of autocast in operators
    that it makes of others (tensordot)."""
    (old,), (new,) = ([n for n in g.nodes if n.op == "output"] for g in (before, graph))
    results = list(new.args[0])
    wanted = old.args[0]
    for place, node in enumerate(wanted, len(results) - len(wanted)):
        have = fake_of(results[place])
        dtype = getattr(fake_of(node), "dtype", None)
        if not isinstance(have, torch.Tensor) or dtype in (None, have.dtype):
            continue
        with graph.inserting_before(new), have.fake_mode:
            cast = graph.call_function(
                torch.ops.aten._to_copy.default, (results[place],), {"dtype": dtype}
            )
            cast.meta["val"] = have.to(dtype)
        results[place] = cast
    new.args = (tuple(results),)
