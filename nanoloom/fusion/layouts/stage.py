"""The layouts of a network's tensors: what is chosen, and what else there was.

    edges -> costs -> choice -> the same function in those layouts

The order of a model's own inputs and outputs stays; a product reads channels first
where they lie so, and writes them first where a copy behind it would turn them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from math import isfinite

from nanoloom.fusion.layouts.apply import lay_out
from nanoloom.fusion.layouts.choose import Term, cheapest
from nanoloom.fusion.layouts.cost import Choices, terms_of
from nanoloom.fusion.layouts.edges import Edges, read_edges
from nanoloom.fusion.layouts.layout import LAST, Layout, candidates
from nanoloom.fusion.layouts.links import Dim, shape_of
from nanoloom.fusion.outline import layer_at
from nanoloom.graph.shared_decisions import SharedDecisions
from nanoloom.ir.mlir import ir, named
from nanoloom.ir.statement_names import NAME
from nanoloom.linalg.stage import LinalgModule
from nanoloom.target.facts import Target


@dataclass(frozen=True)
class Row:
    """The layout of some tensors, for people.

    layers: the products that make them.  shapes: theirs, channels last, with what lies
    around an image; each with how many there are.  others: cycles that each other
    layout costs more, those of the products and copies beside them counted.
    """

    layers: tuple[str, ...]
    element: str
    shapes: tuple[tuple[tuple[int, ...], int], ...]
    layout: Layout
    others: tuple[tuple[Layout, float], ...]

    def __str__(self) -> str:
        sizes = (f"{count} of {'x'.join(map(str, s))}" for s, count in self.shapes)
        first, *others = self.layers or ("-",)
        more = f" and {len(others)} more" if others else ""
        lines = [f"{first}{more}: {self.layout}"]
        lines.append(f"    {self.element}, {', '.join(sizes)}")
        for each, cycles in self.others:
            known = f"{cycles:+,.0f} cycles" if isfinite(cycles) else "no kernel"
            lines.append(f"    {each}: {known}")
        return "\n".join(lines)


@dataclass(frozen=True)
class Plan:
    """Layouts as they are chosen, and all that the choice was made of."""

    block: ir.Block
    edges: Edges
    choices: Choices
    terms: list[Term[Dim, Layout]]
    chosen: dict[Dim, Layout]

    def apply(self) -> None:
        """Give the function's tensors these layouts, in place."""
        if any(layout != LAST for layout in self.chosen.values()):
            lay_out(self.block, self.edges, self.chosen)

    def rows(self) -> Iterator[Row]:
        """One for each set of tensors that lie alike, in the function's order."""
        find, sets = self.edges.links.find, self.edges.links.sets()
        layers: dict[Dim, list[str]] = {}
        for made in self.edges.products:
            layers.setdefault(find(made.features), []).append(
                layer_at(made.op.operation)
            )
        for root, choices in self.choices.items():
            if len(choices) == 1 and choices[0] == LAST:
                continue
            layout = self.chosen[root]
            moved = [v for v, d in sets[root] if self.edges.is_moved(v, d)]
            shapes = Counter(tuple(shape_of(v)) for v in moved)
            element = str(ir.RankedTensorType(moved[0].type).element_type)
            names = tuple(dict.fromkeys(filter(None, layers.get(root, []))))
            others = [
                (o, self.more(root, o)) for o in self.choices[root] if o != layout
            ]
            yield Row(
                names, element, tuple(shapes.most_common()), layout, tuple(others)
            )

    def more(self, root: Dim, other: Layout) -> float:
        """What another layout of one set costs, beside those that are chosen."""
        near = [term for term in self.terms if root in term.variables]
        changed = {**self.chosen, root: other}
        return sum(t.at(changed) - t.at(self.chosen) for t in near)


def plan_layouts(
    lowered: LinalgModule,
    target: Target,
    only: Layout | None = None,
    alike: SharedDecisions | None = None,
    *,
    planes: bool = True,
) -> Plan:
    """The cheapest layouts of a module's tensors on a target.

    only: the one layout that all channels get that may have it.  alike: the samples
    that the module is one of; the layouts are those of the first.  planes: whether
    those of depthwise layers may be apart.
    """
    module = lowered.module
    block = module.body.operations[0].operation.regions[0].blocks[0]
    known = alike is None
    edges = read_edges(block, len(lowered.inputs), planes=planes, known=known)
    given = candidates(target.vector.min_bits // 32)
    choices = edges.channels(given if only is None else (LAST, only))
    if any(NAME in op.operation.attributes for op in named(module, "linalg.generic")):
        choices = {}  # somebody has named the loops, and says how they go
    if only is not None:
        choices = {dim: given[-1:] for dim, given in choices.items()}
    if alike is not None and alike.layouts is not None:
        pairs = zip(choices.items(), alike.layouts, strict=False)
        choices = {d: tuple(x for x in c if x == was) or c for (d, c), was in pairs}
    terms = terms_of(edges, choices, target)
    chosen = cheapest(choices, terms)
    if alike is not None:
        alike.layouts = tuple(chosen[dim] for dim in choices)
    return Plan(block, edges, choices, terms, chosen)
