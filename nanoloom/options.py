"""What decides about the compiled code: one frozen value, all in the cache key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol, get_args

from nanoloom.cache import Cache
from nanoloom.errors import Error
from nanoloom.target.facts import Target

Precision = Literal["f32", "bf16"]
# How kernels are lowered: by their schedules, or through loops of the affine dialect
# (affine), and three ways of others to compare that with.
Strategy = Literal["default", "affine", "plain", "oml", "onnx-mlir"]


class Given(Protocol):
    """A schedule in place of the chosen one: a Schedule of schedule/language.py."""

    def to_transform(self, nest: Any) -> str: ...


class Chosen(Protocol):
    """What makes a schedule of a nest and a target: a Dataflow, for one."""

    def schedule_of(self, nest: Any, target: Target) -> Any: ...


@dataclass(frozen=True)
class Unrolling:
    """How far the affine path unrolls a product of m x k and k x n; None: as it likes.

    vlen: lanes of a vector of 32-bit numbers.  k: vectors of a sum along k.  m, n: rows
    and columns (or vectors of columns) that are computed at once.
    """

    vlen: int | None = None
    k: int | None = None
    m: int | None = None
    n: int | None = None


AS_IT_LIKES = Unrolling()


@dataclass(frozen=True)
class CompileOptions:
    """Options of one compilation.

    target: the CPU to compile for.  precision: of the products of f32
    contractions (sums stay f32).
    schedules: (kernel name or pattern, Schedule, Dataflow or Transform script) pairs
    that replace the chosen ones.  checked: an index out of range makes a call fail;
    else it is clamped.  exact_conv: convolutions by sums of products only, not by
    Winograd's method.  strategy, unrolling: how kernels are lowered; a strategy other
    than the default has no schedules, and a single task for each kernel.  layout: of
    channels between kernels: auto, last, first, or how many are a block.  search: so
    many seconds at most, candidates of schedules are run and the fastest taken.
    caches: of inputs and outputs; what an output extends is there
    (graph/append_to_cache.py).  starts: nothing is there yet, and the inputs are not
    read.  encoder_caches: of inputs that stay as outputs of the first call made them.
    """

    target: Target
    precision: Precision = "f32"
    schedules: tuple[tuple[str, Given | Chosen | str], ...] = ()
    checked: bool = True
    exact_conv: bool = False
    strategy: Strategy = "default"
    unrolling: Unrolling = AS_IT_LIKES
    layout: str = "auto"
    search: float = 0.0
    caches: tuple[tuple[str, str], ...] = ()
    starts: bool = False
    encoder_caches: tuple[tuple[str, str], ...] = ()

    @property
    def winograd_target(self) -> Target | None:
        """The target, where convolutions may be computed by Winograd's method."""
        exact = self.exact_conv or self.precision != "f32"
        return None if exact else self.target.leader

    @property
    def k_contiguous_rhs(self) -> bool:
        """Whether right operands of products are laid along the sum."""
        return self.strategy == "affine"

    @property
    def planes(self) -> bool:
        """Whether depthwise layers may have their planes apart, vectors of pixels.

        Dataflows are of vectors of channels, and other strategies have no schedule.
        """
        flows = any(hasattr(given, "schedule_of") for _, given in self.schedules)
        return self.strategy == "default" and not flows

    @property
    def any_width(self) -> bool:
        """Whether schedules may have vectors of widths that only the machine knows."""
        return self.strategy == "default" and self.target.vector.vscale_max > 1


def options_with(
    options: CompileOptions | None, said: Mapping[str, Any], cache: Cache
) -> CompileOptions:
    """The options, which agree with what is said besides; else those of this machine.

    said: fields of them, None for what nobody said.
    """
    from nanoloom.target.cached_host import host

    fields = {name: value for name, value in said.items() if value is not None}
    if (precision := said["precision"]) not in (None, *get_args(Precision)):
        known = " or ".join(map(repr, get_args(Precision)))
        raise Error(f"precision is {known}, not {precision!r}")
    if options is None:
        return replace(CompileOptions(host(cache)), **fields)
    for name, value in fields.items():
        if value != (other := getattr(options, name)):
            raise Error(f"{name} is {value!r} here and {other!r} in the options")
    return options
