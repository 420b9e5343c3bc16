"""What an import of torch makes: a model, and how a call of the module is one of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import onnx_ir as ir
import torch

from nanoloom.errors import InputError
from nanoloom.frontend.torch.memory_order import Order, as_counted, as_it_lies

Place = tuple[str, Any]
InPlace = tuple[tuple[str, str], ...]  # inputs, and outputs in their memory


@dataclass
class Imported:
    """A model, and how a call of the module is one of the program.

    inputs: for each input of the model, the number of the user's argument, or the
    name of the buffer.  results: for each result of the module, the output's name, the
    number of the argument that it is, or a constant.  mutated: the output that a
    buffer or an argument becomes.  numbers: outputs that are numbers, no tensors.
    orders: of inputs and outputs whose axes lie otherwise than torch counts them.
    pairs: inputs and outputs that torch has as complex numbers: the model has real and
    imaginary parts along a last axis.
    """

    model: ir.Model
    inputs: dict[str, int | str] = field(default_factory=dict[str, "int | str"])
    results: list[Place] = field(default_factory=list["Place"])
    mutated: dict[int | str, str] = field(default_factory=dict["int | str", str])
    numbers: set[str] = field(default_factory=set[str])
    orders: dict[str, Order] = field(default_factory=dict[str, "Order"])
    pairs: set[str] = field(default_factory=set[str])

    def given(self, name: str, tensor: torch.Tensor) -> torch.Tensor:
        """A view of an argument's or a buffer's tensor as the model's input.

        Raises InputError for real numbers in the place of complex ones, or the reverse.
        """
        if tensor.is_complex() != (name in self.pairs):
            kinds = ("complex", "real") if name in self.pairs else ("real", "complex")
            reason = f"has {kinds[1]} numbers, where the example has {kinds[0]} ones"
            hint = f"give {kinds[0]} ones"
            raise InputError(reason, where=f"input {name}", hint=hint)
        if name in self.pairs:
            tensor = torch.view_as_real(tensor.detach().resolve_conj())
        return as_it_lies(tensor, self.orders.get(name))

    def result(self, name: str, tensor: torch.Tensor) -> torch.Tensor:
        """A view of the model's output as torch has it."""
        counted = as_counted(tensor, self.orders.get(name))
        if name not in self.pairs:
            return counted
        if not counted.numel():  # an array of nothing has strides of nothing
            counted = torch.empty(counted.shape, dtype=counted.dtype)
        return torch.view_as_complex(counted)

    @property
    def in_place(self) -> InPlace:
        """Inputs, and what they become, where that can lie in their memory."""
        graph = self.model.graph
        sides = {str(x.name): x for x in (*graph.inputs, *graph.outputs)}
        changed = {n: x for n, x in self.inputs.items() if x in self.mutated}
        became = {name: self.mutated[place] for name, place in changed.items()}
        return tuple([
            (name, made)
            for name, made in became.items()
            if self.orders.get(name) == self.orders.get(made)
            and str(sides[name].shape) == str(sides[made].shape)
            and sides[name].dtype == sides[made].dtype
        ])  # fmt: skip
