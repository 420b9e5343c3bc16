"""Modules that change what they hold and what they are given, through views too."""

from __future__ import annotations

from typing import Any

import torch  # pyright: ignore[reportMissingImports]
from torch.export import Dim  # pyright: ignore[reportMissingImports]

from tests.fuzz.written.draw import Drawn, Written

WRITES = (
    "x[1:] += 1", "x[:, 0] = 0", "x[..., -1] *= y[..., -1]", "x[x > 0] = 0.5",
    "x.t()[1] -= 2", "x[::2] = y[::2]", "x.view(-1)[1:4] = 7",
    "x[0], x[1] = x[1].clone(), x[0].clone()", "x[:, 1:3].clamp_(-0.5, 0.5)",
    "x.diagonal().add_(3)", "x.diagonal().fill_(0)", "x.unsqueeze(0).mul_(2)",
    "x[:2].copy_(y[1:3])", "x.masked_fill_(y > 0, -1)", "x[[0, 2]] = y[[1, 0]]",
    "x[[0, 2], 1] += 5", "x[:, [3, 0]] *= 2", "x.transpose(0, 1).zero_()",
    "x.chunk(2, 1)[1].neg_()", "x.split([1, 3], 1)[0].exp_()",
    "x[1:].sub_(x[:-1].clone())", "x.index_add_(0, i, y[:2])",
    "x.index_fill_(1, i, 9.0)", "x.scatter_(0, i[None].expand(1, 2), 4.0)",
    "x.select(1, 2).sigmoid_()", "x.narrow(0, 1, 2).relu_()", "x.unbind(0)[1].mul_(-1)",
    "x.as_strided((2, 2), (4, 1), 1).add_(1)",
    "x[None].expand(1, -1, -1)[0, 0].add_(1)", "x.index_copy_(0, i, y[:2])", "x[i] = 0",
    "x[i, i] = y[0, :2]", "x.put_(i, y[0, :2])", "x[y[:, 0] > 0] += 1", "x[-1] = x[0]",
    "torch.add(x, y, out=z)", "z.copy_(x); z += 1", "z.fill_(float(x.shape[0]))",
    "x.set_(y) if False else x.add_(0)", "x.mT[..., 1].mul_(3)",
    "v = x[1]; v += 1; w = v.view(2, 2); w[0] = 0", "v = x.flatten(); v += 1",
    "x.fill_diagonal_(2.0)", "x.tril_()", "x.squeeze().swapaxes(0, 1)[2] = y[:, 1]",
    "x.addmm_(y, y.t()[:, :4] if y.shape[0] == 4 else y[:4].t() @ y)", "x.cumsum_(1)",
    "x.lerp_(y, 0.5)", "x.addcmul_(y, y, value=0.1)", "x[1:, 1:][0] = -1",
    "x.sort(1)[0].zero_()", "x.movedim(0, 1)[0].round_()", "x.real.mul_(2)",
    "x.flip(0).zero_()", "x[:, None, 0].add_(2)", "x.detach().mul_(2)", "x.data[0] = 1",
    "x.resize_(x.shape)", "x.view(torch.int32).bitwise_and_(-2)",
)  # fmt: skip
RESULTS = (
    "x",
    "x * 2",
    "x.sum(), y",
    "x[0]",
    "x.t()",
    "x, x + 1",
    "z",
    "y + x",
    "x.view(-1)",
)


def views(d: Drawn) -> Written:
    """Writes through views, into a copy or into the argument itself."""
    lines = d.some(WRITES, 1, 4)
    if d.flag():
        lines.insert(
            0, d.pick("x = x.clone()", "x = x + 0", "x = x * 1.0", "x = x.contiguous()")
        )
    lines.insert(0, "z = torch.zeros_like(x)" if d.flag() else "z = y.clone()")
    if d.chance(0.3):
        lines.insert(d.number(1, len(lines)), "y = y + x.mean()")
    body = "x, y, i\n" + "".join(f"  {x}\n" for x in lines)
    body += f"  return {d.pick(*RESULTS)}"
    sizes = (4, 4, 5) if d.flag() else (4, 4)
    at = torch.randperm(3, generator=d.generator)[:2]
    calls: list[Any] = [((d.randn(n, 4), d.randn(n, 4), at), {}) for n in sizes]
    shapes: Any = {"x": {0: Dim.AUTO}, "y": {0: Dim.AUTO}, "i": None}
    return Written(body, calls, shapes=shapes if len(sizes) == 3 else None)


HELD = (
    ("self.register_buffer('n', torch.zeros((), dtype=torch.int64))",
     "self.n += 1; r = x + self.n"),
    ("self.register_buffer('m', torch.zeros(4))",
     "self.m.mul_(0.9).add_(x.mean(0), alpha=0.1); r = x - self.m"),
    ("self.register_buffer('k', torch.zeros(8, 4))\nself.register_buffer('at', "
     "torch.zeros(1, dtype=torch.int64))",
     "self.k[self.at + torch.arange(2)] = x[:2]; self.at += 2; r = x @ self.k.t()"),
    ("self.register_buffer('k', torch.zeros(8, 4))",
     "self.k[2:4] = x[:2]; r = self.k @ x.t()"),
    ("self.register_buffer('k', torch.zeros(8, 4), persistent=False)",
     "self.k.index_copy_(0, p, x[:2]); r = self.k.sum(0) + x"),
    ("self.register_buffer('k', torch.zeros(3, 4))",
     "self.k = torch.roll(self.k, 1, 0); self.k[0] = x[0]; r = self.k.mean(0)"),
    ("self.register_buffer('k', torch.zeros(3, 4))",
     "self.k.copy_(torch.cat([self.k[1:], x[:1]])); r = self.k.t() @ self.k"),
    ("self.register_buffer('t', torch.tensor(False))",
     "self.t.logical_not_(); r = torch.where(self.t, x, -x)"),
    ("self.register_buffer('h', torch.zeros(1, 4))\nself.c = nn.GRUCell(4, 4)",
     "self.h.copy_(self.c(x[:1], self.h)); r = x + self.h"),
    ("self.register_buffer('hist', torch.zeros(5, dtype=torch.int64))",
     "self.hist.scatter_add_(0, p, torch.ones_like(p)); r = x * self.hist.sum()"),
    ("self.register_buffer('u', F.normalize(torch.randn(4), dim=0))\nself.w = "
     "nn.Parameter(torch.randn(4, 4))",
     "self.u.copy_(F.normalize(self.w @ self.u, dim=0)); r = x @ self.w / "
     "self.u.dot(self.w @ self.u)"),
    ("self.b = nn.BatchNorm1d(4)\nself.b.train()", "r = self.b(x)"),
    ("self.b = nn.BatchNorm1d(4, momentum=None)\nself.b.train()",
     "r = self.b(x).relu()"),
    ("self.b = nn.BatchNorm1d(4, affine=False, track_running_stats=False)",
     "r = self.b(x)"),
    ("self.w = nn.Parameter(torch.randn(4), requires_grad=False)",
     "self.w.mul_(0.5); r = x * self.w"),
)  # fmt: skip


def held(d: Drawn) -> Written:
    """Buffers that count, average, keep the last rows."""
    init, line = d.pick(*HELD)
    more = d.pick("r", "r * 2", "r, x", "r.sum()")
    sizes = (3, 3, 5, 4) if d.flag() else (3, 3, 3)
    calls: list[Any] = [
        ((d.randn(n, 4), torch.randperm(5, generator=d.generator)[:2]), {})
        for n in sizes
    ]
    shapes = {"x": {0: Dim("n", min=2)}, "p": None} if len(sizes) == 4 else None
    lines = "".join(f"  {x.strip()}\n" for x in line.split(";"))
    return Written(f"x, p\n{lines}  return {more}", calls, init, shapes)


def shared(d: Drawn) -> Written:
    """Arguments that lie in one memory, one of which is changed."""
    lines = d.some((
        "x += y", "x.mul_(2)", "y[0] = x[1]", "x[1:] = y[:-1] + 1", "z = x + y",
        "y.relu_()", "x[:, 0] += y[:, 1]", "x.copy_(y * 2)", "y.add_(x.sum())",
        "x.t()[0].sub_(y[0, 0])",
    ), 1, 3)  # fmt: skip
    base = d.randn(6, 4)
    way = d.number(0, 4)
    x, y = ((base[:4], base[:4]), (base[:4], base[2:]), (base[:3], base[3:]),
            (base[::2], base[1::2]), (base[:4], base[:4].view(4, 4)))[way]  # fmt: skip
    plain = ((d.randn(*x.shape), d.randn(*y.shape)), {})
    calls: list[Any] = [plain, ((x, y), {}), plain]
    calls = calls[d.pick(0, 1) :]
    body = "".join(f"  {line}\n" for line in lines)
    given = d.pick("x", "x + y", "x, y", "y * 2", "x[0]")
    return Written(f"x, y\n{body}  return {given}", calls, whole=False)


KINDS = (views, views, held, shared)
