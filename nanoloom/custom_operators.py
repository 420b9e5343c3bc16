"""`operator`: a Python function stands for an operator of a user's own domain."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from nanoloom.errors import Error, InputError, Unsupported
from nanoloom.frontend import custom_operators as frontend
from nanoloom.graph.custom_types import RULES
from nanoloom.graph.types import numpy_dtype, shape_of
from nanoloom.linalg.builder.builder import Builder
from nanoloom.linalg.builder.node import Node
from nanoloom.linalg.builder.tensor import Tensor
from nanoloom.linalg.operators import OPERATORS
from nanoloom.notation import Buffer, computation
from nanoloom.notation.lower import lower_statements

Function = Callable[..., Any]
TAKEN = ("", "ai.onnx", "ai.onnx.ml", "nanoloom")


def operator(
    domain: str, name: str, *, buffers: bool = False, version: str | None = None
) -> Callable[[Function], Function]:
    """A decorator: nodes of this operator are compiled to what the function says.

    The function takes the node and gives the values, made by `node.op`, that stand
    for its outputs; `node.input`, `node.optional`, `node.int`, `node.float` and
    `node.string` ask for what the node has.  An attribute or an input that is not asked
    for is refused.  domain, name: of the operator in the model.  buffers: the function
    takes a Buffer for each input, None for one that is left out, and the attributes by
    name, and gives one or several Buffers that it has written.  version: programs are
    remembered for other processes under it; say another one when the function changes.
    Without it they are made anew.  Raises Error for a domain that ONNX defines, and
    InputError for what is no function and a version that is no str.
    """
    if domain in TAKEN:
        said = domain or "ai.onnx"
        raise Error(
            f"the operators of {said} are not a user's",
            where=f"operator {name}",
            hint="give it a domain of your own",
        )

    told: Any = version
    if told is not None and not isinstance(told, str):
        reason = f"version is a {type(told).__name__}"
        raise InputError(reason, where=f"operator {name}", hint='give a str, as "1"')

    def take(function: Function) -> Function:
        if not callable(function):
            raise InputError(
                f"what stands for it is a {type(function).__name__}, no function",
                where=f"operator {name}",
                hint="write it above a function, as a decorator",
            )
        full = f"{domain}.{name}"
        OPERATORS.pop(full, None)
        RULES.pop((domain, name), None)
        if buffers:
            OPERATORS[full] = lambda b, node: lowered(b, node, function)
            RULES[domain, name] = lambda node: types_of(node, function)
        expand = None if buffers else function
        frontend.register(domain, name, expand, version)
        return function

    return take


# ---- functions over buffers


def written(
    function: Function,
    given: Sequence[tuple[tuple[int, ...], np.dtype] | None],
    attributes: Mapping[str, Any],
    where: str,
) -> tuple[list[Buffer | None], list[Buffer]]:
    """The buffers of the inputs, and those that a function makes of them."""
    names = names_of(function, len(given))
    inputs = [
        None if kind is None else Buffer(name, kind[0], kind[1])
        for name, kind in zip(names, given, strict=True)
    ]
    try:
        made = function(*inputs, **attributes)
    except Error:
        raise
    except Exception as error:  # whatever a function of a user raises
        raise Unsupported(
            f"its function raised {type(error).__name__}: {error}",
            where=where,
            hint=f"look at {function.__qualname__} in {function.__module__}",
        ) from error
    found = [made] if isinstance(made, Buffer) else list(made)
    if not all(isinstance(x, Buffer) and x.statements for x in found):
        raise Unsupported(
            "its function gives something that is no Buffer with a statement",
            where=where,
            hint="write the results into Buffers and return those",
        )
    return inputs, found


def names_of(function: Function, count: int) -> list[str]:
    """Its own words for its parameters, as far as there are any."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = inspect.signature(function).parameters.values()
    own = [p.name for p in parameters if p.kind in kinds]
    return [own[i] if i < len(own) else f"input_{i}" for i in range(count)]


def types_of(
    node: ir.Node, function: Function
) -> list[tuple[ir.DataType, tuple[int, ...]]]:
    given = [None if x is None else (shape_of(x), numpy_dtype(x)) for x in node.inputs]
    attributes = {name: x.value for name, x in node.attributes.items()}
    where = f"node {node.name} ({node.op_type})"
    _, made = written(function, given, attributes, where)
    return [(ir.DataType.from_numpy(x.dtype), x.shape or ()) for x in made]


def lowered(b: Builder, node: Node, function: Function) -> list[Tensor]:
    given = [None if x is None else (x.shape, x.dtype) for x in node.inputs]
    attributes = {name: x.value for name, x in node.attributes.items()}
    where = f"node {node.name} ({node.op})"
    inputs, made = written(function, given, attributes, where)
    pairs = zip(inputs, node.inputs, strict=True)
    tensors = {x: tensor for x, tensor in pairs if x is not None and tensor is not None}
    lower_statements(b, computation(*made), tensors)
    return [tensors[x] for x in made]
