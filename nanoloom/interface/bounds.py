"""What a dimension may be where it is a size at run time: 1..512."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Protocol

from nanoloom.errors import InputError
from nanoloom.interface.dimension_values import checked_dimension

UNBOUNDED = 2**63 - 1  # INT64_MAX


class Shaped(Protocol):
    """An input; a dimension may be a name."""

    @property
    def name(self) -> str: ...
    @property
    def shape(self) -> tuple[int | str, ...]: ...


@dataclass(frozen=True)
class Bounds:
    """The least and the most that a dimension may be; prints as it is written.

    or_none: it may be 0 besides, where no result has elements then: nothing is
    computed, and code for one at least is enough.
    """

    least: int = 1
    most: int = UNBOUNDED
    or_none: bool = False

    def __str__(self) -> str:
        return f"{self.fewest}..{self.most if self.most != UNBOUNDED else ''}"

    @property
    def fewest(self) -> int:
        return 0 if self.or_none else self.least


NO_BOUNDS: Mapping[str, Bounds] = MappingProxyType({})


def parted(dims: Mapping[str, object]) -> tuple[dict[str, object], dict[str, Bounds]]:
    """Numbers and bounds of dimensions apart.

    dims: a number, Bounds, or a pair (least, most), for each name.  Raises InputError
    for pairs that are none; what else is no number stays among the numbers.
    """
    if not hasattr(dims, "items"):
        raise InputError(f"dims are a {type(dims).__name__}", hint="give a dict")
    bounds = {name: x for name, x in dims.items() if isinstance(x, Bounds)}
    for name, pair in dims.items():
        if isinstance(pair, tuple):
            bounds[name] = bounds_of(name, pair)
    return {name: x for name, x in dims.items() if name not in bounds}, bounds


def bounds_of(name: str, pair: tuple[object, ...]) -> Bounds:
    if len(pair) != 2:
        reason = f"dimension {name} has {len(pair)} bounds"
        raise InputError(reason, hint="give the least and the most: (1, 512)")
    least, most = (checked_dimension(name, number) for number in pair)
    if not 0 <= least <= most or not most:
        reason = f"dimension {name} is from {least} to {most}"
        raise InputError(reason, hint="give two numbers from 0 on, the least first")
    return Bounds(max(least, 1), most, or_none=not least)


def require_within(
    bounds: Mapping[str, Bounds],
    inputs: Iterable[Shaped],
    shapes: Mapping[str, tuple[int, ...]],
) -> None:
    """Raise InputError for inputs with a size that its bounds exclude."""
    for x in inputs:
        for d, number in zip(x.shape, shapes[x.name], strict=True):
            within = bounds.get(d) if isinstance(d, str) else None
            if within and not within.fewest <= number <= within.most:
                wanted = (
                    f"at least {within.least} is wanted"
                    if number < within.least
                    else f"at most {within.most} was compiled for"
                )
                reason = f"dimension {d} is {number}, {wanted}"
                raise InputError(reason, where=f"input {x.name}")


def static_shapes(
    inputs: Iterable[Shaped], dims: Mapping[str, int]
) -> dict[str, tuple[int, ...]]:
    """Shapes of the inputs with every name bound by `dims`.

    Raises InputError naming the dimensions without a number.
    """
    shapes: dict[str, tuple[int, ...]] = {}
    missing: dict[str, None] = {}
    for x in inputs:
        for d in x.shape:
            if isinstance(d, str) and d not in dims:
                missing[d] = None
        shapes[x.name] = tuple(
            d if isinstance(d, int) else dims.get(d, 0) for d in x.shape
        )
    if missing:
        how = " ".join(f"--dim {name}=N" for name in missing)
        said = ", ".join(f'"{name}": N' for name in missing)
        raise InputError(
            f"no number is given for dimension {', '.join(missing)}",
            hint=f"bind it: dims={{{said}}}, or {how}",
        )
    return shapes
