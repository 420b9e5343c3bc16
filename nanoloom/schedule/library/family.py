"""Which family of nanokernels a contraction gets, from its types and the target."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from nanoloom.nest.contraction import (
    FEW_ROWS,
    Contraction,
    bits,
    elements,
    lhs_is_k_contiguous,
)
from nanoloom.nest.nest import LoopNest
from nanoloom.nest.statement import Statement
from nanoloom.schedule import register_tile
from nanoloom.schedule.families import (
    AMX_BF16,
    AMX_INT8,
    BF16_CONVERT,
    BF16_DOT,
    BF16_HALVES,
    BIT_COUNTS,
    BIT_PAIRS,
    BIT_TABLES,
    FMA_FAMILY,
    GROUP_PRODUCTS,
    INT8_DOT,
    INT8_INNER,
    INT8_LANES,
    INT8_PAIRS,
    INT16_PAIRS,
    TILE_STEPS,
    Family,
    has_family,
)
from nanoloom.schedule.library.copy_rhs import is_of_any_length
from nanoloom.schedule.library.wide_panels import (
    panel_bits,
    suits_inner,
    wide_cost,
)
from nanoloom.schedule.step_cost import (
    BY_INTEGERS,
    CONVERSION,
    FMA,
    StepCost,
)
from nanoloom.target.facts import LANE_BITS, Target
from nanoloom.target.instructions.choose import (
    DotUse,
    counts_at_once,
    dot_for,
    scalable_dot,
    widens_products,
)
from nanoloom.target.masked_access import has_mask_registers

# A step of tile registers costs the same for fewer: a quarter of them pays, measured
# against multiply-adds in f32 and dot products of bytes.
GROUPS_FOR_TILES = TILE_STEPS // 4
LEAST_BYTES = LANE_BITS // bits("u8")  # of bits in a row of a product: one shuffle's
PREFERENCE = (
    AMX_BF16,
    AMX_INT8,
    BF16_DOT,
    BF16_CONVERT,
    BF16_HALVES,
    INT8_DOT,
    INT8_INNER,
    INT8_PAIRS,
    INT16_PAIRS,
    INT8_LANES,
    BIT_PAIRS,
    BIT_TABLES,
    BIT_COUNTS,
    FMA_FAMILY,
)


def family_of(
    nest: LoopNest, root: Statement, shape: Contraction, target: Target, packed: bool
) -> Family | None:
    """The best family for these numbers on this target, None if there is none."""
    return next(iter(families_of(nest, root, shape, target, packed)), None)


def families_of(
    nest: LoopNest, root: Statement, shape: Contraction, target: Target, packed: bool
) -> tuple[Family, ...]:
    """The families for these numbers on this target, the best first.

    packed: whether the right operand can come as panels.
    """
    found: list[Family] = []
    given = elements(root, shape)
    along = lhs_is_k_contiguous(root, shape)
    for family in PREFERENCE:
        fits = given in family.elements
        by_row = not packed and family.flat_cost is not None
        if not fits or (family.group > 1 and not along and not by_row):
            continue
        of_any_width = by_row and root.axes[shape.column].is_sample
        grouped = family is not FMA_FAMILY
        if of_any_width or (grouped and is_of_any_length(root, shape)):
            continue
        there = has_family(target, family, *given[:2], packed)
        if there and is_wanted(family, nest, root, shape, target, packed):
            found.append(family)
    return tuple(found)


def is_wanted(
    family: Family,
    nest: LoopNest,
    root: Statement,
    shape: Contraction,
    target: Target,
    packed: bool,
) -> bool:
    """Whether a family that the target has suits a product, and pays."""
    if family is BF16_DOT:
        return pays(target, root.reads[shape.left].element)
    if family is BIT_PAIRS:
        return shape.extents[shape.reduced[-1]] >= family.group
    if family is INT8_INNER:
        return suits_inner(shape, target) and not nest.in_front(root.name)
    if family is BIT_TABLES:
        return suits_tables(shape, target)
    if family.tiles:
        deep = shape.extents[shape.reduced[-1]] >= GROUPS_FOR_TILES * family.group
        return deep and (packed or can_weave(shape))
    by_row = not packed and family.flat_cost is not None
    given = nest.buffer(root.reads[shape.right].buffer).argument >= 0
    return not by_row or (given and pairs_pay(family, root, shape, target))


def suits_tables(shape: Contraction, target: Target) -> bool:
    """Whether columns fill vectors of bytes, and rows of sums fit 16 bits and a copy.

    The copy of what a tile reads, and the last steps of its sums, need a sum to pay.
    """
    depth = prod(shape.extents[d] for d in shape.reduced)
    full = shape.extents[shape.column] >= target.lanes(bits("u8"))
    most = (1 << bits("u16")) // bits("u8")
    return full and LEAST_BYTES <= depth < most


def pairs_pay(
    family: Family, root: Statement, shape: Contraction, target: Target
) -> bool:
    """Whether a flat operand can be read by pairs of columns, and if that is faster.

    On Arm one instruction widens half a vector as well, and in order.
    """
    n, unit = shape.extents[shape.column], target.vector
    lanes = target.lanes(bits("f32"))
    if not shape.contiguous or not target.isa.widens_loads or n < 2 * lanes:
        return False
    long = [shape.extents[d] for d in shape.rows if shape.extents[d] > 1]
    m = long[-1] if long else 1
    ordered = step_cost(FMA_FAMILY, root, shape, target, packed=False)
    pairs, single = (
        register_tile.choose(m, n, bits("f32"), unit, cost)
        for cost in (family.flat_cost or ordered, ordered)
    )
    # Without mask registers 16-bit numbers are masked one by one.
    masked = not unit.mask_registers and n % (single.vectors * lanes) > 0
    return masked or pairs.cost <= single.cost


def can_weave(shape: Contraction) -> bool:
    """Whether weaving pairs of rows of a flat operand is possible, and pays."""
    rows = max((shape.extents[d] for d in shape.rows), default=1)
    return shape.contiguous and len(shape.reduced) == 1 and rows >= 2 * FEW_ROWS


def multiplies(target: Target, kind: str) -> bool:
    """Whether a target has instructions for floats of 2 bytes as they are."""
    if scalable_dot(target, kind, kind) is not None:
        return True
    return any(
        has_family(target, family, kind, kind, packed=True)
        for family in (AMX_BF16, BF16_DOT, BF16_CONVERT)
        if (kind, kind, "f32") in family.elements
        and (family is not BF16_DOT or pays(target, kind))
    )


def pays(target: Target, kind: str) -> bool:
    """Whether dot products of pairs beat multiply-adds on halves (single_products.py).

    Halves of f16 are no f32: conversions come beside the multiply-adds.
    """
    if kind != "bf16":
        return True
    use, unit = dot_for(target, kind, kind), target.vector
    dots = unit.fma_per_cycle if use is None else use.dot.rate(target)
    return 2 * dots >= unit.fma_per_cycle


def dot_use(root: Statement, shape: Contraction, target: Target) -> DotUse | None:
    left, right, _ = elements(root, shape)
    return dot_for(target, left, right)


def instruction_use(
    family: Family, root: Statement, shape: Contraction, target: Target
) -> DotUse | None:
    """The instruction that multiplies groups of a family; None if it has none."""
    ask = GROUP_PRODUCTS.get(family.name)
    left, right, _ = elements(root, shape)
    return None if ask is None else ask(target, left, right)


def column_sums(
    family: Family, root: Statement, shape: Contraction, target: Target
) -> int:
    """What panels hold of their columns' sums (weights/panels.py), 0 for nothing."""
    if family is BIT_PAIRS:
        return -1  # where a column's words differ
    if family is INT8_INNER:
        return -1  # products of its own numbers
    use = dot_use(root, shape, target) if family is INT8_DOT else None
    return 0 if use is None else use.correction


def step_cost(
    family: Family,
    root: Statement,
    shape: Contraction,
    target: Target,
    packed: bool,
    copied: bool = False,
) -> StepCost:
    """A step's cost; copied: of multiply-adds with a task's copy (flat_panel.py).

    Where panels hold sums, every row has its sign bits inverted.  Rows that are not
    packed are interleaved: shuffles, and a register that says how; over the edge they
    are read under a mask, which without mask registers is one more vector.
    """
    cost = numbers_cost(family, root, shape, target)
    use = instruction_use(family, root, shape, target)
    if use is not None:
        cost = replace(cost, latency=use.dot.waits(target))
    if family is INT8_INNER:
        return cost  # panels come as fast as they are multiplied, rows are wide before
    if packed and panel_bits(family, shape):
        return wide_cost(cost, shape, target)
    if packed:
        return cost
    if family.flat_cost is not None:
        return family.flat_cost
    masked = has_mask_registers(target, bits(root.reads[shape.right].element) // 8)
    masks = 0 if copied or masked else 1
    plain = family is FMA_FAMILY and not cost.right
    if plain or copied:
        return replace(cost, right=0, masks=masks)
    right, others = cost.right + family.group - 1, cost.others + family.group
    if family is FMA_FAMILY:
        shifts = CONVERSION.right / 2
        return replace(cost, shifts=shifts, others=others, masks=masks)
    cost = replace(cost, others=others, masks=masks, swaps=False)
    if family.group == 1:
        return cost
    lines = 0 if family.cost == FMA else family.group
    return replace(cost, right=right, lines=lines)


def numbers_cost(
    family: Family, root: Statement, shape: Contraction, target: Target
) -> StepCost:
    """A step's cost for these element types: of narrow numbers what converts them."""
    cost = family.cost
    if family is BIT_COUNTS and counts_at_once(target):
        return replace(cost, additions=2, others=2)
    if target.writes_over:
        # An instruction writes over one of its factors, products are added apart.
        cost = replace(cost, others=cost.others + 2)
    if family is INT8_DOT and column_sums(family, root, shape, target):
        return replace(cost, left=1, others=2)
    left, _, result = elements(root, shape)
    if family is FMA_FAMILY and left == "f16" and not target.widens_f16:
        others = cost.others + BY_INTEGERS.others
        return replace(cost, right=BY_INTEGERS.right, widened=32, others=others)
    if family is FMA_FAMILY and left != result and not widens_products(target, left):
        others = cost.others + target.isa.half_registers
        return replace(cost, right=CONVERSION.right, widened=32, others=others)
    return cost
