"""The arguments of a call, in the structure that the example inputs had."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from torch.export import ExportedProgram
from torch.export._tree_utils import reorder_kwargs
from torch.export.graph_signature import ConstantArgument, InputKind
from torch.utils import _pytree as pytree

from nanoloom.errors import InputError

STRUCTURE = "call it with the structure of the example inputs"


class CallArguments:
    """What an exported module takes: tensors and numbers, by position or by name.

    names: of forward's parameters that the example inputs have by position.
    constants: arguments that are no tensors; torch.export makes them part of the graph.
    """

    def __init__(self, exported: ExportedProgram) -> None:
        self._spec = exported.call_spec.in_spec
        self._by_place, self._by_name = self._spec.children()
        whole = exported.module_call_graph[0].signature
        known = (whole.forward_arg_names if whole else None) or []
        self.names = tuple(known)[: self._by_place.num_children]
        given = [
            spec.arg
            for spec in exported.graph_signature.input_specs
            if spec.kind == InputKind.USER_INPUT
        ]
        self.constants = tuple(
            (i, arg.name, arg.value)
            for i, arg in enumerate(given)
            if isinstance(arg, ConstantArgument)
        )

    @cached_property
    def flat(self) -> int | None:
        """How many arguments there are, if each is one leaf, by its position."""
        leaves = all(x.is_leaf() for x in self._by_place.children())
        plain = leaves and not self._by_name.num_leaves
        return self._by_place.num_children if plain else None

    def leaves(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        """All tensors and numbers, in the order of the example's.

        Raises InputError for another structure, and for another constant.
        """
        args, kwargs = self.placed(args, kwargs)
        try:
            ordered = reorder_kwargs(kwargs, self._spec) if kwargs else kwargs
            leaves, spec = pytree.tree_flatten((args, ordered))
        except (KeyError, ValueError) as error:
            raise unfit(str(error).partition("\n")[0] or "do not fit") from None
        if spec != self._spec:
            raise unfit(f"are {spec.num_leaves} in another structure")
        self.require_constants(leaves)
        return leaves

    def require_constants(self, leaves: Sequence[object]) -> None:
        """Raise InputError for another constant than the example's."""
        for place, name, constant in self.constants:
            if not is_same(leaves[place], constant):
                raise InputError(
                    f"is {told(leaves[place])}, the program was made for {constant!r}",
                    where=f"argument {name}",
                    hint="compile the module with this among the example inputs, or"
                    " give tensors where numbers change",
                )

    def placed(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """What the example has by position is so, even if it comes by name."""
        by_name = dict(kwargs)
        for name in self.names[len(args) :]:
            if name not in by_name:
                break
            args = (*args, by_name.pop(name))
        wanted: list[str] = list(self._by_name.context or ())
        if more := [name for name in by_name if name not in wanted]:
            raise unfit(f"have {', '.join(more)}, the example inputs do not")
        if missing := [name for name in wanted if name not in by_name]:
            raise unfit(f"lack {', '.join(missing)}, by name as in the example inputs")
        if len(args) != (count := self._by_place.num_children):
            raise unfit(f"are {len(args)} by position, the example inputs {count}")
        return args, by_name


def unfit(told: str) -> InputError:
    return InputError(told, where="arguments of the module", hint=STRUCTURE)


def is_same(given: object, constant: object) -> bool:
    """Whether a constant is that of the example: 2.0 is no 2, NaN is NaN."""
    if type(given) is not type(constant):
        return False
    return given == constant or (given != given and constant != constant)


def told(given: object) -> str:
    plain = given is None or isinstance(given, int | float | complex | str)
    return repr(given) if plain else f"a {type(given).__name__}"
