"""torch's own conditions and loops, one in the other, with what they read around."""

from __future__ import annotations

from typing import Any

from torch.export import Dim  # pyright: ignore[reportMissingImports]

from tests.fuzz.written.draw import Drawn, Written

HEAD = """from torch._higher_order_ops.map import map as torch_map
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop
from torch._higher_order_ops.associative_scan import associative_scan


"""
BODIES = ("x.sin() + {0}", "x * 2 - {0}", "x.relu() * {0}", "(x @ self.w) + {0}",
          "x.cumsum(0) + {0}", "x.softmax(-1) * {0}", "x.flip(0) + {0}",
          "self.l(x) + {0}", "x - x.mean() + {0}")  # fmt: skip
INIT = """self.l = nn.Linear(4, 4)
self.w = nn.Parameter(torch.randn(4, 4) * 0.3)
self.register_buffer('b', torch.randn(4))"""
TESTS = ("x.sum() > 0", "x[0, 0] > 0", "flag", "(x > 0).any()", "x.shape[0] > 3",
         "x.abs().max() < 2")  # fmt: skip


def calls_of(d: Drawn) -> list[Any]:
    return [((d.randn(n, 4), d.bools(1)[0]), {}) for n in (3, 3, 5, 2)]


SHAPES = {"x": {0: Dim("n")}, "flag": None}


def written(d: Drawn, body: str) -> Written:
    open_shape, calls = d.flag(), calls_of(d)
    calls = calls if open_shape else calls[:2]
    return Written(
        f"x, flag\n{body}", calls, INIT, SHAPES if open_shape else None, HEAD
    )


def conditions(d: Drawn) -> Written:
    one, two, three = (d.pick(*BODIES).format(d.pick("1.5", "self.b", "y.mean()"))
                       for _ in range(3))  # fmt: skip
    test, again = d.pick(*TESTS), d.pick(*TESTS)
    give = d.pick("{0}", "({0}, x.sum())", "({0}, x + 1)", "{{'r': {0}}}")
    inner = give.format(two)
    if d.chance(0.4):
        again = again.replace("flag", "y.sum() > 0")
        body = f"""  y = x * 0.5
  def inner_t(x, y): return {give.format(three)}
  def inner_f(x, y): return {give.format(one)}
  def yes(x, y): return torch.cond({again}, inner_t, inner_f, (x, y))
  def no(x, y): return {inner}
  return torch.cond({test}, yes, no, (x, y))"""
    else:
        body = f"""  y = x * 0.5
  def yes(x, y): return {give.format(one)}
  def no(x, y): return {inner}
  r = torch.cond({test}, yes, no, (x, y))
  return r, y"""
    return written(d, body)


def loops(d: Drawn) -> Written:
    step = d.pick(*BODIES).format(d.pick("1.0", "self.b", "i"))
    limit, scale = d.number(0, 5), d.pick("0.5", "0.25")
    body = d.pick(
        f"""  def go(i, x): return (i < {limit}) & (x.abs().sum() < 1000)
  def do(i, x): return i + 1, ({step}) * {scale}
  return while_loop(go, do, (torch.tensor(0), x))""",
        """  def go(i, x, acc): return i < x.shape[0]
  def do(i, x, acc): return i + 1, x * 0.9, acc + x[0] * i
  return while_loop(go, do, (torch.zeros((), dtype=torch.int64), x, torch.zeros(4)))""",
        f"""  def go(i, x): return i < {limit}
  def no(x): return x * {scale} + 1
  def do(i, x): return i + 1, torch.cond(x.sum() > 0, lambda x: x - 1.0, no, (x,))
  return while_loop(go, do, (torch.tensor(0), x))""",
        f"""  n = x.abs().sum().to(torch.int64) % 4
  def go(i, x): return i < n
  def do(i, x): return i + 1, ({step}) * {scale}
  i, y = while_loop(go, do, (torch.tensor(0), x))
  return y, i + n""",
    )  # fmt: skip
    return written(d, body)


def maps(d: Drawn) -> Written:
    step = d.pick("r * 2 + b", "(r[None] @ self.w)[0] + b", "r.softmax(0)", "self.l(r)",
                  "(r, r.sum())", "{'a': r + b, 'b': r.sin()}")  # fmt: skip
    body = f"""  def each(r, b): return {step}
  return torch_map(each, x, self.b)"""
    return written(d, body)


def scans(d: Drawn) -> Written:
    way = d.number(0, 3)
    reverse, dim = d.flag(), d.pick(0, 0, 1)
    if way == 0:
        init = "torch.zeros(4)" if dim == 0 else "torch.zeros(x.shape[0])"
        step = d.pick(
            "c + r, c * 1.0", "c * 0.5 + r, (c + r).sin()", "c.maximum(r), r - c"
        )
        body = f"""  def step(c, r):
    n, o = {step}
    return n, o
  return scan(step, {init}, x, dim={dim}, reverse={reverse})"""
    elif way == 1:
        body = f"""  def step(c, r):
    a, b = c
    n = (a + r[0], b * 0.5 + r[1])
    return n, (n[0] * n[1], a.sum())
  start = torch.zeros(4), torch.ones(4)
  return scan(step, start, (x, x * 2), dim=0, reverse={reverse})"""
    elif way == 2:
        op = d.pick("a + b", "a * b", "torch.maximum(a, b)")
        body = f"""  def join(a, b): return {op}
  way = {{'reverse': {reverse}, 'combine_mode': 'generic'}}
  return associative_scan(join, x, {dim}, **way)"""
    else:
        body = f"""  def step(h, r):
    h = torch.tanh(r @ self.w + h)
    return h, h.clone()
  h, ys = scan(step, torch.zeros(4), x, dim=0, reverse={reverse})
  return ys, h"""
    return written(d, body)


KINDS = (conditions, conditions, loops, maps, scans)
