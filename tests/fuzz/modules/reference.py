"""What a module gives in float64, and how far rounding moves that.

Each operator of a run that is disturbed gets operands, and gives a result, off by a
rounding of the narrowest type; what only chooses, moves or compares is exact.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch  # pyright: ignore[reportMissingImports]
from torch._ops import HigherOrderOperator  # pyright: ignore[reportMissingImports]
from torch.utils import _pytree as pytree  # pyright: ignore[reportMissingImports]
from torch.utils._python_dispatch import (  # pyright: ignore[reportMissingImports]
    TorchDispatchMode,
)

FLOATS = (torch.float32, torch.float16, torch.bfloat16)
NAMES = """
abs neg relu max min amax amin aminmax argmax argmin sort topk gather index index_select
index_put _index_put_impl eq ne lt le gt ge where maximum minimum clamp clamp_min
clamp_max cat stack clone copy flip roll embedding sign floor ceil round trunc isnan
isinf scatter masked_fill masked_select nonzero tril triu repeat zeros ones full
zeros_like ones_like full_like new_zeros arange empty empty_like fill zero pad
constant_pad_nd reflection_pad1d reflection_pad2d replication_pad1d replication_pad2d
replication_pad3d logical_not logical_and logical_or logical_xor bitwise_and isin
searchsorted bucketize median nanmedian kthvalue mode cummax cummin signbit heaviside
max_pool2d_with_indices max_pool3d_with_indices unfold im2col pixel_shuffle
pixel_unshuffle slice_scatter select_scatter diagonal_scatter index_copy index_fill
masked_scatter upsample_nearest1d upsample_nearest2d upsample_nearest3d fmax fmin
lift_fresh any all count_nonzero diag_embed _local_scalar_dense take put hardtanh
threshold nan_to_num eye copysign unique_consecutive
"""
EXACT = frozenset(NAMES.split())


@dataclass
class Wide(TorchDispatchMode):
    """Floats are float64.  eps: of the disturbance; 0 for none."""

    eps: float
    seed: int
    random: Any = field(init=False)
    supports_higher_order_operators: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__init__()
        self.random = torch.Generator().manual_seed(self.seed)

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        del types
        if isinstance(func, HigherOrderOperator):
            return called(self, func, args, kwargs or {})
        given = pytree.tree_map(self.wide, (args, kwargs or {}))
        name = func._schema.name.rpartition("::")[2].rstrip("_")
        plain = not any(r.alias_info for r in func._schema.returns)
        moves = self.eps and name not in EXACT
        if name in ("_to_copy", "to"):
            moves = self.eps and (kwargs or {}).get("dtype") in FLOATS
        if moves and plain:
            given = pytree.tree_map(self.moved, given)
        made = func(*given[0], **given[1])
        return pytree.tree_map(self.moved, made) if moves and plain else made

    def wide(self, x: Any) -> Any:
        if isinstance(x, torch.Tensor) and x.dtype in FLOATS:
            return x.double()
        return torch.float64 if isinstance(x, torch.dtype) and x in FLOATS else x

    def moved(self, x: Any) -> Any:
        if not (isinstance(x, torch.Tensor) and x.dtype == torch.float64):
            return x
        noise = torch.rand(x.shape, generator=self.random, dtype=torch.float64)
        return x * (1 + self.eps * (2 * noise - 1))


def called(mode: TorchDispatchMode, func: Any, args: Any, kwargs: Any) -> Any:
    """An operator; of torch.cond the graph that is chosen, in the mode as well."""
    if func is not torch.ops.higher_order.cond:
        return func(*args, **kwargs)
    chosen, yes, no, given = args
    with mode:
        return (yes if chosen else no)(*given)


@contextmanager
def in_doubles(eps: float, seed: int) -> Generator[None]:
    usual = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        with Wide(eps, seed):
            yield
    finally:
        torch.set_default_dtype(usual)


class Twin:
    """A module in float64, which is called as often as the one beside it.

    A copy of it is kept: what it holds changes with its calls.
    """

    def __init__(self, module: Any, eps: float, seed: int) -> None:
        self.module = copy.deepcopy(module).double()
        self.eps, self.seed = eps, seed

    def __call__(self, args: Sequence[Any], leaves: Callable[..., Any]) -> list[Any]:
        given = doubled(args)
        with torch.no_grad(), in_doubles(self.eps, self.seed):
            made = self.module(*given)
        self.seed += 1000
        return leaves(made, given, self.module)


def doubled(args: Sequence[Any]) -> list[Any]:
    """Copies of the arguments; what shares memory does so in them."""
    made: dict[Any, Any] = {}
    found: list[Any] = []
    for x in args:
        if not isinstance(x, torch.Tensor):
            found.append(x)
            continue
        place = x.untyped_storage().data_ptr(), x.dtype
        if place not in made:
            whole = x.as_strided(
                (x.untyped_storage().nbytes() // x.element_size(),), (1,), 0
            )
            made[place] = whole.double() if x.dtype in FLOATS else whole.clone()
        found.append(made[place].as_strided(x.shape, x.stride(), x.storage_offset()))
    return found


def copied(args: Sequence[Any]) -> list[Any]:
    """Copies with the same strides, offsets and sharing."""
    made: dict[Any, Any] = {}
    found: list[Any] = []
    for x in args:
        place = x.untyped_storage().data_ptr(), x.dtype
        if place not in made:
            count = x.untyped_storage().nbytes() // x.element_size()
            made[place] = x.as_strided((count,), (1,), 0).clone()
        found.append(made[place].as_strided(x.shape, x.stride(), x.storage_offset()))
    return found


@dataclass(frozen=True)
class Expected:
    """torch's own result, that in float64, and that disturbed."""

    own: Any
    exact: Any
    moved: list[Any]


FACTOR = 32  # of the spread


def differing(ours: Any, wanted: Expected, eps: float) -> str:
    """What is wrong with a result; "" for nothing."""
    own = wanted.own
    if not isinstance(own, torch.Tensor):
        if type(ours) is not type(own):
            return f"a {type(ours).__name__} where a {type(own).__name__} is wanted"
        if isinstance(own, float):
            return (
                ""
                if abs(ours - own) <= 1e-2 * abs(own) + 1e-2
                else f"{ours}, not {own}"
            )
        return "" if ours == own else f"{ours} where {own} is wanted"
    if not isinstance(ours, torch.Tensor):
        return f"a {type(ours).__name__} where a tensor is wanted"
    if ours.dtype != own.dtype:
        return f"{ours.dtype} where {own.dtype} is wanted"
    if ours.shape != own.shape:
        return f"shape {tuple(ours.shape)} where {tuple(own.shape)} is wanted"
    right = is_whole_right if not own.is_floating_point() else is_float_right
    fits = right(ours, wanted, eps)
    if bool(fits.all()):
        return ""
    place = tuple(int(i) for i in (~fits).nonzero()[0])
    at = f"{int((~fits).sum())} of {fits.numel()} numbers; at {list(place)} "
    return (
        at
        + f"{ours[place].item()}, torch {own[place].item()},"
        + f" exactly {wanted.exact[place].item()}"
    )


def is_whole_right(ours: Any, wanted: Expected, eps: float) -> Any:
    del eps
    fits = (ours == wanted.own) | (ours == wanted.exact)
    for other in wanted.moved:
        fits |= other != wanted.exact
    return fits


def is_float_right(ours: Any, wanted: Expected, eps: float) -> Any:
    a, b, own = ours.double(), wanted.exact.double(), wanted.own.double()
    spread = torch.zeros_like(b)
    for other in wanted.moved:
        gap = (other - b).abs()
        spread = torch.where(gap.isfinite(), torch.maximum(spread, gap), float("inf"))
        both = (other == b) | (other.isnan() & b.isnan())
        spread = torch.where(both & ~gap.isfinite(), 0, spread)
    tiny = 64 * torch.finfo(ours.dtype).tiny
    bound = FACTOR * spread + 4 * eps * b.abs() + tiny
    bound = torch.maximum(bound, 8 * (own - b).abs().nan_to_num(0, 0, 0))
    fits = ((a - b).abs() <= bound) | (a == b) | (a.isnan() & b.isnan())
    return fits | (a == own) | (a.isnan() & own.isnan()) | spread.isinf()
