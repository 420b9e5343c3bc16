"""Element types that meet, autocast, functions of torch.func, numbers in 8 bits."""

from __future__ import annotations

from typing import Any

import torch  # pyright: ignore[reportMissingImports]
from torch.export import Dim  # pyright: ignore[reportMissingImports]

from tests.fuzz.written.draw import INTEGERS, Drawn, Written

LAYERS = (
    ("nn.Linear(8, 8)", (3, 8)), ("nn.Conv1d(4, 4, 3, padding=1)", (2, 4, 8)),
    ("nn.LayerNorm(8)", (3, 8)), ("nn.GroupNorm(2, 4)", (2, 4, 8)),
    ("nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8))", (2, 3, 8)),
    ("nn.RMSNorm(8)", (3, 8)), ("nn.BatchNorm1d(4)", (3, 4, 8)),
    ("nn.Conv2d(2, 4, 3, bias=False)", (1, 2, 6, 6)),
    ("nn.ConvTranspose1d(4, 2, 3, 2)", (1, 4, 5)), ("nn.Bilinear(8, 8, 3)", (3, 8)),
    ("nn.Softmax(-1)", (3, 8)), ("nn.InstanceNorm1d(4, affine=True)", (2, 4, 8)),
    ("nn.LocalResponseNorm(2)", (2, 4, 8)), ("nn.PReLU()", (3, 8)),
    ("nn.CosineSimilarity(0)", (3, 8)), ("nn.AdaptiveAvgPool1d(3)", (2, 4, 8)),
    ("nn.Upsample(scale_factor=2, mode='linear')", (2, 4, 8)),
)  # fmt: skip


def narrow(d: Drawn) -> Written:
    """Layers in half the bits, or with casts by hand."""
    dtype = d.pick(torch.bfloat16, torch.float16)
    layer, shape = d.pick(*LAYERS)
    call = "self.l(x, x)" if "Bilinear" in layer or "Cosine" in layer else "self.l(x)"
    after = d.pick(
        "y",
        "y.float().softmax(-1).to(x.dtype)",
        "y + 1",
        "y * torch.ones(1)",
        "y.float().mean()",
        "y.sum(0)",
        "y.to(torch.float64)",
        "y > 0.5",
        "y @ y.mT if y.dim() > 1 else y",
        "y.var(-1)",
        "y.norm(dim=-1)",
        "y.cumsum(-1)",
    )
    calls: list[Any] = [
        ((d.randn(*shape, dtype=dtype),), {}),
        ((d.randn(*shape, dtype=dtype) * 2,), {}),
    ]
    return Written(
        f"x\n  y = {call}\n  return {after}", calls, f"self.l = {layer}", dtype=dtype
    )


def autocast(d: Drawn) -> Written:
    layer, shape = d.pick(*LAYERS)
    call = "self.l(x, x)" if "Bilinear" in layer or "Cosine" in layer else "self.l(x)"
    kind = d.pick("torch.bfloat16", "torch.bfloat16", "torch.float16")
    after = d.pick(
        "y",
        "y.float() + x.sum()",
        "torch.cat([y, y.float()], -1)",
        "y @ y.mT if y.dim() > 1 else y",
        "torch.einsum('...i,...i->...', y, y)",
        "y.softmax(-1)",
        "F.mse_loss(y, y * 2)",
        "y.abs().sum(), y.norm()",
        "torch.stack([y, y.to(torch.float32)])",
    )
    inner = (
        "\n    with torch.autocast('cpu', enabled=False):\n      y = y.float() @"
        " y.float().mT if y.dim() > 1 else y.float()"
        if d.chance(0.3)
        else ""
    )
    calls: list[Any] = [((d.randn(*shape),), {}), ((d.randn(*shape),), {})]
    return Written(
        f"x\n  with torch.autocast('cpu', dtype={kind}):\n    y = {call}{inner}\n    r"
        f" = {after}\n  return r, y",
        calls,
        f"self.l = {layer}",
    )


PAIRS = (
    "{0} + {1}", "{0} * {1}", "{0} - {1}", "{0} / {1}", "{0} // {1}", "{0} % {1}",
    "{0} ** {1}", "{0} > {1}", "torch.where({0} > 0, {0}, {1})",
    "torch.maximum({0}, {1})", "torch.cat([{0}, {1}])", "torch.stack([{0}, {1}])",
    "{0} & {1}", "{0} ^ {1}", "{0} << 1", "{0} >> 1", "~{0}",
    "torch.add({0}, {1}, alpha=2)", "{0}.mean(dtype=torch.float32)", "{0}.sum(dim=0)",
    "{0}.prod(0)", "{0}.cumsum(0)", "-{0}", "{0}.abs()", "torch.fmod({0}, {1})",
    "torch.div({0}, {1}, rounding_mode='trunc')",
    "torch.div({0}, {1}, rounding_mode='floor')", "{0} * 2.5", "{0} + True", "2 - {0}",
    "1 / {0}", "{0}.clamp(1, 3)", "{0} @ {1}.t()", "{0}.to({1}.dtype)",
    "torch.sqrt({0})", "{0} == {1}", "torch.floor_divide({0}, {1})",
    "torch.result_type({0}, {1}) == torch.int64", "{0}.argmax(1)", "{0}.sort(1)[0]",
    "torch.gcd({0}, {1})", "torch.addcmul({0}, {0}, {1})",
    "{0}.float().round().to(torch.int8)", "({0} * 100).to(torch.uint8)", "{0}.any()",
    "{0}.all(1)", "{0}.max()", "{0}.unique()", "{0}.logical_xor({1})",
    "torch.bitwise_left_shift({0}, 2)", "{0}.sum(dtype=torch.int8)",
    "{0}.double().mean()", "torch.clamp({0}, min={1})", "{0}.sign()",
    "torch.isclose({0}, {1})",
)  # fmt: skip


def promoted(d: Drawn) -> Written:
    """Pairs of element types; numbers of Python beside them."""
    every = (
        *INTEGERS,
        torch.bool,
        torch.float32,
        torch.float16,
        torch.bfloat16,
        torch.float64,
    )
    one, two = (
        d.pick(*INTEGERS, torch.bool) if d.flag() else d.pick(*every),
        d.pick(*every),
    )

    def made(dtype: Any, *shape: int) -> Any:
        if dtype == torch.bool:
            return d.bools(*shape)
        if dtype.is_floating_point:
            return d.randn(*shape, dtype=dtype)
        return d.ints(1 if dtype == torch.uint8 else -7, 8, *shape, dtype=dtype)

    steps = [
        x.format(*d.pick(("x", "y"), ("y", "x"), ("x", "s"), ("x", "x")))
        for x in d.some(PAIRS, 1, 3)
    ]
    calls: list[Any] = [
        ((made(one, 3, 4), made(two, 3, 4), made(two)), {}) for _ in range(2)
    ]
    return Written(f"x, y, s\n  return {', '.join(steps)}", calls, dtype=None)


FUNCTIONS = (
    "torch.vmap(lambda a: a @ self.w)(x)",
    "torch.vmap(torch.dot, in_dims=(0, 0))(x, x)",
    "torch.vmap(lambda a: (a * a).sum(), in_dims=1)(x)",
    "torch.vmap(torch.vmap(lambda a: a + 1))(x)",
    "torch.vmap(lambda a, b: a * b, in_dims=(0, None))(x, self.w[0])",
    "torch.vmap(self.l)(x)", "torch.vmap(lambda a: F.softmax(a, 0), out_dims=1)(x)",
    "torch.func.functional_call(self.l, {'weight': self.w, 'bias': self.w[0]}, (x,))",
    "torch.func.jvp(torch.sin, (x,), (x,))",
    "torch.func.jvp(lambda a: (a @ self.w).tanh(), (x,), (x * 2,))[1]",
    "torch.func.grad(lambda a: (a ** 2).sum())(x)",
    "torch.func.vjp(torch.cos, x)[1](x)[0]",
    "torch.func.jacrev(lambda a: a.sin())(x[0])",
    "torch.func.jacfwd(lambda a: a * a)(x[0])",
    "torch.vmap(torch.func.grad(lambda a: (a.sin() @ self.w).sum()))(x)",
    "torch.func.hessian(lambda a: (a ** 3).sum())(x[0])",
    "torch.vmap(lambda a: torch.where(a > 0, a, -a))(x)",
    "torch.vmap(lambda a: a.sort()[0])(x)",
    "torch.vmap(lambda a, i: a[i], in_dims=(0, 0))(x, torch.zeros(x.shape[0], "
    "dtype=torch.int64))",
)  # fmt: skip


def functional(d: Drawn) -> Written:
    calls: list[Any] = [((d.randn(n, 4),), {}) for n in (3, 5)]
    shapes = {"x": {0: Dim("n")}} if d.flag() else None
    return Written(
        f"x\n  return {d.pick(*FUNCTIONS)}",
        calls if shapes else calls[:1],
        "self.l = nn.Linear(4, 4)\nself.w = nn.Parameter(torch.randn(4, 4))",
        shapes,
    )


def gradients(d: Drawn) -> Written:
    """no_grad, inference_mode and grad mode as regions, detach, checkpoint."""
    body = d.pick(
        "with torch.no_grad():\n    y = self.l(x)\n  y = y * 2",
        "with torch.inference_mode():\n    y = self.l(x)\n  y = y.relu()",
        "y = self.l(x).detach() + x",
        "with torch.set_grad_enabled(False):\n    y = self.l(x)\n"
        "    with torch.enable_grad():\n      z = y.sin()\n  y = y + z",
        "y = torch.utils.checkpoint.checkpoint(self.l, x, use_reentrant=False)",
        "y = self.f(x)", "y = x.requires_grad_(False) * 2",
        "y = self.l(x); y.requires_grad",
    )  # fmt: skip
    init = "self.l = nn.Linear(4, 4)\nself.f = torch.no_grad()(lambda v: self.l(v) + 1)"
    calls: list[Any] = [((d.randn(n, 4),), {}) for n in (3, 3)]
    return Written(
        f"x\n  {body}\n  return y",
        calls,
        init,
        head="import torch.utils.checkpoint\n\n",
    )


def broken(d: Drawn) -> Written:
    """What Dynamo leaves to Python between graphs, and shapes and types that change."""
    line = d.pick(
        "print(end='')",
        "torch._dynamo.graph_break()",
        "n = float(y.sum().item()); y = y * (1 if n > 0 else 2)",
        "import numpy as np; y = y + torch.from_numpy(np.ones(4, np.float32))",
        "y = y if y.sum() > 0 else -y",
        "s = str(y.shape); y = y + len(s)",
        "t = y.tolist(); y = y + len(t)",
        "y = y + torch.as_tensor(y.detach().numpy().mean())",
        "y.data_ptr()",
        "self.n = getattr(self, 'n', 0) + 1; y = y * self.n",
        "y = y + (hash('a') * 0)",
    )
    body = (
        f"y = self.l(x.to(self.l.weight.dtype))\n  {line}\n  y = y.relu() @"
        " self.l.weight"
    )
    calls: list[Any] = [
        ((x,), {})
        for x in (
            d.randn(3, 4),
            d.randn(5, 4),
            d.randn(4, 5).t().contiguous()[:, :4],
            d.randn(3, 4, dtype=torch.float64),
            d.randn(2, 3, 4),
            d.ints(0, 5, 3, 4),
            d.randn(8, 8)[::2, ::2],
        )
    ]
    return Written(
        f"x\n  {body}\n  return y", calls, "self.l = nn.Linear(4, 4)", whole=False
    )


KINDS = (narrow, autocast, promoted, promoted, functional, gradients, broken)
