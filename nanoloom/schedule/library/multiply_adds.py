"""Contractions by a family's multiply-adds: the register tile, and the loops around."""

from __future__ import annotations

from dataclasses import dataclass

from nanoloom.nest.contraction import Contraction, bits
from nanoloom.nest.nest import LoopNest
from nanoloom.nest.statement import Statement
from nanoloom.schedule import register_tile
from nanoloom.schedule.families import FMA_FAMILY, Family
from nanoloom.schedule.lane_factors import lane_factors
from nanoloom.schedule.language import Candidate, Directive, Schedule, StoreAt
from nanoloom.schedule.library.copy_rhs import (
    has_to_copy,
    is_of_any_length,
    pays_to_copy,
)
from nanoloom.schedule.library.family import column_sums, step_cost
from nanoloom.schedule.library.k_blocking import in_k_blocks, k_blocking, may_be_blocked
from nanoloom.schedule.library.nanokernels import (
    Operands,
    flat_prefetches,
    nanokernel_of,
)
from nanoloom.schedule.library.narrow_vectors import best_width
from nanoloom.schedule.library.panels import (
    is_matrix,
    is_parameter,
    other_vectors,
    prefetches,
    row_names,
    row_of,
    tiled,
    weight_packing,
)
from nanoloom.schedule.library.prefetch_lhs import prefetch_lhs
from nanoloom.schedule.library.result_rows import in_rows
from nanoloom.schedule.library.task_panel import task_panel
from nanoloom.schedule.library.wide_panels import panel_bits
from nanoloom.schedule.register_tile import RegisterTile
from nanoloom.schedule.step_cost import FMA, StepCost
from nanoloom.target.facts import Target, VectorUnit


def multiply_adds(
    nest: LoopNest,
    root: Statement,
    last: Statement,
    shape: Contraction,
    family: Family,
    target: Target,
) -> Schedule | None:
    """The family's register tile, or that of a panel which every task copies.

    None for what can neither be packed nor read in vectors, nor copied as it is long.
    """
    packed, row = is_parameter(nest, root, shape), row_of(shape)
    m, n = 1 if row is None else shape.extents[row], shape.extents[shape.column]
    width = bits(root.writes[0].element)
    cost = step_cost(family, root, shape, target, packed)
    versions = family.versions and not any(x.is_sample for x in root.axes)
    if packed:
        tiles = register_tile.of_panels(m, n, width, target, cost, versions=versions)
    else:
        tiles = register_tile.ranked(m, n, width, target.vector, cost)
    edge = root, shape, family, tiles[0], target
    if is_of_any_length(root, shape) and not packed and has_to_copy(*edge):
        return None
    copied = not packed and pays_to_copy(root, shape, family, m, tiles[0], target)
    copied = copied and not is_of_any_length(root, shape)
    if copied and (family.flat_cost or family is FMA_FAMILY):  # the copy is of f32
        family = FMA_FAMILY
        cost = step_cost(family, root, shape, target, packed, copied)
        tiles = register_tile.ranked(m, n, width, target.vector, cost)
    if not packed and not shape.contiguous:
        return None
    if packed and family is FMA_FAMILY and not target.shared:
        tiles, target = of_best_width(root, shape, cost, target, versions=versions)
    product = Product(nest, root, last, shape, target)

    def weighed() -> list[Candidate]:
        return [
            Candidate(*product.with_tile(tile, family, cost, copied), tile.cost)
            for tile in register_tile.best_of_each_width(tiles)
        ]

    return Schedule(*product.with_tile(tiles[0], family, cost, copied), weighed)


def of_best_width(
    root: Statement,
    shape: Contraction,
    cost: StepCost,
    target: Target,
    *,
    versions: bool,
) -> tuple[list[RegisterTile], Target]:
    """The tiles for a weight in panels, and the target with the vectors they have."""
    row, n = row_of(shape), shape.extents[shape.column]
    m, width = 1 if row is None else shape.extents[row], bits(root.writes[0].element)

    def ranked(unit: VectorUnit) -> list[RegisterTile]:
        if is_matrix(shape) and not lane_factors(target, width):
            return register_tile.as_of_many_rows(
                m, n, width, unit, cost, versions=versions
            )
        ends = has_ends(root, shape, cost)
        return register_tile.ranked(
            m, n, width, unit, cost, ends=ends, versions=versions
        )

    return best_width(ranked, n, width, target)


def has_ends(root: Statement, shape: Contraction, cost: StepCost) -> bool:
    """Whether a tile is weighed with a smaller last panel (`Tail`).

    Of images of known sizes: a weight of matrices has one width for any rows.
    """
    known = not any(axis.is_sample for axis in root.axes)
    return known and cost == FMA and not is_matrix(shape)


@dataclass(frozen=True)
class Product:
    """A contraction of a kernel, to be made for a target.

    last: the stage that writes the result.
    """

    nest: LoopNest
    root: Statement
    last: Statement
    shape: Contraction
    target: Target

    def with_tile(
        self, tile: RegisterTile, family: Family, cost: StepCost, copied: bool
    ) -> tuple[tuple[Directive, ...], str]:
        """The words, and the reason, for a register tile of a family.

        cost: of a step of it.  copied: whether every task copies its panel.
        """
        nest, root, shape, target = self.nest, self.root, self.shape, self.target
        last, row = self.last, row_of(shape)
        width = bits(root.writes[0].element)
        columns = tile.vectors * (target.vector.bits // width)
        sums, wide = column_sums(family, root, shape, target), panel_bits(family, shape)
        packings = weight_packing(nest, root, shape, columns, family, sums, wide)
        reason = (
            f"register tile {tile}: {tile.cost:.2f} cycles a multiply-add, 1 at best"
        )
        product = Operands(root, shape, family, bool(packings), copied)
        nanokernel = nanokernel_of(tile, product, target)
        behind = other_vectors(nest, root, target)

        def with_prefetches(loops: tuple[Directive, ...]) -> tuple[Directive, ...]:
            if isinstance(loops[0], StoreAt):
                return (*packings, *loops, *without(behind, loops[0].stage))
            fetched = prefetches(nest, packings, loops, row_names(root, shape), target)
            fetched = fetched or flat_prefetches(nest, nanokernel, product, target)
            fetched += prefetch_lhs(nest, loops, nanokernel, product, target)
            return (*packings, *loops, *fetched, *behind)

        front = nest.in_front(root.name)
        may_cut = not front and may_be_blocked(root, last)
        if row is not None and family is FMA_FAMILY and may_cut:
            chunks = None
            if copied:
                chunks = task_panel(shape, row, nanokernel, width, target)
            elif packings and cost == FMA:
                chunks = k_blocking(shape, row, nanokernel, width, target)
            if chunks is not None:
                if chunks.depth < shape.extents[shape.reduced[-1]]:
                    reason += f"; sums in chunks of {chunks.depth}"
                loops = in_k_blocks(
                    root, shape, row, nanokernel, columns, chunks, last.name
                )
                return with_prefetches(loops), reason
        flat = not packings and not copied and not front
        if flat and row is not None and family is FMA_FAMILY:
            few = in_rows(root, last, shape, row, nanokernel, columns, target)
            if few is not None:
                return with_prefetches(few), reason
        loops = tiled(nest, root, last, shape, nanokernel, columns, target)
        return with_prefetches(loops), reason


def without(words: tuple[Directive, ...], pad: str) -> tuple[Directive, ...]:
    """What is said of others than a pad that is left out."""
    return tuple(word for word in words if getattr(word, "stage", "") != pad)
