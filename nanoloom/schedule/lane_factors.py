"""Numbers of a row that are loaded at once, where any lane of a register multiplies.

    for k by 4: for r in rows: four[r] = left[r][k..k + 4]
        for g in 0..4: for r, c: sums[r][c] += four[r][g] * right[k + g][c]

A load for four steps of a row, in place of four: cores that begin six instructions a
cycle, and multiply with four of them, have no room for more.
"""

from __future__ import annotations

from nanoloom.nest.contraction import bits as bits_of
from nanoloom.schedule.register_tile import RegisterTile
from nanoloom.target.facts import Target
from nanoloom.target.instructions.aarch64 import LANE_REGISTERS


def lane_factors(target: Target, bits: int) -> int:
    """Lanes of a register, numbers of so many bits, if each of them can multiply; or 0.

    Of vectors of one width, as long as the registers.
    """
    unit = target.vector
    whole = unit.bits == target.isa.lane_factors and unit.vscale_max == 1
    return unit.bits // bits if whole and bits in (32, 64) else 0


def wide_lane_factors(target: Target) -> int:
    """The same of f32 in vectors as wide as the machine's: lanes of every 128 bits."""
    unit = target.vector
    whole = unit.bits == target.isa.lane_factors and unit.scalable
    return unit.bits // bits_of("f32") if whole else 0


def is_room(rows: int, vectors: int, registers: int, *, swapped: bool) -> bool:
    """Whether a tile can hold a register of each row.

    swapped: its columns are loaded one by one (register_tile.py).
    """
    return rows * vectors + rows + (1 if swapped else vectors) <= registers


def swaps_for_room(tile: RegisterTile, target: Target) -> bool:
    """Whether a tile has room for them only with its columns one by one."""
    sizes = tile.rows, tile.vectors, target.vector.registers
    return not is_room(*sizes, swapped=False) and is_room(*sizes, swapped=True)


def is_wide_room(rows: int, vectors: int, target: Target) -> bool:
    """The same of vectors as wide as the machine's, columns one by one.

    Of tiles with fewer rows or vectors than a register has factors LLVM spills some, as
    their assembly shows.
    """
    room = is_room(rows, vectors, target.vector.registers, swapped=True)
    return (
        room
        and min(rows, vectors) >= wide_lane_factors(target)
        and rows <= LANE_REGISTERS
    )
