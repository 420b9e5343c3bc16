"""The register tile of a contraction, from the target's facts and the shape alone."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from nanoloom.nest.granularity import BLOCK_ROWS
from nanoloom.schedule.step_cost import FMA, StepCost
from nanoloom.target.facts import (
    ADDRESSES,
    MOST_VECTORS,
    Cache,
    Shared,
    Target,
    VectorUnit,
)

# Without mask registers, tiles of several panels ask at every store what is inside of
# the last one: 5 % at least, and 15 % of sums of 129 products, as measured on AVX2.
ASKED = 1.05
ALIKE = 1.04  # of the cycles: so much the prediction is not better, as measured


@dataclass(frozen=True)
class RegisterTile:
    """rows x vectors accumulators.  cost: cycles a multiply-add vector, 1 is ideal.

    hold_lhs: the roles of load and broadcast.
    """

    rows: int
    vectors: int
    cost: float
    hold_lhs: bool = False

    def __str__(self) -> str:
        roles = ", all rows broadcast, columns loaded one by one"
        return f"{self.rows}x{self.vectors} vectors{roles if self.hold_lhs else ''}"


def candidates(
    registers: int, step: StepCost = FMA, columns: int = 0, lanes: int = 1
) -> list[tuple[int, int]]:
    """Tiles that fit: accumulators, and what a step holds beside them.

    Of lines that are not packed, all or a half ... are used: a power of two of vectors.
    columns: of the result; tiles that do not divide them have masks.
    """
    right, others = step.right_registers, step.others

    def masks(vectors: int) -> int:
        return step.masks * vectors if columns % (vectors * lanes) else 0

    def beside(rows: int, vectors: int) -> int:
        if step.swaps and swapped(rows, vectors, registers):
            return rows * others + right
        return right * vectors + others

    def fits(vectors: int) -> bool:
        if step.together > 1:
            return vectors % step.together == 0 and vectors * lanes <= columns
        return not step.lines or vectors & (vectors - 1) == 0

    widths = [v for v in range(1, MOST_VECTORS + 1) if fits(v)]
    rooms = [(v, v // step.narrow, registers - masks(v)) for v in widths]
    return [
        (rows, vectors)
        for vectors, held, room in rooms
        for rows in range(1, registers)
        if rows * held + beside(rows, held) <= room
    ]


def swapped(rows: int, vectors: int, registers: int) -> bool:
    """Whether a tile fits only with the roles of load and broadcast swapped.

    Else it holds a row of the right operand's vectors, and one broadcast number after
    the other (the nanokernel paper's Figure 2d).  Swapped, it holds its rows' numbers
    and one vector after the other (Figure 2a): fewer registers, if it is wide and low.
    """
    return (rows + 1) * vectors + 1 > registers


def cost(
    rows: int,
    vectors: int,
    m: int,
    n: int,
    lanes: int,
    unit: VectorUnit,
    step: StepCost = FMA,
    *,
    ends: bool = False,
    versions: bool = False,
) -> float:
    """Cycles per useful multiply-add vector, relative to the multiply-add limit.

    Three limits of the inner loop: multiply-add throughput, loads (each step loads
    `vectors` of the right operand and broadcasts `rows` scalars), and the latency of
    the chain through one accumulator; of a single row, its lines of the right operand.
    Work beyond the edge is wasted, and so are the bytes there.  ends: but for whole
    vectors behind the last column, in the last of several panels.  versions: but for
    rows behind the last one, in the last of several tiles.
    """
    panels, rest = divmod(n, vectors * lanes)
    last = -(-rest // lanes) if ends and panels else vectors

    def spent(rows: int) -> float:
        whole = panels * cycles(rows, vectors, m, unit, step)
        return whole + (cycles(rows, last, m, unit, step) if rest else 0)

    useful = arithmetic(m * n / (lanes * step.narrow), 0, unit, step)
    if not versions:
        return -(-m // rows) * spent(rows) / useful
    tiles, few = divmod(m, rows)
    # Of bytes fewer than half wait for loads, measured.
    last_rows = few if step == FMA or 2 * few > rows else rows
    return (tiles * spent(rows) + (spent(last_rows) if few else 0)) / useful


def cycles(
    rows: int, vectors: int, m: int, unit: VectorUnit, step: StepCost = FMA
) -> float:
    """Of a step of a tile, for m rows of a result.

    Below its limit a load still costs a little, and the right operand's thrice: those
    are whole lines, from the second-level cache.  Of a single row each is read once.
    A copy in a wider type is a load, a conversion and a store for each vector.
    """
    most = max(limits(rows, vectors, m, unit, step).values())
    vectors = vectors // step.narrow
    rates = unit.load_per_cycle, unit.fma_per_cycle, unit.store_per_cycle
    copied = sum(1 / n for n in rates) * rows * step.widened / unit.bits
    hidden = (
        unit.load_left * (rows * step.left_loads + 2 * vectors) / unit.load_per_cycle
    )
    return most + hidden + step.lines + copied


def limits(
    rows: int, vectors: int, m: int, unit: VectorUnit, step: StepCost = FMA
) -> dict[str, float]:
    """What each port, and waiting, needs of a step at least, in cycles."""
    vectors = vectors // step.narrow
    prepared = rows * step.left + vectors * step.right
    shifted = (rows * step.multiplies + step.shifts) * vectors / unit.fma_per_cycle
    loaded = rows * step.left_loads + vectors * step.right_loads
    read = vectors * step.right_loads * unit.bits / (8 * Cache.line)
    return {
        "arithmetic": max(arithmetic(rows * vectors, prepared, unit, step), shifted),
        "loads": loaded / unit.load_per_cycle,
        "latency": step.latency or step.multiplies * unit.fma_latency,
        "lines": Cache.l2_loads / unit.load_per_cycle * read if m == 1 else 0,
    }


def arithmetic(sums: float, prepared: float, unit: VectorUnit, step: StepCost) -> float:
    """Cycles of a step for so many vectors of sums and instructions beside them."""
    multiplies = sums * step.multiplies / unit.fma_per_cycle
    every = sums * (step.multiplies + step.additions) + prepared
    return max(multiplies, every / (unit.alu_per_cycle or unit.fma_per_cycle))


def asked(n: int, columns: int, unit: VectorUnit) -> float:
    """What stores cost more where panels of so many columns do not divide a result.

    Of a single panel it is known while compiling.
    """
    several = n > columns and n % columns > 0
    return ASKED if several and not unit.mask_registers else 1


def choose(
    m: int, n: int, bits: int, unit: VectorUnit, step: StepCost = FMA
) -> RegisterTile:
    """The cheapest tile for an m x n result of elements of this width."""
    return ranked(m, n, bits, unit, step)[0]


def ranked(
    m: int,
    n: int,
    bits: int,
    unit: VectorUnit,
    step: StepCost = FMA,
    *,
    ends: bool = False,
    versions: bool = False,
) -> list[RegisterTile]:
    """All tiles that fit, the cheapest first.

    Ties go to the wider tile: fewer passes over the left operand.  ends: the last
    panel's have only as many vectors as there are columns for (`Tail`).  versions: the
    last one of several tiles only as many rows as there are (`Versions`), unless the
    best tile without them divides the rows.
    """
    if versions and step == FMA:
        found = ranked(m, n, bits, unit, step, ends=ends)
        if m % found[0].rows == 0:
            return found
    lanes = max(1, unit.bits // bits)
    plain = step.swaps and not step.right  # numbers as they are, as it was measured
    found = [
        RegisterTile(
            rows,
            vectors,
            cost(rows, vectors, m, n, lanes, unit, step, ends=ends, versions=versions)
            * (asked(n, vectors * lanes, unit) if plain else 1),
            step.swaps and swapped(rows, vectors, unit.registers),
        )
        for rows, vectors in candidates(unit.registers, step, n, lanes)
        if rows <= ADDRESSES // 2 or m % rows == 0
    ]
    return sorted(found, key=lambda tile: (round(tile.cost, 3), -tile.vectors))


def best_of_each_width(tiles: Iterable[RegisterTile]) -> list[RegisterTile]:
    """The first of the tiles with each number of vectors: what is kept with the chosen
    one."""
    found: dict[int, RegisterTile] = {}
    for tile in tiles:
        found.setdefault(tile.vectors, tile)
    return list(found.values())


def of_panels(
    m: int,
    n: int,
    bits: int,
    target: Target,
    step: StepCost = FMA,
    *,
    versions: bool = False,
) -> list[RegisterTile]:
    """All tiles for weights in panels: those of the width that a file's targets share.

    Where the target has no others beside it, as `ranked`.
    """
    tiles = ranked(m, n, bits, target.vector, step, versions=versions)
    if target.shared is None:
        return tiles
    return of_common_width(tiles, m, n, bits, target.vector, target.shared)


def as_of_many_rows(
    m: int,
    n: int,
    bits: int,
    unit: VectorUnit,
    step: StepCost = FMA,
    *,
    versions: bool = False,
) -> list[RegisterTile]:
    """All tiles for weights in panels: first one as wide as that of many rows.

    Where it is nearly as good as the cheapest, the weights are those of the program for
    any number of rows, and of others for some: one array in memory and in the cache.
    """
    tiles = ranked(m, n, bits, unit, step, versions=versions)
    many = 4 * BLOCK_ROWS - 1  # as of a batch of texts: no tile divides it
    width = ranked(many, n, bits, unit, step)[0].vectors
    found = next((tile for tile in tiles if tile.vectors == width), tiles[0])
    if found.cost > ALIKE * tiles[0].cost:
        return tiles
    return [found, *(tile for tile in tiles if tile != found)]


def of_common_width(
    tiles: list[RegisterTile],
    m: int,
    n: int,
    bits: int,
    unit: VectorUnit,
    shared: Shared,
) -> list[RegisterTile]:
    """The tiles as wide as the one that all targets of a file have; all, if none is.

    It depends on nothing that one of the targets alone knows.
    """
    leader = shared.leader.vector
    fitting = [
        tile.vectors * leader.bits
        for tile in ranked(m, n, bits, leader)
        if tile.vectors * leader.bits <= shared.bits
    ]
    width = next(iter(fitting), 0)
    return [tile for tile in tiles if tile.vectors * unit.bits == width] or tiles
