"""Programs with attention in them, and what they must give.

scores = q k' scale (+ mask);  p = softmax(scores);  out = p v
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from nanoloom.ir import mlir
from nanoloom.kernels.program import Program
from nanoloom.kernels.retype.precision import to_bf16
from nanoloom.linalg.reductions.softmax import normalized
from tests.linalg.bounds import EPS, dtype_of, sample
from tests.vector.kernel_harness import Array, Make, build, cut, program_of

EXP = 4  # units in the last place that exp may be away
BF16 = dtype_of("bfloat16")


@dataclass(frozen=True)
class Attention:
    """shared: leading dimensions.  masked: with one more input, added to the scores."""

    shared: tuple[int, ...]
    rows: int
    keys: int
    size: int
    masked: bool = False
    dtype: str = "float32"
    scale: float = 0.25

    def inputs(self, seed: int = 1) -> list[Array]:
        """q, k, v and the mask; all of them are numbers of bf16, too."""
        shapes = [
            (*self.shared, self.rows, self.size),
            (*self.shared, self.keys, self.size),
            (*self.shared, self.keys, self.size),
            *([(self.rows, self.keys)] if self.masked else []),
        ]
        made = [
            sample(seed + i, shape, "bfloat16", -2, 2) for i, shape in enumerate(shapes)
        ]
        return [x.astype(self.dtype) for x in made]

    def scores(self, b: Any, q: Any, k: Any, *mask: Any) -> Any:
        lead = "abcd"[: len(self.shared)]
        made = b.einsum(f"{lead}mk,{lead}nk->{lead}mn", q, k)
        made = b.elementwise(lambda s: s * self.scale, made)
        return b.elementwise(lambda s, t: s + t, made, *mask) if mask else made

    def weigh(self, b: Any, p: Any, v: Any) -> Any:
        lead = "abcd"[: len(self.shared)]
        return b.einsum(f"{lead}mn,{lead}nk->{lead}mk", p, v)

    def make(self, b: Any, q: Any, k: Any, v: Any, *mask: Any) -> Any:
        scores = self.scores(b, q, k, *mask)
        p = normalized(b, scores, [scores.rank - 1], scores.dtype)
        return self.weigh(b, p, v)


def exact(
    given: Attention, q: Array, k: Array, v: Array, *mask: Array, bf16: bool = False
) -> tuple[Array, Array]:
    """The result, and how far a computed one may be from it.

    Scores are wrong by a sum's roundings; what that does to exp is relative, and the
    same for all that follows: the sum of a row, the reciprocal, the sum with v.
    bf16: of the precision, which rounds p once.
    """
    q, k, v, *added = (x.astype(np.longdouble) for x in (q, k, v, *mask))
    unit = EPS[np.dtype(given.dtype)]
    turned = k.swapaxes(-1, -2)
    scores = q @ turned * given.scale + sum(added)
    size = abs(q) @ abs(turned) * abs(given.scale) + sum(abs(m) for m in added)
    with np.errstate(invalid="ignore"):
        shifted = scores - scores.max(-1, keepdims=True)
        grown = np.exp(shifted)
    p = grown / grown.sum(-1, keepdims=True)
    counted = p > 0  # what a mask excludes is exactly 0
    steps = (given.size + 2) * size + abs(shifted)
    wrong = np.where(counted, steps, 0).max(-1, keepdims=True) * unit
    relative = 2 * (wrong + EXP * unit) + (2 * given.keys + 4) * unit
    relative = relative + (EPS[BF16] if bf16 else 0)
    out, bound = p @ v, 1.5 * relative * (p @ abs(v))
    return out.astype(np.float64), bound.astype(np.float64)


def attention_program(make: Make, *inputs: Array, bf16: bool = False) -> Program:
    """The kernels, with contractions in bf16 if wanted."""
    if not bf16:
        return program_of(make, *inputs)
    with mlir.context():
        return cut(to_bf16(build(make, *inputs)))


def roots(program: Program) -> list[str]:
    """The root of each call, in order."""
    return [program.kernels[call.kernel].root for call in program.calls]
