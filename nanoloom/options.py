"""What decides about the compiled code: one frozen value, all in the cache key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import Any, Literal, Protocol, get_args

from nanoloom.cache import Cache, digest
from nanoloom.errors import Error
from nanoloom.target.facts import Target

Precision = Literal["f32", "bf16"]
ANY_VALUE = "any_value"  # of a model's graph: it is for all values of its inputs


class Given(Protocol):
    """A schedule in place of the chosen one: a Schedule of schedule/language.py."""

    def to_transform(self, nest: Any) -> str: ...


class Chosen(Protocol):
    """What makes a schedule of a nest and a target: a Dataflow, for one."""

    def schedule_of(self, nest: Any, target: Target) -> Any: ...


class Strategy(Protocol):
    """Lowers kernels in place of schedules, each in a single task.

    A frozen dataclass that workers are sent and cache keys are made of: a field of it
    is the digest of the code that it stands for.
    """

    @property
    def name(self) -> str: ...

    @property
    def fuses_transposes(self) -> bool:
        """Whether kernels read operands of products in another order than they lie."""
        ...

    def rewrite(self, graph: Any, opset: int) -> dict[str, str]:
        """Rewrite an onnx_ir graph with static shapes in place, last of all.

        Gives the reasons of the nodes that stay, by their names.
        """
        ...

    def lower(self, module: Any, target: Target) -> Any:
        """Lower a kernel, as vector/stage.py does it with a schedule: a Vectorized."""
        ...

    def code_options(self, target: Target) -> Any:
        """What LLVM does with the kernels: CodeOptions of binary/objects.py."""
        ...


@dataclass(frozen=True)
class CompileOptions:
    """Options of one compilation.

    target: the CPU to compile for.  precision: of the products of f32
    contractions (sums stay f32).
    schedules: (kernel name or pattern, Schedule, Dataflow or Transform script) pairs
    that replace the chosen ones.  checked: an index out of range makes a call fail;
    else it is clamped.  exact_conv: convolutions by sums of products only, not by
    Winograd's method.  strategy: what lowers kernels in place of schedules.  layout: of
    channels between kernels: auto, last, first, or how many are a block.  search: so
    many seconds at most, candidates of schedules are run and the fastest taken.
    caches: of inputs and outputs; what an output extends is there
    (graph/append_to_cache.py).  starts: nothing is there yet, and the inputs are not
    read.  encoder_caches: of inputs that stay as outputs of the first call made them.
    in_place: of inputs and outputs; whoever calls gives one place for both
    (kernels/in_place.py).  any_value: one program for all values of inputs that decide
    about shapes.
    """

    target: Target
    precision: Precision = "f32"
    schedules: tuple[tuple[str, Given | Chosen | str], ...] = ()
    checked: bool = True
    exact_conv: bool = False
    strategy: Strategy | None = None
    layout: str = "auto"
    search: float = 0.0
    caches: tuple[tuple[str, str], ...] = ()
    starts: bool = False
    encoder_caches: tuple[tuple[str, str], ...] = ()
    in_place: tuple[tuple[str, str], ...] = ()
    any_value: bool = False

    @property
    def content(self) -> tuple[object, ...]:
        """What a cache key is made of: all of it, the target by its digest."""
        own = [getattr(self, x.name) for x in fields(self) if x.name != "target"]
        return (facts(self.target), *own)

    @property
    def winograd_target(self) -> Target | None:
        """The target, where convolutions may be computed by Winograd's method."""
        exact = self.exact_conv or self.precision != "f32"
        return None if exact else self.target.leader

    def __post_init__(self) -> None:
        if isinstance(self.strategy, str):
            hint = "nanoloom_papers.affine.strategies.strategy_named gives it by name"
            reason = f"strategy is a value or None, not {self.strategy!r}"
            raise Error(reason, hint=hint)

    @property
    def planes(self) -> bool:
        """Whether depthwise layers may have their planes apart, vectors of pixels.

        Dataflows are of vectors of channels, and other strategies have no schedule.
        """
        flows = any(hasattr(given, "schedule_of") for _, given in self.schedules)
        return self.strategy is None and not flows

    @property
    def any_width(self) -> bool:
        """Whether schedules may have vectors of widths that only the machine knows."""
        return self.strategy is None and self.target.vector.vscale_max > 1


@cache
def facts(target: Target) -> str:
    """Its digest: hundreds of facts, and the same of all that a process compiles."""
    return digest.of(target)


def options_with(
    options: object, said: Mapping[str, Any], cache: Cache
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
    if not isinstance(options, CompileOptions):
        raise Error(
            f"options are a nanoloom.options.CompileOptions, not {options!r:.80}"
        )
    for name, value in fields.items():
        if value != (other := getattr(options, name)):
            raise Error(f"{name} is {value!r} here and {other!r} in the options")
    return options
