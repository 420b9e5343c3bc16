"""The loops of assembly text, as the benchmarks and the tests know them."""

from nanoloom.explain.assembly import count, inner_loops

__all__ = ["count", "inner_loops"]
