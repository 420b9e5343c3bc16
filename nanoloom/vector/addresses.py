"""Where elements of a buffer lie: as numbers, and as pointers that intrinsics take."""

from __future__ import annotations

from collections.abc import Sequence

from nanoloom.ir.access import Operand, add, coefficient, index, multiply
from nanoloom.ir.mlir import arith, ir, llvm, memref
from nanoloom.vector.widths import with_element

BY_VALUE = -(1 << 31)  # of an index, LLVM's
DYNAMIC = ir.ShapedType.get_dynamic_stride_or_offset()


def bytes_of(buffer: ir.Value) -> int:
    """Of an element of a buffer, or of a tensor."""
    # numbers have a width, their base class in the bindings has none
    return ir.ShapedType(buffer.type).element_type.width // 8  # type: ignore[attr-defined] - numbers have a width


def address(buffer: ir.Value, at: Sequence[ir.Value], ahead: int = 0) -> ir.Value:
    """A pointer to an element, or so many bytes behind it."""
    _, place, *_ = memref.ExtractStridedMetadataOp(buffer).results
    for i, stride in zip(at, strides_of(buffer), strict=True):
        place = add(place, multiply(i, stride))
    base = memref.extract_aligned_pointer_as_index(buffer)
    total = add(base, multiply(place, index(bytes_of(buffer))))
    return pointer(add(total, index(ahead)))


def pointer(number: ir.Value) -> ir.Value:
    i64 = ir.IntegerType.get_signless(64)
    return llvm.inttoptr(ir.Type.parse("!llvm.ptr"), arith.index_cast(i64, number))


def distance(x: Operand, dim: int) -> ir.Value:
    """Elements from an operand's place at a loop variable to the next one's."""
    total = index(0)
    for expr, stride in zip(x.indexing.results, strides_of(x.buffer), strict=True):
        factor = coefficient(expr, dim) or 0
        if factor:
            total = add(total, multiply(stride, index(factor)))
    return total


def strides_of(buffer: ir.Value) -> list[ir.Value]:
    """Of each dimension, numbers where they are known."""
    known, _ = ir.MemRefType(buffer.type).get_strides_and_offset()
    if DYNAMIC not in known:
        return [index(stride) for stride in known]
    _, _, *rest = memref.ExtractStridedMetadataOp(buffer).results
    pairs = zip(known, rest[len(known) :], strict=True)
    return [given if n == DYNAMIC else index(n) for n, given in pairs]


def ahead(start: ir.Value, far: ir.Value, element: ir.Type) -> ir.Value:
    """A pointer so many elements further on; of a vector of distances as many."""
    kind, i64 = ir.Type.parse("!llvm.ptr"), ir.IntegerType.get_signless(64)
    wide = with_element(far.type, i64)
    if isinstance(wide, ir.VectorType):
        kind = ir.Type.parse(f"vector<[{wide.shape[0]}]x!llvm.ptr>")
    free = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), 0)
    given = [arith.index_cast(wide, far)]
    return llvm.GEPOp(kind, start, given, [BY_VALUE], element, free).result
