"""Samples of torch's own tests of operators, run as graphs of one node each."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

import torch  # pyright: ignore[reportMissingImports]
from torch._subclasses.fake_tensor import (  # pyright: ignore[reportMissingImports]
    FakeTensorMode,
)
from torch.fx.experimental.proxy_tensor import (  # pyright: ignore[reportMissingImports]
    make_fx,
)
from torch.fx.experimental.symbolic_shapes import (  # pyright: ignore[reportMissingImports]
    ShapeEnv,
)
from torch.testing._internal.common_methods_invocations import (  # pyright: ignore[reportMissingImports]
    op_db,
)
from torch.utils import _pytree as pytree  # pyright: ignore[reportMissingImports]

from nanoloom.frontend.torch.call import is_mutation

# What the models of these tests and their like are made of.
USED = """
abs add addmm all amax amin any arange argmax argmin atan2 baddbmm bmm cat ceil
chunk clamp clone cos cumsum div einsum eq erf exp expand expm1 eye flatten flip
floor floor_divide fmod full_like gather ge gt index_add index_copy index_put
index_select isnan le lerp linspace log log1p log_softmax logical_and logical_not
logsumexp lt masked_fill matmul max maximum mean min minimum mm mul narrow ne neg
nn.functional.adaptive_avg_pool2d nn.functional.avg_pool2d nn.functional.conv1d
nn.functional.conv2d nn.functional.conv_transpose2d nn.functional.cosine_similarity
nn.functional.elu nn.functional.embedding nn.functional.gelu nn.functional.glu
nn.functional.group_norm nn.functional.hardsigmoid nn.functional.hardswish
nn.functional.hardtanh nn.functional.instance_norm nn.functional.interpolate
nn.functional.layer_norm nn.functional.leaky_relu nn.functional.linear
nn.functional.max_pool2d nn.functional.mish nn.functional.normalize
nn.functional.pad nn.functional.pixel_shuffle nn.functional.prelu nn.functional.relu
nn.functional.relu6 nn.functional.rms_norm
nn.functional.scaled_dot_product_attention nn.functional.selu nn.functional.silu
nn.functional.softplus norm ones_like permute pow prod reciprocal remainder repeat
reshape roll round rsqrt rsub scatter scatter_add select sigmoid sin slice softmax
sort split sqrt squeeze stack std sub sum tanh topk transpose tril triu trunc unbind
unsqueeze var where zeros_like
"""
# What has no numbers of its own, or draws them.
UNDEFINED = ("empty", "new_empty", "rand", "normal", "bernoulli", "multinomial")
# Vectors that may be turned: what is made of them for gradients is of one sign.
TURNED = ("svd", "linalg.svd", "linalg.eigh", "svd_lowrank", "pca_lowrank")
NAMES = frozenset(USED.split())
EVERY = frozenset(info.name for info in op_db if not info.name.startswith(UNDEFINED))


@dataclass(frozen=True)
class Sample:
    """One call: the tensors that it takes, its graph, and what torch gives for it.

    run: torch's own call, of other tensors.
    """

    name: str
    tensors: tuple[Any, ...]
    graph: Any
    wanted: list[Any]
    run: Callable[..., list[Any]]

    def in_doubles(self) -> list[Any]:
        """What torch gives of the same numbers with more bits, as of fewer ones."""
        given = [t.double() if t.is_floating_point() else t for t in self.tensors]
        pairs = zip(self.run(*given), self.wanted, strict=True)
        return [x.to(y.dtype) if isinstance(y, torch.Tensor) else x for x, y in pairs]


def samples(
    seed: int, share: float, dtype: Any = torch.float32,
    names: AbstractSet[str] = NAMES, first: str = "",
) -> Iterator[Sample]:  # fmt: skip
    """A share of all samples of an element type, drawn by the seed, from the operator
    `first` on.  Those of an operator are the same wherever one begins.

    What drops numbers at random, writes in place, asks for values while it is traced or
    takes a sparse tensor is no call that a graph holds.
    """
    every = [info.formatted_name for info in op_db]
    for info in op_db[every.index(first) if first else 0 :]:
        drawn = random.Random(f"{seed} {info.formatted_name}")
        if info.name not in names or dtype not in info.supported_dtypes("cpu"):
            continue
        torch.manual_seed(seed)
        for each in info.sample_inputs("cpu", dtype, requires_grad=False):
            if drawn.random() >= share or each.kwargs.get("dropout_p"):
                continue
            if (made := sample(info, each)) is not None:
                yield made


def sample(info: Any, each: Any) -> Sample | None:
    flat, spec = pytree.tree_flatten((each.input, each.args, each.kwargs))
    places = [i for i, x in enumerate(flat) if isinstance(x, torch.Tensor)]
    tensors = tuple(flat[i] for i in places)
    if any(t.layout != torch.strided for t in tensors):
        return None

    def run(*given: Any) -> Any:
        filled = list(flat)
        for place, value in zip(places, given, strict=True):
            filled[place] = value
        first, args, kwargs = pytree.tree_unflatten(filled, spec)
        found = info(first, *args, **kwargs)
        if info.name in TURNED:
            found = each.output_process_fn_grad(found)
        return pytree.tree_leaves(found)

    # Loops want symbols to be possible; no sample has any.
    symbols = ShapeEnv(allow_scalar_outputs=False, allow_dynamic_output_shape_ops=False)
    mode = FakeTensorMode(shape_env=symbols, static_shapes=True)
    try:
        with torch.no_grad():
            wanted = run(*[t.clone() for t in tensors])
            fakes = [mode.from_tensor(t) for t in tensors]
            with mode:
                graph = make_fx(run, pre_dispatch=True)(*fakes)
    except Exception:  # noqa: BLE001 - a sample that is an error, or needs values
        return None
    if any(is_mutation(node) for node in graph.graph.nodes):
        return None
    return Sample(info.formatted_name, tensors, graph, wanted, run)
