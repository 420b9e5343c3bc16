"""Open sizes that are computed of one another, and forms that torch infers."""

from __future__ import annotations

from typing import Any

from torch.export import Dim  # pyright: ignore[reportMissingImports]

from tests.fuzz.written.draw import Drawn, Written

STEPS = (
    "x.view(-1, 2, 4).sum(1)", "x.reshape(x.shape[0] // 2, 8)", "x[::2] + x[1::2]",
    "x.chunk(2)[0]", "x.unfold(0, 2, 2).sum(-1)", "x[: x.shape[0] // 2] * 2",
    "F.avg_pool1d(x.t()[None], 2)[0].t()", "x.unflatten(0, (-1, 2)).amax(1)",
    "torch.stack(x.split(x.shape[0] // 2)).mean(0)", "x.view(2, -1, 4)[1]",
)  # fmt: skip
AFTER = (
    "y + 1", "y[1:] - y[:-1]", "F.pad(y, (0, 0, 1, 0))", "y @ y.t()", "y.flatten()",
    "torch.cat([y, y])", "y.cumsum(0)", "y.repeat(2, 1)", "y.mean(0)", "y * y.shape[0]",
    "torch.arange(y.shape[0])[:, None] + y", "y.expand(2, -1, -1)", "y.roll(1, 0)",
    "y.repeat_interleave(2, 0)",
)  # fmt: skip


def derived(d: Drawn) -> Written:
    """2*d, d + 1, 2*d + 1: sizes of one argument of those of another."""
    n = Dim("n", min=1, max=64) if d.flag() else Dim("n")
    name, size, step = d.pick(
        ("2*d", lambda n: 2 * n, d.pick(*STEPS)),
        ("d+1", lambda n: n + 1, d.pick("x[1:] + x[:-1]", "x[:-1]", "x.diff(dim=0)")),
        ("2*d+1", lambda n: 2 * n + 1, d.pick("x[1::2]", "x[:-1][::2]",
         "F.max_pool1d(x.t()[None], 3, 2)[0].t()")),
        ("d-1", lambda n: n - 1, d.pick("F.pad(x, (0, 0, 1, 0))",
         "torch.cat([x, x[:1]])")),
        ("4*d", lambda n: 4 * n, d.pick("x.view(-1, 4, 4).sum(1)", "x[::4]",
         "F.avg_pool1d(x.t()[None], 4)[0].t()")),
    )  # fmt: skip
    if name == "d-1":
        n = Dim("n", min=3, max=64)
    made = {"2*d": 2 * n, "d+1": n + 1, "2*d+1": 2 * n + 1, "d-1": n - 1,
            "4*d": 4 * n}[name]  # fmt: skip
    alone, order = d.chance(0.3), d.flag()
    calls: list[Any] = []
    for k in (4, 3, 6):
        x, z = d.randn(size(k), 4), d.randn(k, 4)
        calls.append(((x,) if alone else (x, z) if order else (z, x), {}))
    names = "x" if alone else "x, z" if order else "z, x"
    shapes: Any = {"x": {0: made}} if alone else {"x": {0: made}, "z": {0: n}}
    after = d.pick(*AFTER)
    join = "" if alone else "\n  y = y + z"
    return Written(f"{names}\n  y = {step}{join}\n  return {after}, x.shape[0]", calls,
                   shapes=shapes)  # fmt: skip


def inferred(d: Drawn) -> Written:
    """Dim.AUTO and Dim.DYNAMIC: torch finds which sizes are equal, or of one number."""
    way = d.pick(Dim.AUTO, Dim.DYNAMIC)
    step = d.pick(*STEPS, "x @ x.t()", "x.view(x.shape[0], 2, 2).flatten(1)",
                  "x.sum(0, keepdim=True).expand(x.shape[0], -1)",
                  "x[:, None] - x[None]", "torch.tril(x @ x.t())",
                  "F.interpolate(x[None, None], scale_factor=2.0)[0, 0]",
                  "x.new_zeros(x.shape[0] + 2, 3).sum(1)", "torch.eye(x.shape[0])",
                  "F.interpolate(x[None], size=x.shape[0])[0]",
                  "torch.linspace(0, 1, x.shape[0])[:, None] * x",
                  "x.reshape(x.shape[0] * 2, -1)",
                  "x.flatten()[: x.shape[0] * 3]")  # fmt: skip
    sizes = (4, 6, 2, 8)
    calls: list[Any] = [((d.randn(n, 4), d.randn(n, 1)), {}) for n in sizes]
    body = f"x, z\n  y = {step}\n  return {d.pick('y', 'y * 2', 'y, z.sum()')}"
    return Written(body, calls, shapes={"x": {0: way}, "z": {0: way}})


def numbers_of_sizes(d: Drawn) -> Written:
    """Integers as arguments that are open, and numbers that data decides."""
    step = d.pick(
        "x[:k]", "x * k", "x.roll(k, 0)", "torch.cat([x] * 2)[k:]", "x[k]",
        "x.narrow(0, k, 1)", "torch.arange(k).float()", "x.new_ones(k, 2)", "x + k / 2",
        "x ** k", "F.pad(x, (0, 0, k, 0))", "x.repeat(k, 1)", "torch.eye(k)",
        "x.sum() / k", "x.select(0, k - 1)", "x // k", "x.view(-1)[k :: k]",
        "x.topk(k, 0)[0]", "math.sqrt(k) * x", "x[:k] @ x[:k].t()",
    )  # fmt: skip
    calls: list[Any] = [((d.randn(6, 4), k), {}) for k in (3, 2, 4)]
    shapes = {"x": None, "k": d.pick(Dim.DYNAMIC, Dim.AUTO)}
    return Written(f"x, k\n  return {step}, k", calls, shapes=shapes)


def of_data(d: Drawn) -> Written:
    """Sizes of data: nonzero, unique, masks, repeats."""
    step = d.pick(
        "x[x > 0]", "x.nonzero()", "torch.masked_select(x, x < 0.5)", "x[i > 1]",
        "torch.unique(i)", "torch.where(x > 0)[0]", "x.repeat_interleave(i, 0)",
        "torch.unique(i, return_inverse=True, return_counts=True)",
        "x[x[:, 0] > 0].sum(0)", "torch.nonzero(i)", "F.one_hot(i, 5)",
        "x[i.argsort()]", "torch.bincount(i, minlength=5)",
        "torch.unique_consecutive(i)", "torch.argwhere(x > 0).float().mean()",
        "x[(i > 0).nonzero().squeeze(1)] * 2", "(x[i > 0] @ self.w).softmax(-1)",
        "torch.cat([x[i > 1], x[i <= 1]])", "torch.arange(int(i.max()) + 1)",
    )  # fmt: skip
    calls: list[Any] = [((d.randn(n, 4), d.ints(0, 4, n)), {}) for n in (5, 3, 7)]
    shapes = {"x": {0: Dim("n")}, "i": {0: Dim("n")}} if d.flag() else None
    return Written(f"x, i\n  return {step}", calls if shapes else calls[:1],
                   "self.w = nn.Parameter(torch.randn(4, 3))", shapes)  # fmt: skip


KINDS = (derived, derived, inferred, numbers_of_sizes, of_data)
