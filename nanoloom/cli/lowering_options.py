"""--layout, --search, --strategy and its: one argument of a verb, several of the
command."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nanoloom.cli.plugins import EXTRA, strategies

if TYPE_CHECKING:
    from nanoloom import options

DEFAULT = "default"  # by schedules
STRATEGIES = tuple(name for each in strategies() for name in each.names)
Strategy = Annotated[
    str,
    typer.Option(
        "--strategy",
        metavar="NAME",
        help="How kernels are lowered: default (by schedules)"
        f"{''.join(f', {name}' for name in STRATEGIES)}.",
    ),
]
Layout = Annotated[
    str,
    typer.Option(
        "--layout",
        metavar="WORD",
        help="Of channels between kernels: auto, last, first, or how many are a block.",
    ),
]
Search = Annotated[
    float,
    typer.Option(
        "--search",
        min=0,
        max=86400,
        metavar="SECONDS",
        help="Run other schedules of the kernels for so long, and take the fastest.",
    ),
]


@dataclass(frozen=True)
class Lowering:
    """The words as they are typed."""

    layout: str = "auto"
    search: float = 0.0
    strategy: str = DEFAULT
    given: tuple[tuple[str, object], ...] = ()  # options of strategies

    def known(self) -> options.Strategy | None:
        """Raises typer.BadParameter for what does not exist or go together."""
        from nanoloom.errors import Error
        from nanoloom.fusion.layouts.layout import layout_named

        try:
            layout_named(self.layout)
        except Error as error:
            raise typer.BadParameter(str(error), param_hint="--layout") from None
        if self.strategy == DEFAULT:
            for name, _ in self.given:
                reason = f"the default has schedules instead of --{dashed(name)}"
                raise typer.BadParameter(reason, param_hint="--strategy")
            return None
        for each in strategies():
            if self.strategy in each.names:
                own = {n: value for n, value in self.given if n in each.options}
                return each.make(self.strategy, **own)
        reason = f"{self.strategy} is none of {', '.join((DEFAULT, *STRATEGIES))}"
        more = "" if STRATEGIES else f"; {EXTRA} brings others"
        raise typer.BadParameter(reason + more, param_hint="--strategy")


def dashed(name: str) -> str:
    return name.replace("_", "-")


AS_IT_IS = Lowering()
ARGUMENT = "lowering"
# Those of Lowering, and those of strategies, which are None where nothing is given.
OWN: dict[str, Any] = {"layout": Layout, "search": Search, "strategy": Strategy}
BESIDE = {name: kind for each in strategies() for name, kind in each.options.items()}


def with_lowering(verb: Callable[..., int]) -> Callable[..., int]:
    """The verb with these options in the place of its argument `lowering`."""

    @functools.wraps(verb)
    def typed(**given: object) -> int:
        own = {name: given.pop(name) for name in OWN}
        beside = [(name, given.pop(name)) for name in BESIDE]
        said = tuple((name, value) for name, value in beside if value is not None)
        # The names are its fields; no type checker knows that of a dict.
        made = Lowering(**own, given=said)  # type: ignore[arg-type]
        return verb(**given, **{ARGUMENT: made})

    kinds = {name: (kind, getattr(AS_IT_IS, name, None))
             for name, kind in (OWN | BESIDE).items()}  # fmt: skip
    return declared(typed, verb, ARGUMENT, kinds)


def declared(
    typed: Callable[..., int],
    verb: Callable[..., int],
    argument: str,
    options: Mapping[str, tuple[Any, object]],
) -> Callable[..., int]:
    """`typed` with a verb's arguments, and options in the place of one of them.

    options: their types and defaults.
    """
    parameters: list[inspect.Parameter] = []
    for each in inspect.signature(verb, eval_str=True).parameters.values():
        if each.name != argument:
            parameters.append(each)
            continue
        for name, (kind, default) in options.items():
            parameters.append(each.replace(name=name, default=default, annotation=kind))
    signature = inspect.Signature(parameters, return_annotation=int)
    typed.__signature__ = signature  # type: ignore[attr-defined]
    typed.__annotations__ = {each.name: each.annotation for each in parameters}
    return typed
