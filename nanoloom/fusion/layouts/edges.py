"""The tensors of a network as a graph: whose channels lie alike, and what may be moved.

Every dimension belongs to a set (links.py).  A set of channels gets one layout: all
tensors that end with it are moved, but for those whose order others decide about.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from nanoloom.fusion.group import MOVABLE
from nanoloom.fusion.insert_in_place import COLLAPSE, INSERT, Insertion
from nanoloom.fusion.layouts.layout import LAST, Layout
from nanoloom.fusion.layouts.links import (
    Dim,
    Links,
    axis,
    is_tensor,
    shape_of,
)
from nanoloom.fusion.layouts.products import Product, is_weight, pool_of, product_of
from nanoloom.fusion.slices import SLICE
from nanoloom.ir.linalg_query import (
    VIEWS,
    Op,
    base,
    dims_of,
    input_count,
    is_contraction,
    is_copy,
    is_fill,
    is_generic,
    iterators,
    map_dims,
    maps,
)
from nanoloom.ir.mlir import ir, made_by, operations
from nanoloom.ir.regrouped_axes import matched

PLACED = {"linalg.index", "tensor.extract"}
# Two shapes of the same bytes, and which dimensions of the wide one each is.
View = tuple[ir.Value, ir.Value, list[list[int]]]


@dataclass
class Edges:
    """What a walk over the network finds.

    planes: those of depthwise layers and of few channels may be apart.  known: sizes of
    images are.  kept: tensors that lie as they do.  unmoved, unsplit: dimensions that
    cannot be put in front, or in blocks.  steps: numbers that a block must divide.
    """

    weights: set[ir.Value]
    planes: bool
    known: bool
    links: Links = field(default_factory=Links)
    kept: set[ir.Value] = field(default_factory=set)
    unmoved: set[Dim] = field(default_factory=set)
    unsplit: set[Dim] = field(default_factory=set)
    steps: list[tuple[Dim, int]] = field(default_factory=list)
    pairs: list[tuple[ir.Value, ir.Value]] = field(default_factory=list)
    views: list[View] = field(default_factory=list)
    products: list[Product] = field(default_factory=list)
    copies: list[Op] = field(default_factory=list)
    elementwise: list[Op] = field(default_factory=list)
    batches: set[Dim] = field(default_factory=set)

    def visit(self, op: Op) -> None:
        name = op.operation.name
        if name in MOVABLE or (is_generic(op) and is_fill(op)):
            return
        if is_generic(op):
            self.visit_generic(op)
        elif name in VIEWS:
            self.visit_view(op)
        elif name in (INSERT, SLICE) and is_plain(op):
            self.visit_slice(op)
        else:
            self.keep(op)

    def keep(self, op: Op) -> None:
        """Of what nothing is known: all that it reads and makes stays as it is."""
        for inner in operations(op, lambda _: True):
            touched = [*inner.operation.operands, *inner.operation.results]
            self.kept |= {value for value in touched if is_tensor(value)}

    def fix(self, *dims: Dim) -> None:
        self.unmoved.update(dims)
        self.unsplit.update(dims)

    def visit_generic(self, op: Op) -> None:
        operation, ways = op.operation, maps(op)
        operands, results = list(operation.operands), list(operation.results)
        values = [*operands, *results]
        new = {v for v in operands[input_count(op) :] if is_tensor(v) and is_free(v)}
        for value, way in zip(values, [*ways, *ways[-len(results) :]], strict=True):
            if not is_tensor(value) or value in new:
                continue
            for d, expr in enumerate(way.results):
                if isinstance(expr, ir.AffineDimExpr):
                    self.links.join(axis(op, expr.position), (value, d))
                else:
                    self.fix((value, d), *(axis(op, a) for a in dims_of(expr)))
        numbered = operations(op, lambda o: o.operation.name in PLACED)
        if numbered:
            self.fix(*(axis(op, a) for a in range(len(iterators(op)))))
            for inner in numbered:
                self.kept |= {v for v in inner.operation.operands if is_tensor(v)}
        if is_copy(op):
            self.copies.append(op)
        elif is_contraction(op):
            self.visit_product(op)
        elif "reduction" in iterators(op):
            self.visit_reduction(op)
        else:
            self.elementwise.append(op)

    def visit_reduction(self, op: Op) -> None:
        """Along channels it stays; a pool's planes may be apart as depthwise ones."""
        kinds = iterators(op)
        self.fix(*(axis(op, a) for a, kind in enumerate(kinds) if kind == "reduction"))
        pool = pool_of(op)
        if pool is not None and self.planes and pool.slides:
            self.products.append(pool)
        elif any(None in map_dims(way) for way in maps(op)):
            self.unmoved.update(axis(op, a) for a in range(len(kinds)))

    def visit_product(self, op: Op) -> None:
        made = product_of(op, self.weights)
        if made is None:
            self.fix(*(axis(op, a) for a in range(len(iterators(op)))))
            return
        self.products.append(made)
        if made.is_depthwise and not (self.planes and made.slides):
            self.unmoved.add(made.parts)

    def visit_view(self, op: Op) -> None:
        """Dimensions beside extents of 1 are the same; a row that is cut stays."""
        (source,), (made,) = op.operation.operands, op.operation.results
        if is_free(source):
            return
        if is_weight(source, self.weights):
            self.kept.add(made)  # packed while compiling, for whoever reads it
        self.pairs.append((source, made))
        narrow, wide = source, made
        if op.operation.name == COLLAPSE:
            narrow, wide = made, source
        shape = shape_of(wide)
        words = op.operation.attributes["reassociation"]
        groups = [[int(d) for d in group] for group in words]  # type: ignore[union-attr] - MLIR's stubs know no kinds of attributes
        self.views.append((narrow, wide, groups))
        for one, dims in enumerate(groups):
            several = [d for d in dims if shape[d] != 1] or dims[-1:]
            if len(several) == 1:
                self.links.join((narrow, one), (wide, several[0]))
            else:
                self.unsplit.update([(narrow, one), *((wide, d) for d in dims)])
            if len(shape) - 1 in dims and several != [len(shape) - 1]:
                self.kept |= {narrow, wide}

    def visit_slice(self, op: Op) -> None:
        """A part of a tensor: its dimensions are those of the whole."""
        operands, (made,) = list(op.operation.operands), op.operation.results
        part, whole = Insertion.of(op), made
        small = operands[0]
        if op.operation.name == SLICE:
            small, whole = made, operands[0]
        elif not is_free(operands[1]):
            for d in range(len(part.sizes)):
                self.links.join((made, d), (operands[1], d))
            self.pairs.append((made, operands[1]))
        self.pairs.append((small, whole))
        shape = shape_of(whole)
        same = list(enumerate(matched(shape_of(small), part.sizes)))
        if same[-1:] != [(len(shape_of(small)) - 1, len(shape) - 1)]:
            self.kept |= {small, whole}  # one has channels that the other has not
        for one, d in same:
            self.links.join((whole, d), (small, one))
            if part.sizes[d] != shape[d]:
                self.steps += [
                    ((whole, d), n) for n in (part.offsets[d], part.sizes[d])
                ]

    # ---- what may be chosen

    def is_moved(self, value: ir.Value, dim: int) -> bool:
        """Whether a tensor follows the layout of its last dimension."""
        inside = not isinstance(value.owner, ir.Block) and value not in self.kept
        return inside and dim >= 0 and dim == len(shape_of(value)) - 1

    def channels(self, known: tuple[Layout, ...]) -> dict[Dim, tuple[Layout, ...]]:
        """The sets that have a choice, and theirs; LAST is always among them."""
        find, sets = self.links.find, self.links.sets()
        unmoved = {find(dim) for dim in self.unmoved}
        unsplit = {find(dim) for dim in self.unsplit}
        stuck = {find((v, len(shape_of(v)) - 1)) for v in self.torn()}
        steps: dict[Dim, list[int]] = {}
        for dim, step in self.steps:
            steps.setdefault(find(dim), []).append(step)
        views: dict[Dim, list[View]] = {}
        for view in self.views:
            last = view[0], len(shape_of(view[0])) - 1
            if self.is_moved(*last):
                views.setdefault(find(last), []).append(view)
        found: dict[Dim, tuple[Layout, ...]] = {}
        for root, members in sets.items():
            moved = [
                v for v, d in members if self.is_moved(v, d) and len(shape_of(v)) > 1
            ]
            if not moved or root in stuck or shape_of(moved[0])[-1] == 1:
                continue
            numbers = {shape_of(v)[d] for v, d in members if d >= 0}
            numbers.update(steps.get(root, ()))
            moves, splits = root not in unmoved, root not in unsplit
            found[root] = tuple(
                each
                for each in known
                if each == LAST
                or (
                    (moves if not each.block else splits and each.divides(numbers))
                    and all(self.is_kept(view, each) for view in views.get(root, ()))
                )
            )
        return found

    def is_kept(self, view: View, layout: Layout) -> bool:
        """Whether two shapes are the same bytes in a layout as well.

        [images, pixels, c] is not [images * pixels, c] where images stay in front.
        """
        narrow, wide, groups = view
        one, other = (
            layout.places(len(shape_of(v)), self.front(v)) for v in (narrow, wide)
        )
        parts = [(d, piece) for dim, piece in one for d in groups[dim]]
        shape = shape_of(wide)
        long = ([(d, p) for d, p in x if shape[d] != 1] for x in (parts, other))
        return next(long) == next(long)

    def torn(self) -> list[ir.Value]:
        """Tensors that are another in part or in another shape, one of which stays."""
        found: list[ir.Value] = []
        for one, other in self.pairs:
            ends = [self.is_moved(v, len(shape_of(v)) - 1) for v in (one, other)]
            if ends[0] != ends[1]:
                found += [v for v in (one, other) if shape_of(v)]
        return found

    def lies(self, value: ir.Value, layout: Layout) -> Layout:
        """A tensor's layout by the order of its elements: one of vectors has none but
        LAST, wherever its channels are."""
        shape = shape_of(value)
        places = layout.places(len(shape), self.front(value)) if shape else []
        moves = [d for d, _ in places if shape[d] > 1]
        return LAST if not layout.block and moves == sorted(moves) else layout

    def front(self, value: ir.Value) -> int:
        """How many dimensions of images side by side a tensor begins with."""
        find, count = self.links.find, 0
        batches = {find(dim) for dim in self.batches}
        for d, extent in enumerate(shape_of(value)[:-1]):
            if extent == 1 or find((value, d)) not in batches:
                break
            count += 1
        return count


def is_free(value: ir.Value) -> bool:
    """Whether a tensor is new, or filled with one number: made as it is needed."""
    owner = made_by(base(value))
    return owner is not None and (owner.name in MOVABLE or is_fill(owner.opview))


def is_plain(op: Op) -> bool:
    """Whether a slice is known while compiling, without steps."""
    few = len(list(op.operation.operands)) == (2 if op.operation.name == INSERT else 1)
    return few and set(op.operation.attributes["static_strides"]) <= {1}  # type: ignore[arg-type] - MLIR's stubs know no kinds of attributes


def read_edges(
    block: ir.Block, inputs_count: int, *, planes: bool = True, known: bool = True
) -> Edges:
    """The edges of a function; its first arguments are activations, others weights.

    planes: whether those of depthwise layers may be apart.  known: sizes of images are.
    """
    arguments = list(block.arguments)
    edges = Edges(set(arguments[inputs_count:]), planes, known)
    for argument in arguments[:inputs_count]:
        if is_tensor(argument) and len(shape_of(argument)) > 2:
            edges.batches.add((argument, 0))
    for op in block.operations:
        edges.visit(op)
    return edges
