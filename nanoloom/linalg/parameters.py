"""The parameters of a function @main: its arguments that stand for weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from nanoloom.ir.mlir import func, ir
from nanoloom.linalg.builder.generic import tensor_type
from nanoloom.linalg.builder.tensor import Tensor
from nanoloom.weights.weight import Weight


@dataclass
class Parameters:
    """What a builder asks for while it writes a function: equal weights are one.

    All have names: constant.N, where the model has none.

    entry: the function's block.  release: what gives memory back that weights took.
    """

    entry: ir.Block
    release: Callable[[], None] | None = None
    arguments: dict[Weight, ir.Value] = field(default_factory=dict[Weight, ir.Value])

    @property
    def weights(self) -> tuple[Weight, ...]:
        """In the order of the arguments."""
        return tuple(self.arguments)

    def add(self, x: Tensor) -> ir.Value:
        """The function argument that stands for a constant array."""
        weight = x.weight
        assert weight is not None
        if weight not in self.arguments:
            source = weight.source
            name = source.name or f"constant.{len(self.arguments)}"
            source = replace(source, name=name, release=self.release or source.release)
            weight = replace(weight, source=source)
            kind = tensor_type(x.shape, x.dtype)
            made = self.entry.add_argument(kind, ir.Location.unknown())
            self.arguments[weight] = made
        return self.arguments[weight]


def name_arguments(
    main: func.FuncOp, inputs: Sequence[str], parameters: Sequence[Weight]
) -> None:
    """Say in the IR which argument is which input or parameter; none is written."""
    names = [("nanoloom.input", name) for name in inputs]
    names += [("nanoloom.parameter", weight.name) for weight in parameters]
    main.attributes["arg_attrs"] = ir.ArrayAttr.get(
        [
            ir.DictAttr.get(
                {
                    k: ir.StringAttr.get(v),
                    "bufferization.writable": ir.BoolAttr.get(False),
                }
            )
            for k, v in names
        ]
    )
