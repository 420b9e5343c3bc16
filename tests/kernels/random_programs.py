"""Programs made at random, whose numbers are small integers: any way must be exact.

Values are f32 but hold integers of at most LIMIT, cut back to that behind every step
that could grow them, so that sums and products are exact in any order and a result is
right or wrong, without a bound between.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nanoloom.linalg.builder.builder import Builder
from nanoloom.linalg.builder.tensor import Tensor

LIMIT = 8
SIZES = (1, 2, 3, 5, 7, 17, 33)
Array = np.ndarray
Value = tuple[Tensor, Array]


@dataclass
class Growing:
    """A program being made, in MLIR and in numpy at once."""

    b: Builder
    r: np.random.Generator
    values: list[Value] = field(default_factory=list)

    def pick(self, least: int = 0) -> Value:
        """One of the values so far, the last ones more often."""
        fitting = [v for v in self.values if v[0].rank >= least]
        place = int(len(fitting) * self.r.random() ** 0.5)
        return fitting[min(place, len(fitting) - 1)]

    def cut_back(self, made: Tensor, exact: Array) -> Value:
        cut = self.b.elementwise(lambda s: s.maximum(-LIMIT).minimum(LIMIT), made)
        return cut, exact.clip(-LIMIT, LIMIT)

    def numbers(self, shape: tuple[int, ...]) -> Value:
        """A weight: it becomes a parameter."""
        array = self.r.integers(-3, 4, shape).astype(np.float32)
        return self.b.constant(array), array

    # ---- steps -----------------------------------------------------------------------

    def unary(self) -> Value:
        x, exact = self.pick()
        if self.r.integers(2):
            return self.b.elementwise(lambda s: s.maximum(0), x), exact.clip(0)
        return self.b.elementwise(lambda s: -s, x), -exact

    def binary(self) -> Value:
        x, one = self.pick()
        fitting = [v for v in self.values if fits(v[0].shape, x.shape)]
        y, other = fitting[self.r.integers(len(fitting))]
        if self.r.integers(3) == 0:
            kept = [s if self.r.integers(2) else 1 for s in x.shape]
            y, other = self.numbers(tuple(kept))
        do = (operator.add, operator.sub, operator.mul)[self.r.integers(3)]
        return self.cut_back(self.b.elementwise(do, x, y), do(one, other))

    def reduce(self) -> Value:
        x, exact = self.pick(1)
        count = int(self.r.integers(1, x.rank + 1))
        axes = tuple(int(a) for a in self.r.choice(x.rank, count, replace=False))
        keep = bool(self.r.integers(2))
        if self.r.integers(2):
            made = self.b.reduce(
                lambda a, s: a.maximum(s), x, axes, -np.inf, keepdims=keep
            )
            return made, exact.max(axes, keepdims=keep)
        made = self.b.reduce(operator.add, x, axes, 0, keepdims=keep)
        return self.cut_back(made, exact.sum(axes, keepdims=keep))

    def contract(self) -> Value:
        """The last dimension with a weight, or with another value's."""
        x, exact = self.pick(1)
        k, n = x.shape[-1], int(self.r.choice(SIZES))
        letters = "abcdefgh"[: x.rank - 1]
        y, other = self.numbers((k, n))
        equation = f"{letters}k,kn->{letters}n"
        fitting = [v for v in self.values if v[0].rank == 2 and v[0].shape[1] == k]
        if fitting and self.r.integers(2):
            y, other = fitting[self.r.integers(len(fitting))]
            equation = f"{letters}k,nk->{letters}n"
        made = self.b.einsum(equation, x, y)
        return self.cut_back(made, np.einsum(equation, exact, other))

    def transpose(self) -> Value:
        x, exact = self.pick(2)
        order = [int(d) for d in self.r.permutation(x.rank)]
        return self.b.transpose(x, order), exact.transpose(order)

    def reshape(self) -> Value:
        x, exact = self.pick()
        shape = list(x.shape)
        if len(shape) > 1 and self.r.integers(2):
            at = int(self.r.integers(len(shape) - 1))
            shape[at : at + 2] = [shape[at] * shape[at + 1]]
        elif len(shape) < 4:
            shape.insert(int(self.r.integers(len(shape) + 1)), 1)
        return self.b.reshape(x, shape), exact.reshape(shape)

    def slice(self) -> Value:
        x, exact = self.pick(1)
        starts = [int(self.r.integers(s)) for s in x.shape]
        shape = [
            int(self.r.integers(1, s - a + 1))
            for s, a in zip(x.shape, starts, strict=True)
        ]
        places = tuple(slice(a, a + n) for a, n in zip(starts, shape, strict=True))
        return self.b.slice(x, starts, shape), exact[places]

    def concat(self) -> Value:
        x, exact = self.pick(1)
        axis = int(self.r.integers(x.rank))
        fitting = [
            v
            for v in self.values
            if without(v[0].shape, axis) == without(x.shape, axis)
            and v[0].rank == x.rank
        ]
        parts = [fitting[self.r.integers(len(fitting))] for _ in range(2)]
        made = self.b.concat([x, *(p for p, _ in parts)], axis)
        return made, np.concatenate([exact, *(a for _, a in parts)], axis)

    def broadcast(self) -> Value:
        x, exact = self.pick()
        shape = tuple(3 if s == 1 else s for s in x.shape)
        shape = (2, *shape) if x.rank < 4 else shape
        return self.b.broadcast_to(x, shape), np.broadcast_to(exact, shape)


STEPS = (
    Growing.unary, Growing.binary, Growing.binary, Growing.reduce, Growing.contract,
    Growing.transpose, Growing.reshape, Growing.slice, Growing.concat,
    Growing.broadcast,
)  # fmt: skip


def fits(shape: tuple[int, ...], full: tuple[int, ...]) -> bool:
    """Whether the shape can be broadcast to `full`."""
    lead = len(full) - len(shape)
    return lead >= 0 and all(
        s in (1, f) for s, f in zip(shape, full[lead:], strict=True)
    )


def without(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return shape[:axis] + shape[axis + 1 :]


def inputs_of(seed: int) -> list[Array]:
    """Two or three arrays of rank 1 to 3."""
    r = np.random.default_rng(seed)
    shapes = [
        tuple(int(s) for s in r.choice(SIZES, int(r.integers(1, 4))))
        for _ in range(int(r.integers(2, 4)))
    ]
    return [r.integers(-4, 5, shape).astype(np.float32) for shape in shapes]


def grown(
    seed: int, arrays: list[Array], steps: int
) -> tuple[Callable[..., Any], list[Array]]:
    """A builder of a random program, and where it puts the exact outputs."""
    exact: list[Array] = []

    def make(b: Builder, *tensors: Tensor) -> list[Tensor]:
        r = np.random.default_rng(seed)
        growing = Growing(b, r, list(zip(tensors, arrays, strict=True)))
        while len(growing.values) < len(arrays) + steps:
            step = STEPS[r.integers(len(STEPS))]
            try:
                made = step(growing)
            except IndexError:
                continue  # nothing fits this step yet
            if made[0].size <= 20_000:
                growing.values.append(made)
        chosen = [growing.values[-1], *(growing.pick() for _ in range(2))]
        exact[:] = [np.asarray(e) for _, e in chosen]
        return [x for x, _ in chosen]

    return make, exact
