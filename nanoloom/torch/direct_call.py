"""A program of known shapes, called with the memory of torch's tensors.

All that no call decides is decided before: where each input lies among the arguments
and what it must be, what is new and what is only handed on.  A call looks at its
tensors, makes new ones, and runs.  Through numpy's arrays it takes ten times as long.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
import torch
from torch._C._dynamo.guards import (
    _empty_strided_cpu as new_tensor,
)
from torch.autograd.graph import increment_version

from nanoloom.api.program import Program
from nanoloom.frontend.torch.element_types import torch_view
from nanoloom.frontend.torch.imported import Imported
from nanoloom.frontend.torch.memory_order import inverse
from nanoloom.interface.tensor import Tensor
from nanoloom.runtime.variant import Variant
from nanoloom.torch.memory import overlap

PLAIN = frozenset({torch.Tensor, torch.nn.Parameter})
NUMBERS: dict[Any, tuple[Any, Any]] = {
    torch.int64: (int, ctypes.c_int64),
    torch.float64: (float, ctypes.c_double),
}
Rows = tuple[tuple[int, ...], tuple[int, ...], torch.dtype]  # shape, strides, type


class DirectCall:
    """A call gives the results; None where it must be done the long way.

    places: the argument that each input of the program is, by its name.
    """

    def __init__(
        self, variant: Variant, imported: Imported, places: Mapping[str, int]
    ) -> None:
        self.variant = variant  # keeps what is run
        self.same_words = variant.library.same_words
        library = variant.library
        inputs, outputs = library.inputs, library.outputs
        wanted = [(places[x.name], *rows_of(x, imported)) for x in inputs]
        self.inputs = [(*each, NUMBERS.get(each[-1])) for each in wanted]
        self.sizes = [prod(s) * dtype.itemsize for _, s, _, dtype in wanted]
        self.outputs = [rows_of(x, imported) for x in outputs]
        numbers = {x.name: i for i, x in enumerate(outputs)}
        made_of = {i: imported.mutated.get(imported.inputs[x.name])
                   for i, x in enumerate(inputs)}  # fmt: skip
        self.pairs = [places[x.name] for x in inputs if x.name in imported.pairs]
        self.changed = {i: numbers[name] for i, name in made_of.items() if name}
        self.in_place = {output: self.inputs[i][0] for i, output in library.in_place}
        self.results: list[tuple[str, Any]] = [
            (kind if kind != "output" else kind_of(what, imported),
             numbers[what] if kind == "output" else what)
            for kind, what in imported.results
        ]  # fmt: skip
        every = [("", i) for i in range(len(outputs))]
        self.results_are_outputs = self.results == every

    def __call__(self, args: Sequence[Any]) -> list[Any] | None:
        starts: list[int] = []
        kept: list[Any] = []  # numbers, in memory for this call alone
        given, parts = args, self.in_parts(args) if self.pairs else args
        if parts is None:
            return None
        args = parts
        for place, shape, strides, dtype, number in self.inputs:
            x = args[place]
            if type(x) in PLAIN:
                fits = x.dtype is dtype and x.shape == shape
                lies = x.stride() == strides or is_plain(x, strides)
                if not fits or not lies or not x.is_cpu or x.is_neg():
                    return None
                starts.append(x.data_ptr())
            elif number is not None and not shape and type(x) is number[0]:
                kept.append(number[1](x))
                starts.append(ctypes.addressof(kept[-1]))
            else:
                return None
        if self.changed and self.overlaps(starts):
            return None
        made = self.outputs_of(args)
        starts += [x.data_ptr() for x in made]
        if not all(starts):  # nothing in them
            return None
        self.variant.instance.run_at(starts)
        if self.changed:
            self.change(args, made)
        return made if self.results_are_outputs else self.chosen(given, made)

    def in_parts(self, args: Sequence[Any]) -> Sequence[Any] | None:
        """Complex arguments as the real numbers that they are of."""
        made = list(args)
        for place in self.pairs:
            x = args[place]
            if type(x) not in PLAIN or not x.is_complex() or x.is_conj():
                return None
            made[place] = torch.view_as_real(x.detach())
        return made

    def outputs_of(self, args: Sequence[Any]) -> list[torch.Tensor]:
        """New tensors, but for those that lie in an argument's memory."""
        if not self.in_place:
            return [new_tensor(*rows) for rows in self.outputs]
        return [
            args[self.in_place[i]] if i in self.in_place else new_tensor(*rows)
            for i, rows in enumerate(self.outputs)
        ]

    def chosen(self, args: Sequence[Any], made: Sequence[torch.Tensor]) -> list[Any]:
        return [
            made[what] if not kind
            else made[what].item() if kind == "number"
            else torch.view_as_complex(made[what]) if kind == "pair"
            else args[what] if kind == "argument" else what
            for kind, what in self.results
        ]  # fmt: skip

    def overlaps(self, starts: Sequence[int]) -> bool:
        spans = [(x, x + n) for x, n in zip(starts, self.sizes, strict=True)]
        read = [s for i, s in enumerate(spans) if i not in self.changed]
        return overlap([spans[i] for i in self.changed], read)

    def change(self, args: Sequence[Any], made: Sequence[torch.Tensor]) -> None:
        """What is changed in place is counted, or becomes what was computed for it."""
        with torch.no_grad():
            for number, output in self.changed.items():
                tensor = args[self.inputs[number][0]]
                if tensor is not made[output]:
                    tensor.copy_(made[output])
                elif not tensor.is_inference():  # these have no counter
                    increment_version(tensor)


def kind_of(output: str, imported: Imported) -> str:
    """What a result is made of an output as: a number, a pair; "" for what it is."""
    if output in imported.numbers:
        return "number"
    return "pair" if output in imported.pairs else ""


def dtype_of(tensor: Tensor) -> torch.dtype:
    return torch_view(np.empty(0, tensor.element.dtype)).dtype


def rows_of(tensor: Tensor, imported: Imported) -> Rows:
    """Shape and strides as torch counts the axes."""
    shape = tensor.shape
    strides = [prod(shape[axis + 1 :]) for axis in range(len(shape))]
    back = inverse(imported.orders.get(tensor.name, tuple(range(len(shape)))))
    seen = tuple(shape[i] for i in back), tuple(strides[i] for i in back)
    return *seen, dtype_of(tensor)


def is_plain(x: torch.Tensor, strides: tuple[int, ...]) -> bool:
    """Whether strides differ in axes of one element alone, where they mean nothing."""
    pairs = zip(x.shape, x.stride(), strides, strict=True)
    return len(strides) == x.dim() and all(n == 1 or a == b for n, a, b in pairs)


def direct_call(
    program: Program, imported: Imported, places: Mapping[str, int],
    arrays: Mapping[str, object],
) -> DirectCall | None:  # fmt: skip
    """For arguments of the same shapes; None where their values decide about more."""
    given = program.checked(arrays)
    variant = program.variant(given)
    plain = type(variant) is Variant and not (variant.counted or variant.otherwise)
    if not plain or not program.is_known_by_shapes(variant, given):
        return None
    if set(variant.inputs) - places.keys():
        return None
    return DirectCall(variant, imported, places)
