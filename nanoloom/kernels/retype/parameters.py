"""The parameters of a module, to which passes add others that are made of them."""

from __future__ import annotations

from nanoloom.ir.mlir import ir, sign
from nanoloom.linalg.parameters import name_arguments
from nanoloom.linalg.stage import LinalgModule
from nanoloom.weights.weight import Weight


class Parameters:
    """The arguments of @main that are weights; those that are not read stay."""

    def __init__(self, lowered: LinalgModule) -> None:
        self.main = lowered.module.body.operations[0]
        self.block = self.main.operation.regions[0].blocks[0]
        self.inputs = lowered.inputs
        self.parameters: list[Weight] = list(lowered.parameters)

    def parameter_of(self, value: ir.Value) -> Weight | None:
        """The weight that a value is, None for anything else."""
        if not isinstance(value.owner, ir.Block):
            return None
        number = list(self.block.arguments).index(value) - len(self.inputs)
        return self.parameters[number] if number >= 0 else None

    def parameter(self, weight: Weight, element: ir.Type | None = None) -> ir.Value:
        """One more parameter; element: f32 where nothing else is said."""
        kind = ir.RankedTensorType.get(list(weight.shape), element or ir.F32Type.get())
        self.parameters.append(weight)
        return self.block.add_argument(kind, ir.Location.unknown())

    def finish(self) -> tuple[Weight, ...]:
        """The parameters, behind the function's arguments in its signature."""
        sign(self.main)
        name_arguments(self.main, [x.name for x in self.inputs], self.parameters)  # type: ignore[arg-type] - nor of operations
        return tuple(self.parameters)
