"""A random module of torch, as Python's text: step after step, as torch takes them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch  # pyright: ignore[reportMissingImports]
from torch import nn  # pyright: ignore[reportMissingImports]

Step = Callable[["Draw"], str]
HEAD = """import torch
import torch.nn.functional as F
from torch import nn


class Drawn(nn.Module):
    def __init__(self):
        super().__init__()
"""
LARGEST, MOST = 300.0, 4000  # numbers that are of use, and how many of them
WIDE_SHARE = 0.03  # of steps whose result may be any number, or none
FIELD = re.compile(r"\{(\w+)\}")
KINDS = {"f": "float", "i": "int", "b": "bool", "n": "number", "t": ""}


class Misfit(Exception):
    """Nothing that is there fits a step, or torch does not take it."""


class Draw:
    """Lines of a module so far, and what each variable is in each call.

    Every line is run when it is drawn: one that torch refuses for the shapes and types
    of any call is none of the module's.
    """

    def __init__(
        self, rng: np.random.Generator, calls: Sequence[Sequence[Any]],
        dtype: Any, *, autocast: bool,
    ) -> None:  # fmt: skip
        self.rng, self.dtype, self.autocast = rng, dtype, autocast
        self.owner = nn.Module()
        self.args = [f"x{i}" for i in range(len(calls[0]))]
        shared = {"torch": torch, "F": nn.functional, "nn": nn, "self": self.owner}
        self.calls = [
            {**shared, **dict(zip(self.args, (x.clone() for x in call), strict=True))}
            for call in calls
        ]
        self.init, self.body = list[str](), list[str]()
        self.pool, self.count = list(self.args), 0
        self.first = ""  # the variable that a step began with

    # ---- choices

    def pick(self, choices: Sequence[Any]) -> Any:
        return choices[int(self.rng.integers(len(choices)))]

    def chance(self, share: float) -> bool:
        return bool(self.rng.random() < share)

    def number(self, low: int, high: int) -> int:
        return int(self.rng.integers(low, high + 1))

    def flag(self) -> bool:
        return self.chance(0.5)

    # ---- variables

    def tensor(self, name: str) -> Any:
        return self.calls[0][name]

    def rank(self, name: str) -> int:
        return self.tensor(name).dim()

    def width(self, name: str, axis: int) -> int:
        """Of an axis that has one size in all calls."""
        sizes = {int(call[name].shape[axis]) for call in self.calls}
        if len(sizes) != 1 or not min(sizes):
            raise Misfit
        return sizes.pop()

    def var(self, kind: str = "", least: int = 0, most: int = 5) -> str:
        """A variable, the later ones more often; the first one of a step is kept."""
        fits = [n for n in self.pool if is_kind(self.tensor(n), kind)
                and least <= self.rank(n) <= most]  # fmt: skip
        if not fits:
            raise Misfit
        back = min(int(self.rng.geometric(0.4)), len(fits))
        self.first = self.first or fits[-back]
        return fits[-back]

    def beside(self, kind: str = "", same: bool = False) -> str:
        """What broadcasts to the first variable, or has its shape."""
        if not self.first:
            raise Misfit
        shape = self.tensor(self.first).shape
        fits = [n for n in self.pool if is_kind(self.tensor(n), kind)
                and fits_beside(self.tensor(n).shape, shape, same)]  # fmt: skip
        if not same and kind != "bool" and self.chance(0.3):
            return self.parameter(shape)
        if not fits:
            raise Misfit
        return self.pick(fits)

    def parameter(self, shape: Sequence[int]) -> str:
        """Of the last axes that are of one size in all calls, some of them 1."""
        kept: list[int] = []
        for axis in range(1, min(len(shape), 3) + 1):
            sizes = {tuple(call[self.first].shape)[-axis] for call in self.calls}
            kept.insert(0, sizes.pop() if len(sizes) == 1 and self.flag() else 1)
        return self.held(f"nn.Parameter(torch.randn({tuple(kept)}))")

    def axis(self) -> int:
        rank = self.rank(self.first)
        return self.number(-max(rank, 1), max(rank, 1) - 1)

    # ---- lines

    def held(self, text: str, buffer: bool = False) -> str:
        """A layer, a parameter or a buffer of the module."""
        name = f"m{len(self.init)}"
        line = f"self.{name} = {text}"
        if buffer:
            line = f'self.register_buffer("{name}", {text})'
        scope = {"torch": torch, "nn": nn, "self": self.owner}
        if hasattr(self.owner, name):  # of a step that was given up
            delattr(self.owner, name)
        try:
            exec(line, scope)
        except Exception as error:  # whatever torch refuses it with
            raise Misfit from error
        self.owner.to(self.dtype).eval()
        self.init.append(line)
        return f"self.{name}"

    def run(self, line: str) -> None:
        """A line in all calls.  Raises Misfit where torch does not take it."""
        for call in self.calls:
            try:
                with (
                    torch.no_grad(),
                    torch.autocast("cpu", torch.bfloat16, enabled=self.autocast),
                ):
                    exec(line, call)
            except Exception as error:  # whatever torch refuses it with
                raise Misfit from error

    def let(self, text: str) -> str:
        """A new variable; of several results one each."""
        name = f"v{self.count}"
        self.run(f"{name} = {text}")
        wide = self.chance(WIDE_SHARE)
        if not all(is_tame(call[name], wide) for call in self.calls):
            raise Misfit
        self.count += 1
        self.body.append(f"{name} = {text}")
        value: Any = self.calls[0][name]
        if isinstance(value, torch.Tensor):
            self.pool.append(name)
        else:
            for place in range(len(value)):
                self.let(f"{name}[{place}]")
        return name

    def do(self, line: str) -> None:
        """A line that changes something."""
        self.run(line)
        named = [n for n in self.pool if re.search(rf"\b{n}\b", line)]
        if not all(is_tame(c[n], False) for c in self.calls for n in named):
            raise Misfit
        self.body.append(line)

    def filled(self, template: str) -> str:
        return FIELD.sub(lambda found: self.field(found[1]), template)

    def field(self, word: str) -> str:
        """What stands for a word of a template."""
        kind, rank = KINDS.get(word[0]), word[1:]
        if kind is not None and (not rank or rank.isdigit()):
            return self.var(kind, int(rank or 0))
        if word in ("bc", "bf", "bi", "bb"):
            return self.beside({"f": "float", "i": "int", "b": "bool"}.get(word[1], ""))
        if word in ("same", "samef", "samei", "sameb"):
            return self.beside(KINDS.get(word[4:], ""), same=True)
        if word == "d":
            return str(self.axis())
        if word == "x":
            return str(self.pick([-2.5, -1.0, -0.5, 0.0, 0.3, 0.5, 1.0, 2.0]))
        if word == "k":
            return str(self.number(1, 3))
        if word == "z":
            return str(self.number(-3, 3))
        return str(self.flag())

    # ---- the module

    def step(self, table: Sequence[str | Step]) -> bool:
        """One more step, if what is drawn fits."""
        self.first = ""
        before = [len(x) for x in (self.init, self.body, self.pool)]
        one = self.pick(table)
        try:
            text = self.filled(one) if isinstance(one, str) else one(self)
            self.do(text[1:]) if text.startswith("!") else self.let(text)
        except Misfit:
            for lines, count in zip(
                (self.init, self.body, self.pool), before, strict=True
            ):
                del lines[count:]
            return False
        return True

    def source(self, results: str) -> str:
        inside = list(self.body)
        if self.autocast:
            begin = 'with torch.autocast("cpu", dtype=torch.bfloat16):'
            inside = [begin, *(f"    {line}" for line in inside or ["pass"])]
        text = "".join(f"        {line}\n" for line in self.init)
        text += f"\n    def forward(self, {', '.join(self.args)}):\n"
        text += "".join(f"        {line}\n" for line in inside)
        return f"{HEAD}{text}        return {results}\n"


def is_kind(value: Any, kind: str) -> bool:
    if not isinstance(value, torch.Tensor):
        return False
    if kind == "float":
        return value.is_floating_point()
    if kind == "bool":
        return value.dtype == torch.bool
    if kind == "int":
        return value.dtype != torch.bool and not value.is_floating_point()
    return kind != "number" or value.dtype != torch.bool


def fits_beside(shape: Sequence[int], wanted: Sequence[int], same: bool) -> bool:
    if same:
        return tuple(shape) == tuple(wanted)
    pairs = zip(reversed(shape), reversed(wanted), strict=False)
    return all(a == b or a == 1 for a, b in pairs) and len(shape) <= len(wanted)


def is_tame(value: Any, wide: bool) -> bool:
    """Whether a result is of use; wide: whatever numbers it has."""
    if isinstance(value, tuple | list):
        return 0 < len(value) < 12 and all(is_tame(x, wide) for x in value)
    if not isinstance(value, torch.Tensor) or value.is_complex():
        return False
    if value.layout != torch.strided or value.dim() > 5 or value.numel() > MOST:
        return False
    if wide or not value.numel() or value.dtype == torch.bool:
        return True
    large = value.double().abs().max()
    return bool(large <= (LARGEST if value.is_floating_point() else 2**40))
