"""A module of torch as a program: called as the module is, with torch's tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from operator import itemgetter
from typing import Any, NoReturn

import numpy as np
import torch
from torch.export import ExportedProgram
from torch.utils import _pytree as pytree

from nanoloom.api.program import Program
from nanoloom.errors import InputError, public
from nanoloom.frontend.torch.element_types import numpy_view, torch_view
from nanoloom.frontend.torch.exported import held
from nanoloom.frontend.torch.imported import Imported
from nanoloom.interface.interface import Interface
from nanoloom.model.pickled import unpicklable
from nanoloom.torch.call_arguments import CallArguments
from nanoloom.torch.counted_sides import counted, require_shapes
from nanoloom.torch.direct_call import direct_call
from nanoloom.torch.direct_calls import DirectCalls
from nanoloom.torch.held_weights import HeldWeights, Same
from nanoloom.torch.memory import require_apart
from nanoloom.torch.released_weights import require_held

Build = Callable[[], tuple[Program, Imported]]


class TorchProgram:
    """A compiled module: its arguments in, its results out, without copies.

    Buffers and arguments that the module changes in place are changed.  Parameters are
    those of the module: a change that torch counts makes the program anew, at the next
    call; `reload` finds the others.

    inputs, outputs: name, shape and dtype of each, as torch counts their axes.
    program: the same with arrays by name, as they lie in memory: `save`.
    """

    def __init__(
        self, exported: ExportedProgram, build: Build, *, released: bool = False
    ) -> None:
        """released: the weights are the program's alone; they change no more."""
        self.exported, self._released = exported, released
        self._build, self._arguments = build, CallArguments(exported)
        names = [*exported.state_dict, *exported.constants]
        every = {name: held(exported, name) for name in names}
        self._held = {n: t for n, t in every.items() if isinstance(t, torch.Tensor)}
        self._make()

    def _make(self) -> None:
        require_held(self._held)
        self._program, self.imported = self._build()
        changed = self.imported.mutated
        kept = {} if self._released else self._held
        self._watched = tuple([t for n, t in kept.items() if n not in changed])
        self._weights = HeldWeights(self._watched)
        places = self.imported.inputs.values()
        self._changing_names = [x for x in places if isinstance(x, str)]
        self._changing = [self._held[name] for name in self._changing_names]
        self._direct = DirectCalls()

    @cached_property
    def _built(self) -> Callable[[list[Any]], Any]:
        """What makes the module's results of a list of them."""
        spec = self.exported.call_spec.out_spec
        if spec.is_leaf():
            return itemgetter(0)
        if spec.type in (tuple, list) and all(x.is_leaf() for x in spec.children()):
            return spec.type
        return lambda results: pytree.tree_unflatten(results, spec)

    @property
    def program(self) -> Program:
        self._renew()
        return self._program

    @property
    def inputs(self) -> tuple[Interface, ...]:
        """Name, shape and element type of each tensor that a call brings."""
        places, own = self.imported.inputs, self._program.inputs
        brought = [x for x in own if not isinstance(places[x.name], str)]
        return tuple([counted(x, self.imported) for x in brought])

    @property
    def outputs(self) -> tuple[Interface, ...]:
        """Of each result that is computed, in the module's order."""
        named = {x.name: x for x in self._program.outputs}
        made = [named[what] for kind, what in self.imported.results if kind == "output"]
        return tuple([counted(x, self.imported) for x in made])

    def _renew(self, same: Same | None = None) -> None:
        if not self._weights.are(self._watched, same):
            self._make()

    def __reduce__(self) -> NoReturn:
        raise unpicklable()

    @public
    def reload(self) -> None:
        """Take the weights as they are now; nothing is compiled if none differs.

        Raises InputError for a program whose module has released them.
        """
        if self._released:
            reason = "the module has released its weights"
            raise InputError(reason, hint="compile a module that has some")
        self._make()

    @public
    def __call__(self, *args: object, **kwargs: object) -> Any:
        """What the module returns for these arguments.

        Raises InputError for arguments of another structure, type or shape.
        """
        self._renew(self._direct.same_words)
        made = None
        if not kwargs and len(args) == self._arguments.flat:
            self._arguments.require_constants(args)
            made = self._direct((*args, *self._changing))
        if made is None:
            made = self._through_arrays(self._arguments.leaves(args, kwargs))
        return self._built(made)

    def _through_arrays(self, leaves: list[Any]) -> list[Any]:
        """A call of any shapes and strides; the next one of these is a direct one."""
        given = self._tensors(leaves)
        changed = {n: t for n, t in given.items() if self._target(n)}
        if changed:
            require_apart(changed, given)
        imported = self.imported
        require_shapes(self._program.inputs, imported, given)
        arrays = {
            name: numpy_view(imported.given(name, t), f"input {name}")
            for name, t in given.items()
        }
        self._require_types(given, arrays)
        made = self._program(arrays)
        results = [self._result(*each, made, leaves) for each in self.imported.results]
        with torch.no_grad():
            for name, tensor in changed.items():
                target = str(self._target(name))
                tensor.copy_(imported.result(target, torch_view(made[target])))
        if (count := self._arguments.flat) is not None:
            held = {n: count + i for i, n in enumerate(self._changing_names)}
            places = {name: held[place] if isinstance(place, str) else place
                      for name, place in self.imported.inputs.items()}  # fmt: skip
            direct = direct_call(self._program, self.imported, places, arrays)
            self._direct.keep(direct, (*leaves, *self._changing))
        return results

    def _target(self, name: str) -> str | None:
        """The output that an input of the model becomes, if it is changed."""
        return self.imported.mutated.get(self.imported.inputs[name])

    def _tensors(self, leaves: list[Any]) -> dict[str, torch.Tensor]:
        found: dict[str, torch.Tensor] = {}
        for name, place in self.imported.inputs.items():
            given = self._held[place] if isinstance(place, str) else leaves[place]
            if not isinstance(given, torch.Tensor):
                if not isinstance(given, int | float | bool):
                    reason = f"is a {type(given).__name__}"
                    raise InputError(
                        reason, where=f"input {name}", hint="give a tensor"
                    )
                given = torch.tensor(given)
            found[name] = given
        return found

    def _require_types(
        self, given: Mapping[str, torch.Tensor], arrays: Mapping[str, Any]
    ) -> None:
        """Raise InputError, in torch's words, for a tensor of another type."""
        for x in self._program.inputs:
            if x.name not in arrays or arrays[x.name].dtype == x.dtype:
                continue
            wanted = torch_view(np.empty(0, x.dtype)).dtype
            if x.name in self.imported.pairs:
                wanted = wanted.to_complex()
            raise InputError(
                f"is of {given[x.name].dtype}, the model wants {wanted}",
                where=f"input {x.name}",
                hint=f"convert it with tensor.to({wanted})",
            )

    def _result(self, kind: str, what: Any, made: Any, leaves: list[Any]) -> Any:
        if kind == "constant":
            return what
        if kind == "argument":
            return leaves[what]
        tensor = self.imported.result(what, torch_view(made[what]))
        return tensor.item() if what in self.imported.numbers else tensor

    def __repr__(self) -> str:
        inputs = ", ".join(f"{x.name} {list(x.shape)}" for x in self.inputs)
        return f"<nanoloom program of a torch module: {inputs}>"
