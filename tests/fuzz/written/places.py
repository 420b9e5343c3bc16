"""Indexing in every mix, scattering with reductions, strides taken by hand."""

from __future__ import annotations

from typing import Any

import torch  # pyright: ignore[reportMissingImports]
from torch.export import Dim  # pyright: ignore[reportMissingImports]

from tests.fuzz.written.draw import Drawn, Written

# x: n, 4, 5; y: 4, 5; i, j: of 0 to 2, -3 to 2; m: mask of n; k: mask of n, 4
READS = (
    "x[i]", "x[:, i]", "x[..., i]", "x[i, j]", "x[i, :, j]", "x[:, i, j]",
    "x[i[:, None], j]", "x[m]", "x[k]", "x[m, 1]", "x[m][:, i]", "x[:, y[:, 0] > 0]",
    "x[None, i, ..., j]", "x[i, 1:3]", "x[-1, i]", "x[i, ..., None]", "x[:, [0, -1]]",
    "x[[0, 2], :, [1, 3]]", "x[..., [True, False, True, False, True]]", "x[i, None, j]",
    "x[:, None, i]", "x[i > 0]", "x[0, i, j]", "x[i, j, -1]", "x[i, 0, j]", "x[1:, i]",
    "x[::2, :, i]", "x[i.view(1, -1)]", "x[(i, j)]", "x[i, j[:, None], 0]",
    "x[..., i, :]", "x[i, :, None, j]", "x.take(i)",
    "x.take_along_dim(x.argsort(1), 1)", "x.index_select(1, i)",
    "x.gather(2, x.argsort(2))", "torch.take(y, i.abs())", "x[torch.tensor(1)]",
    "x[:, torch.tensor([], dtype=torch.int64)]", "x[i.to(torch.int32)]",
    "x[i.to(torch.uint8).long()]", "x[m.nonzero().squeeze(-1)]", "y[i][:, j]",
    "x[range(2)]", "x[:, slice(None, None, 2)]",
    "x[slice(-2, None), ..., slice(1, -1)]", "x[True]", "x[None][:, i]",
    "x[i, j].sum(0)", "torch.where(k[..., None], x, y)", "x[:, i][..., j]",
    "x.t()[i] if x.dim() == 2 else x.mT[:, i]",
)  # fmt: skip
WRITES = (
    "x[i] = y", "x[:, i] = 0", "x[i, j] = y[0]", "x[i, :, j] = y[:, 0]", "x[m] = y",
    "x[k] = -1", "x[k] = y[0]", "x[i] += y", "x[:, i, j] *= 2", "x[..., i] -= 1",
    "x[m, 1:3] = y[1:3]", "x[i, 1:3] = y[1:3]", "x[i[:, None], j] = y[0]",
    "x.index_put_((i, j), y[0], accumulate=True)",
    "x.index_put_((i,), y, accumulate=True)",
    "x.index_put_((i, None, j) if False else (i, j), y[1])",
    "x.scatter_add_(0, x.argsort(0), y.expand_as(x))",
    "x.scatter_reduce_(0, x.argsort(0), y.expand_as(x), REDUCE, include_self=SELF)",
    "x.index_reduce_(0, i, y.expand(i.shape[0], -1, -1), REDUCE2, include_self=SELF)",
    "x.index_add_(1, i, x[:, :1].expand(-1, i.shape[0], -1), alpha=2)",
    "x.masked_scatter_(k[..., None].expand_as(x), y.repeat(x.shape[0], 1))",
    "x.masked_fill_(k[..., None], 2.0)",
    "x.scatter_(1, x.argsort(1), y.expand_as(x), reduce='add')",
    "x.scatter_(2, x.argsort(2)[..., :2], 3.0, reduce='multiply')",
    "x[..., 1, :] = y[0]", "x[-1] = y", "x[:, :, ::2] = y[:, ::2]", "x[i, 0, j] = 5",
    "x[m] *= y", "x[m, 0] = y[0, 0]", "x[torch.arange(x.shape[0]), 0] = y[0]",
    "x[:, 0][m] = 1", "x[k & (k.sum(1, keepdim=True) > 1)] = 0",
    "x.put_(i.abs(), y[0, :i.shape[0]], accumulate=ACC)",
    "x.index_fill_(2, i.abs(), 1.5)",
)  # fmt: skip
OTHERS = (
    "x.scatter_reduce(1, x.argsort(1)[:, :3], y.expand_as(x), REDUCE, "
    "include_self=SELF)",
    "torch.scatter_reduce(y, 0, torch.zeros_like(y, dtype=torch.int64), y, REDUCE, "
    "include_self=SELF)",
    "x.select_scatter(y, 0, 1)", "x.slice_scatter(y[None], 0, 1, 2)",
    "y.diagonal_scatter(torch.ones(4))", "x.as_strided((2, 3), (5, 1), 2)",
    "y.as_strided((3, 3), (1, 2))", "y.as_strided((2, 2, 2), (5, 0, 1), 3)",
    "x.new_zeros(6, 4, 5).index_add(0, i.abs(), x[:i.shape[0]])",
    "x.index_copy(0, i.abs().unique(), x[: i.abs().unique().shape[0]])",
    "torch.segment_reduce(x, 'sum', lengths=torch.tensor([1, 2]), axis=0) if "
    "x.shape[0] == 3 else x",
    "torch.zeros(5, x.shape[2]).scatter_add(0, x[0].argsort(0), x[0])",
    "x.unfold(1, 2, 1)", "x.unfold(2, 3, 2).sum(-1)", "torch.histc(x, 5, -2, 2)",
    "torch.bucketize(x, y[0].sort()[0])", "torch.searchsorted(y.sort(-1)[0], y)",
    "torch.tril_indices(4, 5)[0]", "y[torch.tril_indices(4, 5).unbind()]",
    "y[torch.triu_indices(4, 5, 1).unbind()]", "torch.combinations(y[0], 2)",
    "torch.cartesian_prod(y[0], y[1])", "x.rot90(1, (1, 2))", "torch.block_diag(y, y)",
    "torch.meshgrid(y[0], y[:, 0], indexing='ij')[0]", "x.tensor_split(2, 1)",
    "x.tensor_split((1, 3), 2)", "torch.vander(y[0])", "torch.isin(i, j.abs())",
    "torch.unravel_index(i.abs(), (2, 2))", "x.argmax(1), x.max(2)",
    "torch.trapezoid(x, dim=1)", "y.corrcoef()", "y.cov()", "torch.cdist(x, x)",
    "torch.cdist(x, y[None], p=1)", "F.pdist(y)", "x.logcumsumexp(1)",
    "x.renorm(2, 0, 1.0)",
    "torch.cross(x[..., :3], y[..., :3].expand(x.shape[0], -1, -1), dim=-1)",
    "x.quantile(0.3, 1)", "x.nanquantile(torch.tensor([0.2, 0.9]), 2)", "x.median(1)",
    "x.nanmedian()", "x.mode(1)[0]", "x.msort()", "torch.gradient(y)",
    "x.diff(n=2, dim=1)", "x.kthvalue(2, 1)", "torch.frexp(x)[0]",
    "torch.polar(y.abs(), y).real", "torch.view_as_real(torch.complex(y, y))",
    "x.std_mean(1)", "torch.var_mean(x, (0, 2), correction=0)",
    "x.float().view(torch.int32)", "x.float().view(torch.uint8)",
    "x.half().view(torch.int16)", "y.contiguous().view(torch.int8)",
    "(x * 10).int().view(torch.float32)", "torch.stack([y, y], -1).view(torch.float64)",
    "x.byte().view(torch.bool)",
)  # fmt: skip


def filled(d: Drawn, line: str) -> str:
    for word, choices in (
        ("REDUCE2", ("'mean'", "'amax'", "'amin'", "'prod'")),
        ("REDUCE", ("'sum'", "'mean'", "'amax'", "'amin'", "'prod'")),
        ("SELF", ("True", "False")), ("ACC", ("True", "False")),
    ):  # fmt: skip
        line = line.replace(word, d.pick(*choices))
    return line


def indexed(d: Drawn) -> Written:
    dtype = d.pick(
        torch.float32,
        torch.float32,
        torch.float64,
        torch.int64,
        torch.bfloat16,
        torch.int32,
    )
    lines = [filled(d, x) for x in d.some(WRITES, 0 if d.flag() else 1, 3)]
    reads = [
        filled(d, x) for x in d.some(READS if d.flag() else (*READS, *OTHERS), 1, 3)
    ]
    body = "x, y, i, j, m, k\n  x = x.clone()\n" + "".join(f"  {x}\n" for x in lines)
    body += f"  return {', '.join(['x', *reads])}"
    open_shape = d.flag()
    calls: list[Any] = []
    for n in (3, 5, 4) if open_shape else (3, 3):

        def numbers(*shape: int) -> Any:
            return (
                d.randn(*shape, dtype=dtype)
                if dtype.is_floating_point
                else d.ints(-9, 9, *shape, dtype=dtype)
            )

        i, j = d.ints(0, 3, 5), d.ints(-3, 3, 5)
        calls.append(
            ((numbers(n, 4, 5), numbers(4, 5), i, j, d.bools(n), d.bools(n, 4)), {})
        )
    n = Dim.AUTO
    shapes: Any = {
        "x": {0: n},
        "y": None,
        "i": None,
        "j": None,
        "m": {0: n},
        "k": {0: n},
    }
    return Written(body, calls, shapes=shapes if open_shape else None)


def others(d: Drawn) -> Written:
    reads = [filled(d, x) for x in d.some(OTHERS, 1, 3)]
    calls: list[Any] = []
    for n in (3, 5):
        calls.append(
            ((d.randn(n, 4, 5), d.randn(4, 5), d.ints(0, 3, 3), d.ints(-3, 3, 3)), {})
        )
    n = Dim.AUTO
    shapes: Any = {"x": {0: n}, "y": None, "i": None, "j": None} if d.flag() else None
    return Written(
        f"x, y, i, j\n  return {', '.join(reads)}",
        calls if shapes else calls[:1],
        shapes=shapes,
    )


KINDS = (indexed, indexed, others)
