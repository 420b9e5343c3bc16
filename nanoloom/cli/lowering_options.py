"""--layout, --search, --strategy and its: one argument of a verb, seven of the
command."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, get_args

import typer

if TYPE_CHECKING:
    from nanoloom import options

Strategy = Annotated[
    str,
    typer.Option(
        "--strategy",
        metavar="NAME",
        help="How kernels are lowered: default (by schedules), affine, plain, oml, "
        "onnx-mlir.",
    ),
]
VectorLength = Annotated[
    int | None,
    typer.Option(
        "--vlen",
        min=1,
        max=64,
        metavar="LANES",
        help="Of --strategy: 32-bit lanes of a vector (default: the target's).",
    ),
]
UnrollSum = Annotated[
    int | None,
    typer.Option(
        "--unroll-k", min=1, max=16, metavar="N", help="Of --strategy: along sums."
    ),
]
UnrollRows = Annotated[
    int | None,
    typer.Option(
        "--unroll-m", min=1, max=16, metavar="N", help="Of --strategy: along rows."
    ),
]
UnrollColumns = Annotated[
    int | None,
    typer.Option(
        "--unroll-n", min=1, max=16, metavar="N", help="Of --strategy: along columns."
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
    strategy: str = "default"
    vlen: int | None = None
    unroll_k: int | None = None
    unroll_m: int | None = None
    unroll_n: int | None = None

    def known(self) -> tuple[options.Strategy, options.Unrolling]:
        """Raises typer.BadParameter for what does not exist or go together."""
        from nanoloom import options
        from nanoloom.errors import Error
        from nanoloom.kernels.layouts.layout import layout_named

        known: tuple[options.Strategy, ...] = get_args(options.Strategy)
        try:
            layout_named(self.layout)
        except Error as error:
            raise typer.BadParameter(str(error), param_hint="--layout") from None
        if self.strategy not in known:
            reason = f"{self.strategy} is none of {', '.join(known)}"
            raise typer.BadParameter(reason, param_hint="--strategy")
        chosen = options.Unrolling(
            self.vlen, self.unroll_k, self.unroll_m, self.unroll_n
        )
        if self.strategy == "default" and chosen != options.AS_IT_LIKES:
            reason = "the default has schedules instead of --vlen and --unroll-..."
            raise typer.BadParameter(reason, param_hint="--strategy")
        if self.vlen is not None and self.vlen & (self.vlen - 1):
            reason = f"{self.vlen} is no power of two"
            raise typer.BadParameter(reason, param_hint="--vlen")
        return known[known.index(self.strategy)], chosen


AS_IT_IS = Lowering()
ARGUMENT = "lowering"
TYPES = {
    "layout": Layout,
    "search": Search,
    "strategy": Strategy,
    "vlen": VectorLength,
    "unroll_k": UnrollSum,
    "unroll_m": UnrollRows,
    "unroll_n": UnrollColumns,
}


def with_lowering(verb: Callable[..., int]) -> Callable[..., int]:
    """The verb with the seven options in the place of its argument `lowering`."""

    @functools.wraps(verb)
    def typed(**given: object) -> int:
        own = {name: given.pop(name) for name in TYPES}
        return verb(**given, **{ARGUMENT: Lowering(**own)})  # type: ignore[arg-type]

    parameters: list[inspect.Parameter] = []
    for each in inspect.signature(verb, eval_str=True).parameters.values():
        if each.name != ARGUMENT:
            parameters.append(each)
            continue
        for name, default in asdict(AS_IT_IS).items():
            own = each.replace(name=name, default=default, annotation=TYPES[name])
            parameters.append(own)
    signature = inspect.Signature(parameters, return_annotation=int)
    typed.__signature__ = signature  # type: ignore[attr-defined]
    typed.__annotations__ = {each.name: each.annotation for each in parameters}
    return typed
