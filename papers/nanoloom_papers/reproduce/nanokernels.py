"""The measurements of "Library Liberation: Competitive Performance Matmul Through
Compiler-composed Nanokernels" (Tables 2 and 3, Figures 5 to 7), and plain products.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from nanoloom_papers.reproduce.chains import Arithmetic, Chain, gemm, mlp
from nanoloom_papers.reproduce.measurement import Row, Setting, measure_chain

KINDS = ("mlp", "gemm")
WIDTHS = {"mlp": (1024, 2048, 4096), "gemm": (512, 1024, 2048, 4096)}
ARITHMETICS: tuple[Arithmetic, ...] = ("f32", "bf16", "bf16-flat", "int8")
QUICK_SIZE, QUICK_BATCH = 64, 32
TITLES = {
    "mlp": "MLP: 3 layers with bias and ReLU",
    "gemm": "GEMM",
    "f32": "f32",
    "bf16": "bf16, weights packed (VNNI)",
    "bf16-flat": "bf16, weights flat",
    "int8": "int8 (u8 x s8)",
    "mixed": "f32 model in bf16",
}


@dataclass(frozen=True)
class Plan:
    """What is measured.  sizes: widths and edges, the paper's by default."""

    kinds: tuple[str, ...] = KINDS
    sizes: tuple[int, ...] = ()
    arithmetics: tuple[Arithmetic, ...] = ARITHMETICS
    threads: tuple[int, ...] = (1, 2)
    quick: bool = False

    def chains(self) -> list[Chain]:
        """In the order of the tables."""
        found: list[Chain] = []
        for kind in self.kinds:
            quick = (QUICK_SIZE,) if self.quick else WIDTHS[kind]
            for arithmetic in self.arithmetics:
                for size in self.sizes or quick:
                    found.append(self.chain(kind, size, arithmetic))
        return found

    def chain(self, kind: str, size: int, arithmetic: Arithmetic) -> Chain:
        if kind == "gemm":
            return gemm(size, size, size, arithmetic)
        return (
            mlp(size, arithmetic, QUICK_BATCH) if self.quick else mlp(size, arithmetic)
        )


def run(
    plan: Plan, setting: Setting, done: Callable[[Sequence[Row]], None]
) -> list[Row]:
    """Measure everything; `done` gets all rows so far after each chain."""
    rows: list[Row] = []
    for chain in plan.chains():
        rows += measure_chain(chain, list(plan.threads), setting)
        done(rows)
    return rows
