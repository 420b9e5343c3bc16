"""Indices that points of a tile have in common are computed once."""

from __future__ import annotations

from itertools import product

from nanoloom.ir.access import Operand, index, parts, written
from nanoloom.ir.mlir import context, ir
from nanoloom.vector.value_cache import ValueCache


def test_equal_indices_are_computed_once() -> None:
    """A window of 3 x 3 taps over four points of a row: 36 readings, 15 indices."""
    with context(), ir.Location.unknown():
        module = ir.Module.parse("func.func @f(%x: memref<3x6xf32>) { return }")
        block = module.body.operations[0].operation.regions[0].blocks[0]
        point, row, column = (ir.AffineDimExpr.get(n) for n in range(3))
        x = Operand(block.arguments[0], ir.AffineMap.get(3, 0, [row, point + column]))
        with ir.InsertionPoint.at_block_begin(block):
            points, taps = (list(map(index, range(n))) for n in (4, 3))
            once = ValueCache()
            for p, r, c in product(range(4), range(3), range(3)):
                ivs = [points[p], taps[r], taps[c]]
                found, own = once.indices(x, ivs), x.indices(ivs)
                assert [i.known_as for i in found] == [written(i) for i in own]
                assert [i.number for i in found] == [parts(i)[1] for i in own]
                assert [i.number for i in found] == [r, p + c]
        assert len(once.found) == 3 + 4 * 3
