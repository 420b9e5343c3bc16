"""A module whose @main is written with a builder, constants outside of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from nanoloom.ir.mlir import func, ir, sign
from nanoloom.linalg.builder.builder import Builder, tensor_type
from nanoloom.linalg.builder.tensor import Tensor
from nanoloom.linalg.parameters import Parameters, name_arguments
from nanoloom.linalg.stage import LinalgModule, Spec


class Entry(Protocol):
    """What the compiler takes at this stage: no graph stands before it."""

    def lower(self) -> LinalgModule:
        """@main; an MLIR context must be current."""
        ...


def function(
    inputs: Sequence[Spec],
    make: Callable[[Builder, list[Tensor]], Mapping[str, Tensor]],
) -> LinalgModule:
    """@main of the outputs that `make` builds of the inputs; needs a current context.

    Constants that it uses become parameters.
    """
    module = ir.Module.create()
    with ir.InsertionPoint(module.body):
        kinds = [tensor_type(x.shape, x.dtype) for x in inputs]
        main = func.FuncOp("main", ir.FunctionType.get(kinds, []))
        entry = main.add_entry_block()

    parameters = Parameters(entry)
    with ir.InsertionPoint(entry):
        builder = Builder(parameters.add)
        given = [
            Tensor(x.shape, x.dtype, argument, None, x.name)
            for x, argument in zip(inputs, list(entry.arguments), strict=True)
        ]
        results = make(builder, given)
        values = [builder.value(x) for x in results.values()]
        func.ReturnOp(values)
    sign(main, [v.type for v in values])
    made = [Spec(name, x.shape, x.dtype) for name, x in results.items()]
    name_arguments(main, [x.name for x in inputs], parameters.weights)
    module.operation.verify()
    return LinalgModule(module, tuple(inputs), tuple(made), parameters.weights)
