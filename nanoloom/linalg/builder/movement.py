"""Elements at other places: nothing is computed, and often nothing moved."""

from __future__ import annotations

from collections.abc import Sequence

from nanoloom.ir.mlir import ir
from nanoloom.linalg.builder import reassociation
from nanoloom.linalg.builder.broadcasting import Broadcasting, broadcast_map
from nanoloom.linalg.builder.generic import PARALLEL, Map
from nanoloom.linalg.builder.scalar import Number
from nanoloom.linalg.builder.tensor import Tensor, changed, constant
from nanoloom.linalg.builder.tensor_slices import inserted, sliced
from nanoloom.weights.derivations import Sliced, Transposed, reshaped


class Movement(Broadcasting):
    """Reshapes, transposes, slices and their kin; constants are moved when packed."""

    def reshape(self, x: Tensor, shape: Sequence[int]) -> Tensor:
        """The same elements in row-major order under another shape: no data moves."""
        shape = tuple(int(s) for s in shape)
        if shape == x.shape:
            return x
        if x.value is None:
            assert x.weight is not None
            return constant(reshaped(x.weight, shape))
        return self.tensor(reassociation.reshape(x.value, shape), x.dtype)

    def transpose(self, x: Tensor, permutation: Sequence[int]) -> Tensor:
        """numpy.transpose: out.shape[i] == x.shape[permutation[i]]."""
        order = [p % x.rank for p in permutation]
        if order == list(range(x.rank)):
            return x
        if x.value is None:
            return changed(x, Transposed(tuple(order)))
        shape = [x.shape[p] for p in order]
        places = [ir.AffineDimExpr.get(order.index(d)) for d in range(x.rank)]
        return self._copy(x, Map.get(x.rank, 0, places), shape)

    def broadcast_to(self, x: Tensor, shape: Sequence[int]) -> Tensor:
        if tuple(shape) == x.shape:
            return x
        return self._copy(x, broadcast_map(x.shape, tuple(shape)), shape)

    def slice(
        self,
        x: Tensor,
        starts: Sequence[int],
        shape: Sequence[int],
        steps: Sequence[int] | None = None,
    ) -> Tensor:
        """out[i, ...] = x[starts[0] + i * steps[0], ...], steps may be negative.

        A view of x where every step is positive, a copy otherwise.
        """
        strides = list(steps) if steps is not None else [1] * x.rank
        if 0 in shape:
            return self.full(shape, 0, x.dtype)
        if x.value is None:
            return changed(x, Sliced(tuple(starts), tuple(shape), tuple(strides)))
        if any(step < 0 for step in strides):
            source = self.value(x)
            return self.generate(
                shape,
                x.dtype,
                lambda *at: self.load(
                    source,
                    x.dtype,
                    [i * k + s for i, k, s in zip(at, strides, starts, strict=True)],
                ),
            )
        return self.tensor(sliced(self.value(x), starts, shape, steps=strides), x.dtype)

    def first(self, x: Tensor, shape: Sequence[int]) -> Tensor:
        """The first elements along each axis; a slice even where these are all.

        It drops an axis of 1, so that nothing takes it for x (fusion/slices.py).
        """
        source = self.value(self.reshape(x, (1, *x.shape)))
        made = sliced(source, [0] * (x.rank + 1), [1, *shape], shape=shape)
        return self.tensor(made, x.dtype)

    def insert(self, x: Tensor, into: Tensor, starts: Sequence[int]) -> Tensor:
        """`into` with x written at `starts` (contiguous block, static place)."""
        if x.size == 0:
            return into
        made = inserted(self.value(x), self.value(into), starts, x.shape)
        return self.tensor(made, x.dtype)

    def pad(
        self, x: Tensor, low: Sequence[int], high: Sequence[int], number: Number = 0
    ) -> Tensor:
        """Constant padding, counts not negative."""
        shape = [a + s + b for a, s, b in zip(low, x.shape, high, strict=True)]
        if tuple(shape) == x.shape:
            return x
        return self.insert(x, self.full(shape, number, x.dtype), low)

    def concat(self, parts: Sequence[Tensor], axis: int) -> Tensor:
        rank = parts[0].rank
        axis %= rank
        if len(parts) == 1:
            return parts[0]
        shape = list(parts[0].shape)
        shape[axis] = sum(part.shape[axis] for part in parts)
        whole = Tensor(tuple(shape), parts[0].dtype, self.empty(shape, parts[0].dtype))
        place = 0
        for part in parts:
            starts = [place if d == axis else 0 for d in range(rank)]
            whole = self.insert(part, whole, starts)
            place += part.shape[axis]
        return whole

    def _copy(self, x: Tensor, source: Map, shape: Sequence[int]) -> Tensor:
        out = Tensor(tuple(shape), x.dtype, self.empty(shape, x.dtype))
        if x.size == 1 and x.is_constant:
            return self.full(shape, x.array().reshape(-1)[0].item(), x.dtype)
        return self.generic(
            [(x, source)],
            [(out, Map.get_identity(len(shape)))],
            [PARALLEL] * len(shape),
            lambda s, _: s,
        )[0]
