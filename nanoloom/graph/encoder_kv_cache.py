"""Keys and values of an encoder are made by the first call, and stay as they are.

    starts:  present = Transpose(MatMul(states, weight))   an output; past is no input
    behind:  present = Identity(past), or a constant       no output; past is an input

Exporters let the branch for tokens give its inputs on, or an empty constant.
"""

from __future__ import annotations

import onnx_ir as ir

from nanoloom.errors import Unsupported
from nanoloom.graph.append_to_cache import Pairs
from nanoloom.graph.movement_origin import StackedAxis, origin, readers
from nanoloom.graph.types import shape_of


def keep_encoder_caches(graph: ir.Graph, pairs: Pairs, *, starts: bool) -> None:
    """Rewrite a graph with static shapes in place.

    pairs: names of an input and of the output that it stays.  Raises Unsupported where
    the first call reads the input, or a later one makes something else of it.
    """
    for past, present in pairs:
        source = next(x for x in graph.inputs if x.name == past)
        made = next(x for x in graph.outputs if x.name == present)
        if starts:
            if any(readers(source)):
                reason = f"{past} is read where nothing is kept yet"
                raise Unsupported(reason, where=f"output {present}")
            graph.inputs.remove(source)
        elif made.const_value is None and not is_all_of(source, made):
            raise Unsupported(f"it is not {past}", where=f"output {present}")
        else:
            graph.outputs.remove(made)


def is_all_of(source: ir.Value, made: ir.Value) -> bool:
    """Whether a value is a copy of another one."""
    every = tuple(map(StackedAxis, range(len(shape_of(made)))))
    value, places, _ = origin(made, every)
    return value is source and places == every
