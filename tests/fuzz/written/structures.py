"""Arguments and results in dicts, tuples, classes; by name, absent, plain numbers."""

from __future__ import annotations

from typing import Any

from torch.export import Dim  # pyright: ignore[reportMissingImports]

from tests.fuzz.written.draw import Drawn, Written

CLASSES = """
@dataclasses.dataclass
class Pair:
    first: torch.Tensor
    second: torch.Tensor

torch.export.register_dataclass(Pair)


class Named(NamedTuple):
    a: Any
    b: Any


"""
RESULTS = (
    "Pair({0}, {1})", "Named({0}, {1})", "{{'a': {0}, 'b': [{1}, {0}]}}",
    "({0}, None, {1})", "[{0}, ({1}, {{'k': {0}}})]", "Named(a={0}, b=({1}, 3))",
    "{{'x': {0}, 'n': {0}.shape[0], 'y': {1}}}", "Pair(first={0}, second={1}).second",
    "{{'a': {0}, 'again': {0}, 'flag': True, 'why': 'text', 'x': 1.5}}",
)  # fmt: skip
STEPS = ("{0} * 2 + {1}", "torch.cat([{0}, {1}], -1)", "{0}.transpose(-1, -2) @ {1}",
         "torch.stack([{0}, {1}]).sum(0)", "torch.where({0} > 0, {0}, {1})",
         "{0}.softmax(-1) - {1}.mean(0, keepdim=True)")  # fmt: skip


def nested(d: Drawn) -> Written:
    """Tensors that lie in a structure, or several, some by name."""
    open_shape = d.flag()
    sizes = (4, 3, 7) if open_shape else (4, 4)
    ways = {
        "pair": "p = pair['a']; q = pair['b']",
        "deep": "p = deep['x'][0]; q = deep['x'][1]['y']",
        "both": "p, q = both",
        "record": "record = Pair(*record); p, q = record.first, record.second",
    }
    name = d.pick(*ways)
    by_name = d.flag()
    calls: list[Any] = []
    for n in sizes:
        a, b = d.randn(n, 4), d.randn(n, 4)
        given = {"pair": {"a": a, "b": b}, "deep": {"x": [a, {"y": b}]},
                 "both": (a, b), "record": (a, b)}[name]  # fmt: skip
        calls.append(((), {name: given}) if by_name else ((given,), {}))
    one = {0: Dim("n")} if open_shape else None
    shape: Any = {"pair": {"a": one, "b": one}, "deep": {"x": [one, {"y": one}]},
                  "both": (one, one), "record": (one, one)}[name]  # fmt: skip
    step, result = d.pick(*STEPS), d.pick(*RESULTS)
    body = f"{name}\n  {ways[name]}\n  r = {step.format('p', 'q')}\n  return "
    body += result.format("r", d.pick("p * q", "q - 1", "p.sum()"))
    shapes = {name: shape} if open_shape else None
    return Written(body, calls, shapes=shapes, head=CLASSES)


def scalars(d: Drawn) -> Written:
    """Plain numbers, truth values, words and None beside tensors."""
    dtype = d.float_type()
    x = d.randn(3, 5, dtype=dtype)
    k, f, flag = d.number(1, 3), d.pick(0.5, 2.0, -1.5), d.flag()
    lines = d.some((
        "x = x * f + k", "x = x.roll(k, -1)", "x = x[:, :k] if flag else x[:, k:]",
        "x = x if mask is None else x.masked_fill(mask, f)", "x = x ** k",
        "x = torch.full_like(x, f) + x", "x = x.clamp(-f * f, k)",
        "x = F.pad(x, (k, 0), mode=how, **({'value': f} if how == 'constant' else {}))",
        "x = torch.cat([x] * k, 0)", "x = torch.add(x, x, alpha=k)",
        "x = x + torch.arange(k).sum() * f", "x = x.new_full((x.shape[-1],), f) + x",
        "x = torch.addcmul(x, x, x, value=f)", "x = x // f", "x = x % k",
    ), 2, 5)  # fmt: skip
    forward = "x, k, f, flag, mask=None, how='constant'\n"
    forward += "".join(f"  {line}\n" for line in lines)
    forward += d.pick(
        "  return x", "  return x, k, flag, None", "  return {'x': x, 'f': f}"
    )
    named: dict[str, Any] = {}
    if d.flag():
        named["mask"] = d.bools(1) if d.flag() else None
    if d.flag():
        named["how"] = "constant"
    calls = [((x, k, f, flag), dict(named))]
    calls.append(((d.randn(3, 5, dtype=dtype), k, f, flag), dict(named)))
    return Written(forward, calls, dtype=dtype)


def keywords(d: Drawn) -> Written:
    """Keyword-only arguments, *args and **kwargs, in another order at the call."""
    head, body = d.pick(
        ("*xs", "y = sum(xs)"),
        ("x, *, scale, bias=None",
         "y = x * scale; y = y if bias is None else y + bias"),
        ("x, **more", "y = x\n  for n in sorted(more):\n    y = y + more[n] * len(n)"),
        ("x, *rest, gain=2.0", "y = torch.cat([x, *rest], -1) * gain"),
    )  # fmt: skip
    calls: list[Any] = []
    for _ in range(2):
        a, b, c = (d.randn(2, 3) for _ in range(3))
        calls.append({
            "*xs": ((a, b, c), {}),
            "x, *, scale, bias=None": ((a,), {"bias": b, "scale": c}),
            "x, **more": ((a,), {"zz": b, "a": c}),
            "x, *rest, gain=2.0": ((a, b, c), {}),
        }[head])  # fmt: skip
    return Written(f"{head}\n  {body}\n  return y, y.sum()", calls)


KINDS = (nested, scalars, keywords)
