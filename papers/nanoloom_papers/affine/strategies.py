"""Ways to lower kernels through loops of the affine dialect, as nanoloom's strategies.

Values: who chooses one loads neither MLIR nor ONNX.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from nanoloom.cache.digest import of
from nanoloom.target.facts import Target

if TYPE_CHECKING:
    from nanoloom.binary.objects import CodeOptions
    from nanoloom.vector.stage import Vectorized

# The affine path, and three ways of others to compare it with.
StrategyName = Literal["affine", "plain", "oml", "onnx-mlir"]
NAMES: tuple[StrategyName, ...] = get_args(StrategyName)
DEFAULT = "default"  # by schedules, which are no strategy


@dataclass(frozen=True)
class Unrolling:
    """How far the affine path unrolls a product of m x k and k x n; None: as it likes.

    vlen: lanes of a vector of 32-bit numbers.  k: vectors of a sum along k.  m, n: rows
    and columns (or vectors of columns) that are computed at once.
    """

    vlen: int | None = None
    k: int | None = None
    m: int | None = None
    n: int | None = None


AS_IT_LIKES = Unrolling()


@cache
def source() -> str:
    """The digest of the files that lower: part of the keys of what they made."""
    files = sorted(Path(__file__).parent.glob("*.py"))
    return of(*((path.name, path.read_bytes()) for path in files))


@dataclass(frozen=True)
class LoopStrategy:
    """A nanoloom.options.Strategy by its name."""

    name: StrategyName
    unrolling: Unrolling = AS_IT_LIKES
    source: str = field(default_factory=source, repr=False)

    @property
    def fuses_transposes(self) -> bool:
        return self.name != "affine"

    def rewrite(self, graph: Any, opset: int) -> dict[str, str]:
        """Lay right operands of products along the sum, where the loops want that."""
        if self.name != "affine":
            return {}
        from nanoloom_papers.affine.k_contiguous_rhs import make_k_contiguous

        return make_k_contiguous(graph, opset)

    def lower(self, module: Any, target: Target) -> Vectorized:
        from nanoloom_papers.affine.stage import through_affine

        return through_affine(module, self.name, self.unrolling, target)

    def code_options(self, target: Target) -> CodeOptions:
        """LLVM finds vectors in what the loops left.

        Groups of registers are full of sums: pairs of numbers would need some more.
        """
        from nanoloom.binary.objects import CodeOptions

        pairs = self.name != "affine" or target.vector.grouped == 1
        return CodeOptions(vectorize_loops=True, vectorize_blocks=pairs)


def strategy_named(
    name: str, unrolling: Unrolling = AS_IT_LIKES
) -> LoopStrategy | None:
    """A strategy; None, by schedules, for the default.  Raises ValueError."""
    if name == DEFAULT:
        return None
    return LoopStrategy(NAMES[NAMES.index(name)], unrolling)
