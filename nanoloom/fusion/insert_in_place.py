"""Values that are parts of a larger one: their kernels write them in place.

    y = insert_slice(x, into)   ->   the kernel of x writes its part of y

So padding and concatenation cost no copy of their own, and where each layer's inputs
are those of the one before and a few more, all lie in one tensor.  A kernel does not
know which part it reads or writes, only its size: a call gives the place, so that such
layers are calls of one kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import prod

from nanoloom.ir.linalg_query import (
    Op,
    base,
    element_bytes,
    input_count,
    is_contraction,
    is_fill,
    is_generic,
)
from nanoloom.ir.mlir import ir, made_by, named, tensor
from nanoloom.ir.regrouped_axes import COLLAPSE, drops_ones, groups_of, joins_axes
from nanoloom.linalg.builder.pointwise import itself, pointwise
from nanoloom.linalg.builder.tensor_slices import inserted, sliced

PART = "nanoloom.part"  # on an insertion
INSERT = "tensor.insert_slice"
MOST_COPIES = 2  # of a tensor's parts; a kernel each, where others write in place


@dataclass(frozen=True)
class Insertion:
    """A block of a larger tensor: where it begins, and how far it goes."""

    offsets: tuple[int, ...]
    sizes: tuple[int, ...]

    @staticmethod
    def of(op: Op) -> Insertion:
        words = op.operation.attributes
        begin, count = (
            tuple(int(n) for n in words[f"static_{name}"])  # type: ignore[attr-defined]
            for name in ("offsets", "sizes")
        )
        return Insertion(begin, count)

    @property
    def first(self) -> Insertion:
        """A block of this size at the beginning of the tensor."""
        return Insertion((0,) * len(self.sizes), self.sizes)

    def begin(self, shape: Sequence[int]) -> int:
        """Elements in front of the block in a tensor of this shape."""
        strides = (prod(shape[d + 1 :]) for d in range(len(shape)))
        return sum(o * s for o, s in zip(self.offsets, strides, strict=True))

    def within(self, other: Insertion) -> Insertion:
        """The same block in the tensor that the one around it is a block of."""
        pairs = zip(self.offsets, other.offsets, strict=True)
        return Insertion(tuple(a + b for a, b in pairs), self.sizes)

    def meets(self, other: Insertion) -> bool:
        """Whether two blocks of one tensor have elements in common."""
        ranges = zip(self.offsets, self.sizes, other.offsets, other.sizes, strict=True)
        return all(a < c + d and c < a + b for a, b, c, d in ranges)

    def without(self, other: Insertion) -> Iterator[Insertion]:
        """Blocks that cover this one but for another: two for each dimension."""
        if not self.meets(other):
            yield self
            return
        low = list(self.offsets)
        high = [o + n for o, n in zip(self.offsets, self.sizes, strict=True)]
        for d, (begin, count) in enumerate(
            zip(other.offsets, other.sizes, strict=True)
        ):
            for start, end in ((low[d], begin), (begin + count, high[d])):
                if start < end:
                    offsets = *low[:d], start, *low[d + 1 :]
                    ends = *high[:d], end, *high[d + 1 :]
                    pairs = zip(ends, offsets, strict=True)
                    yield Insertion(offsets, tuple(e - o for e, o in pairs))
            low[d], high[d] = max(low[d], begin), min(high[d], begin + count)

    def read(self, whole: ir.Value, kind: ir.Type) -> ir.Value:
        """The block as a tensor of this type.

        Dimensions of 1 may be missing in it, or some be several.
        """
        shape = ir.RankedTensorType(kind).shape
        groups = groups_of(shape, self.sizes)
        sizes = [prod(shape[d] for d in group) for group in groups]
        image = ir.RankedTensorType.get(sizes, ir.RankedTensorType(kind).element_type)
        block = sliced(whole, self.offsets, self.sizes, shape=sizes)
        if image == kind:
            return block
        return tensor.ExpandShapeOp(kind, block, groups, [], list(shape)).result

    def write(self, value: ir.Value, whole: ir.Value) -> ir.Value:
        """The larger tensor with this block, which may have more axes."""
        kind = ir.RankedTensorType(value.type)
        groups = groups_of(kind.shape, self.sizes)
        sizes = [prod(kind.shape[d] for d in group) for group in groups]
        image = ir.RankedTensorType.get(sizes, kind.element_type)
        if image != kind:
            value = tensor.CollapseShapeOp(image, value, groups).result
        return inserted(value, whole, self.offsets, self.sizes)

    @property
    def ones(self) -> list[int]:
        return [1] * len(self.sizes)


def is_insertion(op: Op) -> bool:
    """Whether an insertion only says where its source lies, as `mark_parts` found."""
    return op.operation.name == INSERT and PART in op.operation.attributes


def may_insert(op: Op, apart: dict[object, bool], *, tiles: bool, line: int) -> bool:
    """Whether the sources of all insertions into a tensor can be written in it."""
    steps = list(op.operation.attributes["static_strides"])  # type: ignore[call-overload] - MLIR's stubs know no kinds of attributes
    if len(list(op.operation.operands)) != 2 or any(step != 1 for step in steps):
        return False
    chain = chain_of(op)
    made = [is_made_for(o, tiles=tiles, line=line) for o in chain or ()]
    if chain is None or made.count(False) > MOST_COPIES:
        return False
    if (first := chain[0].operation) not in apart:
        pairs = combinations(map(Insertion.of, chain), 2)
        apart[first] = not any(a.meets(b) for a, b in pairs)
    return apart[first]


def chain_of(op: Op) -> list[Op] | None:
    """All insertions into one new tensor; None if it is not new, or read in between."""
    chain = [op]
    while True:
        owner = chain[0].operation.operands[1].owner
        if isinstance(owner, ir.Block):
            return None
        if owner.name != INSERT:
            break
        if len(list(owner.results[0].uses)) != 1:
            return None
        chain.insert(0, owner.opview)
    if origin_of(chain) is None:
        return None
    while (after := only_user(chain[-1].operation.results[0])) is not None:
        inserts = after.operation.name == INSERT
        if not inserts or after.operation.operands[1] != chain[-1].operation.results[0]:
            break
        chain.append(after)
    return chain


def origin_of(chain: list[Op]) -> ir.Operation | None:
    """The fill or the empty tensor that a chain of insertions begins with."""
    owner = made_by(base(chain[0].operation.operands[1]))
    new = owner and (owner.name == "tensor.empty" or is_fill(owner.opview))
    return owner if new else None


def only_user(value: ir.Value) -> Op | None:
    uses = list(value.uses)
    return uses[0].owner.opview if len(uses) == 1 else None


def insertion_user(value: ir.Value) -> Op | None:
    """The insertion that says where a value lies, None if there is none."""
    for use in uses_of(value):  # asked of most values: an operation's view costs more
        user = use.owner
        if user.name == INSERT and PART in user.attributes:
            return user.opview
    return None


def uses_of(value: ir.Value) -> Iterator[ir.OpOperand]:
    """Uses of a value, of it without extents of 1, or with some axes as one."""
    for use in value.uses:
        if use.owner.name == COLLAPSE and keeps_order(use.owner.opview):
            yield from uses_of(use.owner.results[0])
        else:
            yield use


def keeps_order(op: Op) -> bool:
    """Whether a view has extents of 1 less, or some axes as one."""
    return drops_ones(op) or joins_axes(op)


def source_of(op: Op) -> ir.Value:
    """What an insertion inserts, with its extents of 1, or with its axes apart."""
    value = op.operation.operands[0]
    while not isinstance(owner := value.owner, ir.Block):
        if owner.name != COLLAPSE or not keeps_order(owner.opview):
            break
        value = owner.operands[0]
    return value


def home(value: ir.Value) -> ir.Value:
    """The tensor that a value is a part of, itself if of none."""
    while (user := insertion_user(value)) is not None:
        value = user.operation.results[0]
    return value


def part_of(value: ir.Value) -> Insertion | None:
    """Where a value lies in its home, None if it is none's part.

    A part of a part is one of the same rank.
    """
    part: Insertion | None = None
    while (user := insertion_user(value)) is not None:
        if source_of(user) == value:
            here = Insertion.of(user)
            part = here if part is None else part.within(here)
        value = user.operation.results[0]
    return part


def mark_parts(
    module: ir.Module, *, tiles: bool, line: int, stays: Callable[[Op], bool]
) -> None:
    """Find the parts, and give each a source that can be one: a copy if need be.

    tiles: whether parts are written that have more axes, as tiles of an image have,
    which they can be where strides are numbers: of others MLIR does not know it.
    line: bytes of a cache line.  stays: whether readers guard what is inserted.
    """
    apart: dict[object, bool] = {}  # chains, by their first, whose blocks never meet
    for op in named(module, INSERT):
        inside = op.operation.parent.name != "func.func"  # type: ignore[union-attr]
        if inside or stays(op) or not may_insert(op, apart, tiles=tiles, line=line):
            continue
        op.operation.attributes[PART] = ir.UnitAttr.get(module.context)
        if not is_made_for(op, tiles=tiles, line=line):
            source = op.operation.operands[0]
            kind = ir.RankedTensorType(source.type)
            with ir.InsertionPoint(op), op.operation.location:
                made = tensor.empty(kind.shape, kind.element_type)
                op.operation.operands[0] = pointwise([source], made, itself)


def is_made_for(op: Op, *, tiles: bool, line: int) -> bool:
    """Whether an insertion's source can be written where it is inserted.

    It is computed by a generic, or has parts itself, and whoever else reads it can do
    that in the larger tensor.
    """
    source = source_of(op)
    owner = source.owner
    if isinstance(owner, ir.Block) or len(list(owner.results)) != 1:
        return False
    others = [u for u in uses_of(source) if u.owner.operation != op.operation]
    if others and not (has_long_rows(op, line) and all(map(reads_in_place, others))):
        return False
    if owner.name == INSERT:
        return is_insertion(owner.opview) and may_be_inner(owner.opview, op)
    given = op.operation.operands[0]  # else a view of it: no block has made that
    users = (use.owner.opview for use in source.uses)
    collapsed = (u for u in users if u.operation.name == COLLAPSE)
    views = {u.operation.results[0] for u in collapsed if not drops_ones(u)}
    direct = not views if given == source else tiles and views == {given}
    return direct and is_generic(owner.opview) and input_count(owner.opview) > 0


def may_be_inner(inner: Op, outer: Op) -> bool:
    """Whether what has parts can be a part: nothing fills it around them."""
    chain = chain_of(inner)
    origin = None if chain is None else origin_of(chain)
    shape = tuple(ir.RankedTensorType(inner.operation.results[0].type).shape)
    unfilled = origin is not None and not is_fill(origin.opview)
    return unfilled and shape == Insertion.of(outer).sizes


def has_long_rows(op: Op, line: int) -> bool:
    """Whether a part's elements lie in rows of a line of the cache or more."""
    kind = ir.RankedTensorType(op.operation.results[0].type)
    row = element_bytes(kind)
    for extent, count in zip(
        kind.shape[::-1], Insertion.of(op).sizes[::-1], strict=True
    ):
        row *= count
        if count != extent:
            break
    return row >= line


def reads_in_place(use: ir.OpOperand) -> bool:
    """Whether a use of a value reads it as well where it lies in another."""
    user = use.owner.opview
    inner = is_generic(user) and use.operand_number < input_count(user)
    return inner and not is_contraction(user)
