"""A module whose @main is written with a builder, constants outside of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from nanoloom.linalg.builder import Builder, tensor_type
from nanoloom.linalg.stage import LinalgModule, Parameter, Spec, name_arguments
from nanoloom.linalg.tensor import Tensor
from nanoloom.mlir import func, ir


def function(
    inputs: Sequence[Spec],
    outputs: Sequence[str],
    make: Callable[[Builder, list[Tensor]], Sequence[Tensor]],
) -> LinalgModule:
    """@main of what `make` builds of the inputs; an MLIR context must be current.

    outputs: the names of what it gives.  Constants that it uses become parameters.
    """
    parameters: list[Parameter] = []
    module = ir.Module.create()
    with ir.InsertionPoint(module.body):
        kinds = [tensor_type(x.shape, x.dtype) for x in inputs]
        main = func.FuncOp("main", ir.FunctionType.get(kinds, []))
        entry = main.add_entry_block()

    def add_parameter(x: Tensor) -> ir.Value:
        assert x.load is not None
        name = x.name or f"constant.{len(parameters)}"
        parameters.append(Parameter(name, x.shape, x.dtype, x.load))
        kind = tensor_type(x.shape, x.dtype)
        return entry.add_argument(kind, ir.Location.unknown())

    with ir.InsertionPoint(entry):
        builder = Builder(add_parameter)
        given = [
            Tensor(x.shape, x.dtype, argument, None, x.name)
            for x, argument in zip(inputs, list(entry.arguments), strict=True)
        ]
        results = list(make(builder, given))
        values = [builder.value(x) for x in results]
        func.ReturnOp(values)
    signature = ir.FunctionType.get(
        [a.type for a in entry.arguments], [v.type for v in values]
    )
    main.attributes["function_type"] = ir.TypeAttr.get(signature)
    made = [Spec(n, x.shape, x.dtype) for n, x in zip(outputs, results, strict=True)]
    name_arguments(main, inputs, parameters)
    module.operation.verify()
    return LinalgModule(module, tuple(inputs), tuple(made), tuple(parameters))
