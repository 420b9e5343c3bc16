"""Convolutions of all kinds for the tests of dataflows, with what is right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from nanoloom.notation import Buffer, Computation, axes, cast, computation

Array = np.ndarray[Any, np.dtype[Any]]
PLAIN, DEPTHWISE, GROUPED, BLOCKED = "plain", "depthwise", "grouped", "blocked"

SUMS = {"int8": "int32", "bfloat16": "float32"}


@dataclass(frozen=True)
class Case:
    """A convolution without batch or border, in as many dimensions as `size` has.

    size: of the image.  kind: plain, with channels last; depthwise; grouped, in two
    groups; blocked, with channels innermost in image and weights, and summed over.
    """

    size: tuple[int, ...]
    window: tuple[int, ...]
    channels: int = 3
    filters: int = 20
    strides: tuple[int, ...] = ()
    dilations: tuple[int, ...] = ()
    kind: str = PLAIN
    dtype: Any = np.float32

    @property
    def steps(self) -> tuple[int, ...]:
        return self.strides or (1,) * len(self.size)

    @property
    def apart(self) -> tuple[int, ...]:
        return self.dilations or (1,) * len(self.size)

    @property
    def result(self) -> tuple[int, ...]:
        both = zip(self.size, self.window, self.steps, self.apart, strict=True)
        return tuple((n - (k - 1) * d - 1) // s + 1 for n, k, s, d in both)

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Of image, weights and result."""
        c, k, image, window = self.channels, self.filters, self.size, self.window
        match self.kind:
            case "depthwise":
                tail, weights, made = (c,), (*window, c), (*self.result, c)
            case "grouped":
                tail, weights, made = (2, c), (*window, 2, c, k), (*self.result, 2, k)
            case "blocked":
                tail, weights, made = (c,), (k, *window, c), (k, *self.result)
            case _:
                tail, weights, made = (c,), (*window, c, k), (*self.result, k)
        return {"image": (*image, *tail), "weights": weights, "made": made}

    def written(self) -> Computation:
        """In nanoloom's notation."""
        rank = len(self.size)
        p = axes(" ".join("zyx"[-rank:]))
        r = axes(" ".join(f"r{n}" for n in range(rank)))
        f, c, g = axes("f c g")
        kind = str(np.dtype(self.dtype))
        shapes = self.shapes
        image, weights = (
            Buffer(name, shapes[name], kind) for name in ("image", "weights")
        )
        wide = SUMS.get(kind, kind)
        made = Buffer("made", shapes["made"], wide)

        def number(x: Any) -> Any:
            return cast(x, wide) if wide != kind else x

        zipped = zip(p, r, self.steps, self.apart, strict=True)
        at = [s * x + d * q for x, q, s, d in zipped]
        match self.kind:
            case "depthwise":
                made[(*p, c)] += number(image[(*at, c)]) * number(weights[(*r, c)])
            case "grouped":
                made[(*p, g, f)] += number(image[(*at, g, c)]) * number(
                    weights[(*r, g, c, f)]
                )
            case "blocked":
                made[(f, *p)] += number(image[(*at, c)]) * number(weights[(f, *r, c)])
            case _:
                made[(*p, f)] += number(image[(*at, c)]) * number(weights[(*r, c, f)])
        return computation(made)

    def draw(self) -> tuple[Array, Array]:
        random = np.random.default_rng(0)

        def drawn(name: str) -> Array:
            shape = self.shapes[name]
            if np.issubdtype(self.dtype, np.integer):
                return random.integers(-128, 128, shape).astype(self.dtype)
            return random.standard_normal(shape).astype(self.dtype)

        return drawn("image"), drawn("weights")

    def right(self, image: Array, weights: Array) -> Array:
        """In float64, or in integers that are exact."""
        wide = np.int64 if np.issubdtype(self.dtype, np.integer) else np.float64
        image, weights = image.astype(wide), weights.astype(wide)
        total = np.zeros(self.shapes["made"], wide)
        for tap in product(*map(range, self.window)):
            part = image[self.places(tap)]
            match self.kind:
                case "depthwise":
                    total += part * weights[tap]
                case "grouped":
                    total += np.einsum("...gc,gcf->...gf", part, weights[tap])
                case "blocked":
                    here = weights[(slice(None), *tap)]
                    total += np.moveaxis(part @ here.T, -1, 0)
                case _:
                    total += part @ weights[tap]
        return total

    def places(self, tap: Sequence[int]) -> tuple[slice, ...]:
        zipped = zip(tap, self.result, self.steps, self.apart, strict=True)
        return tuple(slice(d * q, d * q + s * (n - 1) + 1, s) for q, n, s, d in zipped)

    def bound(self, image: Array, weights: Array) -> Any:
        """What roundings of the sums can add up to; 0 for integers."""
        if np.issubdtype(self.dtype, np.integer):
            return 0
        channels = 1 if self.kind == DEPTHWISE else self.channels
        terms = int(np.prod(self.window)) * channels
        wide = np.dtype(SUMS.get(str(np.dtype(self.dtype)), self.dtype))
        return (terms + 2) * np.finfo(wide).eps * self.right(abs(image), abs(weights))
