"""Copies that are no stage, in vectors that the script says: rows of buffers.

    "nanoloom.copies"(%function) {bits, lanes, scalable}

is for numbers of so many bits that are copied where of a stage nothing else is left:
bufferization writes its result where it is wanted, or copies it there.  What nothing is
said of is copied one number after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from nanoloom.ir.make_generic import element_type
from nanoloom.ir.mlir import ir, named
from nanoloom.linalg.builder.pointwise import itself, pointwise
from nanoloom.nest.extent import ONE, Lanes
from nanoloom.vector.vectorize import require_lanes, vector_words

Widths = Mapping[int, Lanes]  # vectors of numbers of so many bits


def copies_of_stages(widths: dict[int, Lanes]) -> Callable[..., None]:
    """What "nanoloom.copies" does: it adds to these."""

    def note(_: ir.OpView, bits: int, lanes: int, scalable: int) -> None:
        require_lanes(lanes, scalable)
        widths[bits] = Lanes(lanes, bool(scalable))

    return note


def copy_rows(source: ir.Value, target: ir.Value, lanes: Lanes) -> None:
    """target[i...] = source[i...]"""
    rank = ir.MemRefType(target.type).rank
    pointwise([source], target, itself, words=along_rows(rank, lanes))


def fill_rows(
    target: ir.Value, number: Callable[[], ir.Value], lanes: Lanes
) -> ir.Value:
    """target[i...] = number; gives the tensor, or the buffer itself."""
    rank = ir.ShapedType(target.type).rank
    return pointwise([], target, number, words=along_rows(rank, lanes))


def along_rows(rank: int, lanes: Lanes) -> Mapping[str, ir.Attribute]:
    """Attributes of a generic whose innermost loop, of so many, has vectors."""
    return vector_words(rank - 1, lanes) if rank and lanes != ONE else {}


def copies_to_generics(module: ir.Module, widths: Widths) -> None:
    """memref.copy as a generic, so that it becomes loops like everything else."""
    for op in named(module, "memref.copy"):
        source, target = op.operation.operands
        if source != target:  # equal parts were made one behind the canonicalization
            element = element_type(target.type)
            bits = 64 if isinstance(element, ir.IndexType) else element.width  # type: ignore[attr-defined]
            with ir.InsertionPoint(op), op.operation.location:
                copy_rows(source, target, widths.get(bits, ONE))
        op.operation.erase()
