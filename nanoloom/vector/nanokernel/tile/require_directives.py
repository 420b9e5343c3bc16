"""What a nanokernel says beside its tile: lanes, copies, the order of instructions.

Its family has to have it, and no other word may have said it of the contraction.
"""

from __future__ import annotations

from types import MappingProxyType

from nanoloom.errors import Error
from nanoloom.ir.linalg_query import Op
from nanoloom.nest.contraction import bits
from nanoloom.schedule.directives.nanokernel import BETWEEN, COPIED, FRONT
from nanoloom.schedule.families import FAMILIES, FMA_FAMILY
from nanoloom.schedule.language import Nanokernel
from nanoloom.target.facts import Target
from nanoloom.vector import copy_operand
from nanoloom.vector.nanokernel.tile.tile import Tile
from nanoloom.vector.pad import PADDED
from nanoloom.vector.vectorize import JAM, TAIL, UNROLL, VECTOR, VERSIONS, noted

LEAST_BITS = (
    128  # of a vector in inline assembly (instruction_order.py): x86 has no smaller one
)
MOST_PRODUCTS = 4096  # in a round of a loop: some 30 KiB of instructions
NOTED = MappingProxyType({
    VECTOR: "is vectorized",
    UNROLL: "is unrolled",
    JAM: "is unrolled",
    copy_operand.COPIED: "reads a copy",
    PADDED: "is padded",
})  # fmt: skip


def require_nothing_noted(op: Op) -> None:
    """No word has been said of what a nanokernel makes itself."""
    for attribute, said in NOTED.items():
        if attribute in op.operation.attributes:
            raise Error(
                f"the contraction {said} already: a nanokernel has vectors, loops and "
                "copies of its own"
            )


def require_lanes(plan: Nanokernel, result: str, target: Target) -> None:
    """The family's instructions have vectors of so many sums of this type.

    Multiply-adds have shorter ones, too.
    """
    family, lanes = FAMILIES[plan.family], plan.lanes.count
    most = target.lanes(bits(result))
    if family.tiles and target.matrix is not None:
        most = target.matrix.row_bytes * 8 // bits(result)
    least = most
    if family is FMA_FAMILY:
        least = min(most, LEAST_BITS // bits(result))
    if not least <= lanes <= most or lanes & (lanes - 1):
        raise Error(
            f"lanes = {lanes}: family {plan.family} has vectors of {most} sums in "
            f"{result} on {target}"
        )


def require_numbers(plan: Nanokernel, *, widens: bool) -> None:
    """What is said beside the tile is something that the family does.

    widens: it can read the left operand from a copy in a wider type.
    """
    tiles, name = FAMILIES[plan.family].tiles, plan.family
    most = MOST_PRODUCTS // (plan.rows * plan.vectors)
    if not 1 <= plan.unroll <= most or (tiles and plan.unroll > 1):
        raise Error(
            f"unroll = {plan.unroll}: family {name} has 1 to {1 if tiles else most} "
            "steps of this tile in a round"
        )
    if plan.copy_rhs not in COPIED or (plan.copy_rhs and plan.packed):
        raise Error(
            f'copy_rhs = "{plan.copy_rhs}": a right operand that is not packed '
            "is copied "
            'in "front" of the products or "between" them'
        )
    between = tiles or name == "fma"
    if (plan.copy_rhs == BETWEEN and not between) or (plan.copy_rhs == FRONT and tiles):
        raise Error(
            f'copy_rhs = "{plan.copy_rhs}": family {name} does it the other way'
        )
    said = tiles and (
        plan.keep_broadcast_live
        or plan.unfused_mul_add
        or plan.unmasked_fast_path
        or not plan.pin_order
    )
    if said or (plan.unfused_mul_add and not plan.pin_order):
        raise Error(
            "pin_order, keep_broadcast_live, unfused_mul_add and "
            "unmasked_fast_path are "
            "of vector registers: products are kept "
            "apart in an order, and tile registers have none"
        )
    if plan.convert_lhs < 0 or (plan.convert_lhs and not widens):
        raise Error(
            f"convert_lhs = {plan.convert_lhs}: the left operand stays as it is"
        )


def require_tails(tile: Tile) -> None:
    """What is said of tiles that are not full is of multiply-adds, and of such.

    Versions of rows are of integers in panels, too.
    """
    plan, versions = tile.plan, noted(tile.op, VERSIONS)
    vectors = noted(tile.op, TAIL)
    plain = plan.family == FMA_FAMILY.name and not plan.copy_rhs
    panels = plan.packed and FAMILIES[plan.family].versions and not vectors
    if (versions or vectors) and not (plain or panels):
        raise Error(
            "tiles that are not full are said of multiply-adds, and no copy; versions "
            "of rows of pairs of integers in panels, too"
        )
    if versions and (tile.row_count is None or list(versions) != fewer(plan, versions)):
        raise Error(
            f"rows = {list(versions)}: fewer than {plan.rows} are wanted, the most of "
            "them first, of a tile that may have fewer"
        )
    if vectors and (
        tile.column_count is None
        or not plan.packed
        or plan.convert_lhs
        or not 0 < vectors[0] < plan.vectors
    ):
        raise Error(
            f"vectors = {vectors[0]}: a last panel with fewer than {plan.vectors} is "
            "wanted, of numbers that are multiplied as they are"
        )


def fewer(plan: Nanokernel, versions: tuple[int, ...]) -> list[int]:
    """The counts in order that are less than a tile's rows."""
    return sorted({x for x in versions if 0 < x < plan.rows}, reverse=True)


__all__ = ["require_lanes", "require_nothing_noted", "require_numbers", "require_tails"]
