"""Complex tensors of a graph: two real ones, as torch computes with such pairs.

    view_as_complex(x) * polar(1, t)
    ->  (re * cos(t) - im * sin(t), re * sin(t) + im * cos(t))

Fourier transforms are DFT.  Inputs and results of the model have both parts along a
last axis.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch import fx
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils import _pytree as pytree

from nanoloom.errors import Unsupported
from nanoloom.frontend.torch import (
    fourier,
    fourier_calls,
    linear_systems,
    matrix_factors,
    reflections,
    singular_values,
)
from nanoloom.frontend.torch.call import LEFT, Call, fake_of
from nanoloom.frontend.torch.decomposed import (
    decomposed,
    inlined,
    require_any_size,
)
from nanoloom.frontend.torch.kept_sizes import kept_sizes
from nanoloom.frontend.torch.pair import Pair

if TYPE_CHECKING:
    from nanoloom.frontend.torch.graph import GraphImporter

REAL = fourier_calls.REAL
aten: Any = torch.ops.aten
TRANSFORMS = fourier.OPERATORS | fourier_calls.OPERATORS


def paired(re: Any, im: Any) -> Any:
    """torch.complex looks at each size: open ones would become those of an example."""
    from torch._subclasses.complex_tensor import ComplexTensor

    return ComplexTensor(*torch.broadcast_tensors(re, im))


def made_of(target: Any) -> Callable[..., Any]:
    """What an operator makes of sizes alone, as the real part."""

    def rule(*args: Any, dtype: torch.dtype, **rest: Any) -> Any:
        del rest  # where it would lie
        made = target(*args, dtype=REAL[dtype])
        return paired(made, torch.zeros_like(made))

    return rule


def full(size: Sequence[int], number: complex, **rest: Any) -> Any:
    dtype: Any = REAL[rest.get("dtype") or torch.get_default_dtype().to_complex()]
    parts = (number.real, number.imag)
    return paired(*(torch.full(size, part, dtype=dtype) for part in parts))


RULES: dict[Any, Any] = {
    aten.complex.default: paired,
    aten.polar.default: lambda size, angle: paired(
        size * angle.cos(), size * angle.sin()
    ),
    aten.lift_fresh_copy.default: lambda number: number,  # of Python's numbers
    aten.mul.Scalar: aten.mul.Tensor, aten.full.default: full,
    aten.scalar_tensor.default: partial(full, []),
    **{x: made_of(x) for x in (
        aten.zeros.default, aten.ones.default, aten.eye.default, aten.eye.m,
        aten.empty.memory_format,
    )},
    **matrix_factors.RULES, **linear_systems.RULES, **reflections.RULES,
    **singular_values.RULES,
}  # fmt: skip
# What moves elements moves both parts alike.
MOVED = (
    aten.alias_copy.default, aten.as_strided.default, aten.as_strided_copy.default,
    aten.diag_embed.default, aten.diagonal_scatter.default, aten.im2col.default,
    aten.reflection_pad1d.default, aten.reflection_pad2d.default, aten.roll.default,
    aten.replication_pad1d.default, aten.replication_pad2d.default, aten.rot90.default,
    aten.take.default, aten.tril.default, aten.triu.default, aten.unfold.default,
    aten.unfold_copy.default, aten.view_copy.default,
)  # fmt: skip


def has_complex(call: Call) -> bool:
    """Whether an operator takes or gives a complex tensor."""
    given = [node.meta.get("val") for node in call.node.all_input_nodes]
    return any(map(is_complex, pytree.tree_leaves((given, call.out))))


def is_complex(value: object) -> bool:
    return isinstance(value, torch.Tensor) and value.dtype in REAL


def value(call: Call, importer: GraphImporter) -> Any:
    """By a transform, what torch makes of an operator, or its rule for pairs."""
    target: Any = call.node.target
    for node in call.node.all_input_nodes:
        outside = not isinstance(importer.values[node], Pair)
        if outside and is_complex(node.meta.get("val")):
            raise call.refuse("takes complex numbers that torch makes")
    own = TRANSFORMS.get(getattr(target, "_schema", call.node).name)
    if own is not None:
        return own(call)
    whole = isinstance(target, torch._ops.OpOverload)
    composite = torch._C.DispatchKey.CompositeImplicitAutograd
    made = None
    if whole and target.has_kernel_for_dispatch_key(composite):
        made = decomposed(call, importer)
    if made is None and whole:
        made = of_pairs(call, importer)
    if made is None and whole:
        made = decomposed(call, importer)
    if made is None:
        raise call.refuse(f"{target} is not known", LEFT)
    return made


def of_pairs(call: Call, importer: GraphImporter) -> Any:
    """The operator as torch computes it of real and imaginary parts."""
    flat, spec = pytree.tree_flatten((call.node.args, dict(call.node.kwargs)))
    places = [i for i, x in enumerate(flat) if isinstance(x, fx.Node)]
    fakes = [fake_of(flat[i]) for i in places]
    structure: list[Any] = []

    def run(*given: Any) -> Any:
        from torch._subclasses.complex_tensor import ComplexTensor
        from torch._subclasses.complex_tensor._ops.common import lookup_complex

        parts, filled = iter(given), list(flat)
        for place, fake in zip(places, fakes, strict=True):
            first = next(parts)
            pair = is_complex(fake)
            filled[place] = ComplexTensor(first, next(parts)) if pair else first
        args, kwargs = pytree.tree_unflatten(filled, spec)
        target: Any = call.node.target
        rule = RULES.get(target) or lookup_complex(target, *args, **kwargs)
        if rule is None and target in MOVED:
            rule = partial(of_each_part, target)
        made = (rule or target)(*args, **kwargs)
        outs, shape = pytree.tree_flatten(made)
        structure[:] = [shape, [isinstance(x, ComplexTensor) for x in outs]]
        return [
            part
            for x in outs
            for part in ((x.re, x.im) if isinstance(x, ComplexTensor) else (x,))
        ]

    try:
        known = [*fakes, *pytree.tree_leaves(call.out)]  # zeros have no inputs
        with kept_sizes(known) as asked, torch.no_grad():
            examples = [part for fake in fakes for part in real_parts(fake)]
            traced = make_fx(run)(*examples)
        require_any_size(asked, call.node.target)
    except Unsupported:  # torch asks for a size
        raise
    except Exception:  # noqa: BLE001 - whatever a rule of torch raises
        return None
    traced.graph.eliminate_dead_code()  # what is asked of tensors where they are made
    values = [importer.values[flat[i]] for i in places]
    given = [p for x in values for p in ((x.re, x.im) if isinstance(x, Pair) else (x,))]
    found = iter(inlined(traced, given, importer))
    shape, pairs = structure
    made = [Pair(next(found), next(found)) if pair else next(found) for pair in pairs]
    return pytree.tree_unflatten(made, shape)


def of_each_part(target: Any, *args: Any, **kwargs: Any) -> Any:
    """An operator of the real parts of all that it takes, and of the others."""
    from torch._subclasses.complex_tensor import ComplexTensor

    def part(name: str) -> Any:
        real = [getattr(x, name) if isinstance(x, ComplexTensor) else x for x in args]
        return target(*real, **kwargs)

    return ComplexTensor(part("re"), part("im"))


def real_parts(fake: Any) -> list[Any]:
    if not is_complex(fake):
        return [fake]
    return [torch.empty(fake.shape, dtype=REAL[fake.dtype]) for _ in range(2)]
