"""A comparison with a carried value and what it selects: minimum, maximum, their place.

    %c = arith.cmpf ogt, %x, %m : f32
    %next = arith.select %c, %x, %m : f32       the greater one
    %place = arith.select %c, %i, %at : index   a companion: where it was

Every form of it: operands the other way round, the condition inverted; the extreme may
be an operation of its own (arith.maxnumf) beside the comparison.
"""

from __future__ import annotations

from dataclasses import dataclass

from nanoloom.ir.mlir import ir
from nanoloom.nest.reduction import KINDS

GREATER, LESS, UNORDERED = "greater", "less", "unordered"
# For which order of the left to the right operand a comparison holds, by its number;
# equal operands are left out: it is the same which of them is selected.
FLOATS: tuple[set[str], ...] = (
    set(),  # false
    set(),  # oeq
    {GREATER},  # ogt
    {GREATER},  # oge
    {LESS},  # olt
    {LESS},  # ole
    {GREATER, LESS},  # one
    {GREATER, LESS},  # ord
    {UNORDERED},  # ueq
    {GREATER, UNORDERED},  # ugt
    {GREATER, UNORDERED},  # uge
    {LESS, UNORDERED},  # ult
    {LESS, UNORDERED},  # ule
    {GREATER, LESS, UNORDERED},  # une
    {UNORDERED},  # uno
    {GREATER, LESS, UNORDERED},  # true
)
# Of integers: the same, and the letter of their sign.
INTEGERS: tuple[tuple[set[str], str], ...] = (
    (set(), "s"),  # eq
    ({GREATER, LESS}, "s"),  # ne
    ({LESS}, "s"),  # slt
    ({LESS}, "s"),  # sle
    ({GREATER}, "s"),  # sgt
    ({GREATER}, "s"),  # sge
    ({LESS}, "u"),  # ult
    ({LESS}, "u"),  # ule
    ({GREATER}, "u"),  # ugt
    ({GREATER}, "u"),  # uge
)
INVERTED = {GREATER: LESS, LESS: GREATER, UNORDERED: UNORDERED}
WORDS = {GREATER: "max", LESS: "min"}
KEEPS_A_NAN = "if it begins with a NaN, that stays"
TRUE, FALSE = 1, 2  # the operands of a select behind its condition


@dataclass(frozen=True)
class Choice:
    """One of two values by their order.

    kind: a key of KINDS.  other: what the carried value is compared with.
    companions: selects of the same condition between other values.  side: which of
    their operands is taken with `other`.
    """

    kind: str
    result: ir.Value
    other: ir.Value
    operations: tuple[str, ...]
    companions: tuple[ir.Operation, ...]
    side: int
    obstacle: str = ""


def choice_of(value: ir.Value) -> Choice | None:
    """What becomes of a value that is used by a comparison and one operation more."""
    users = [use.owner.operation for use in value.uses]
    if len(users) != 2 or users[0] == users[1]:
        return None
    compared = [op for op in users if op.name in ("arith.cmpf", "arith.cmpi")]
    if len(compared) != 1:
        return None
    (comparison,) = compared
    (user,) = (op for op in users if op != comparison)
    left, right = comparison.operands
    other = right if left == value else left
    followers = [
        use.owner.operation
        for use in comparison.results[0].uses
        if use.owner.operation != user
    ]
    if any(op.name != "arith.select" for op in followers):
        return None
    if user.name == "arith.select":
        return selected(value, other, comparison, user, tuple(followers))
    return beside(value, other, comparison, user, tuple(followers))


def predicate(comparison: ir.Operation) -> int:
    """The number of what an arith.cmpf or arith.cmpi asks."""
    attribute = comparison.attributes["predicate"]
    assert isinstance(attribute, ir.IntegerAttr), "comparisons have one"
    return int(attribute.value)


def picks(comparison: ir.Operation, value: ir.Value, *, when: bool) -> set[str]:
    """How the other operand stands to `value` where the comparison comes out so."""
    number = predicate(comparison)
    is_float = comparison.name == "arith.cmpf"
    holds = FLOATS[number] if is_float else INTEGERS[number][0]
    if comparison.operands[0] == value:
        holds = {INVERTED[word] for word in holds}
    every = {GREATER, LESS, UNORDERED} if is_float else {GREATER, LESS}
    return holds if when else every - holds


def selected(
    value: ir.Value,
    other: ir.Value,
    comparison: ir.Operation,
    select: ir.Operation,
    companions: tuple[ir.Operation, ...],
) -> Choice | None:
    """A select between the two operands of its comparison."""
    condition, first, second = select.operands
    if condition != comparison.results[0] or {first, second} != {value, other}:
        return None
    side = TRUE if first == other else FALSE
    taken = picks(comparison, value, when=side == TRUE)
    no_nans = "nnan" in flags_of(comparison) | flags_of(select)
    if UNORDERED in taken and not no_nans:
        return None  # a NaN is forgotten at the next step: the order decides
    kind = kind_of(comparison, taken - {UNORDERED})
    if kind is None:
        return None
    is_float = comparison.name == "arith.cmpf"
    names = (comparison.name, select.name)
    obstacle = KEEPS_A_NAN if is_float and not no_nans else ""
    return Choice(kind, select.results[0], other, names, companions, side, obstacle)


def beside(
    value: ir.Value,
    other: ir.Value,
    comparison: ir.Operation,
    user: ir.Operation,
    companions: tuple[ir.Operation, ...],
) -> Choice | None:
    """An extreme by its own operation, the comparison for its companions only."""
    if user.name not in KINDS or set(user.operands) != {value, other}:
        return None
    if not companions or any(
        op.operands[0] not in comparison.results for op in companions
    ):
        return None
    for side in (TRUE, FALSE):
        taken = picks(comparison, value, when=side == TRUE) - {UNORDERED}
        kind = kind_of(comparison, taken)
        if kind is not None and direction(kind) == direction(user.name):
            return Choice(
                user.name, user.results[0], other, (user.name,), companions, side
            )
    return None


def kind_of(comparison: ir.Operation, taken: set[str]) -> str | None:
    """The kind of what takes the other value where it is greater, or less."""
    if len(taken) != 1:
        return None
    (word,) = taken
    if comparison.name == "arith.cmpf":
        return f"arith.{WORDS[word]}numf"
    return f"arith.{WORDS[word]}{INTEGERS[predicate(comparison)][1]}i"


def direction(kind: str) -> str:
    """max or min, of an operation that is one of them."""
    return kind.removeprefix("arith.")[:3]


def flags_of(op: ir.Operation) -> set[str]:
    """Fast-math flags of an operation, `fast` as all of them."""
    if "fastmath" not in op.attributes:
        return set()
    words = str(op.attributes["fastmath"])
    found = set(words[words.index("<") + 1 : words.rindex(">")].split(","))
    every = {"reassoc", "nnan", "ninf", "nsz", "arcp", "contract", "afn"}
    return every if "fast" in found else found
