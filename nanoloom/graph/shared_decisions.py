"""What is decided for the first of several samples of a model, and holds for all.

They become one program (dynamic/), so what is chosen by what it costs must not differ.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace

import onnx_ir as ir

from nanoloom.graph.data_dependent.decisions import Way

WHOLE_PADS = "whole_pads"  # of a node with windows: its pads, whatever windows reach
COUNTED = "nanoloom_counted"  # of a node whose image's extents are sizes
COUNTING = ("AveragePool", "LpPool", "MaxPool")  # what lies in their windows
SMALL_BATCH = "nanoloom_small_batch"  # of a node of trees: it has few rows to walk
TREES = ("TreeEnsemble", "TreeEnsembleClassifier", "TreeEnsembleRegressor")
RESIZED = "nanoloom_resized"  # of such a node: the axes that some sizes change
RESIZING = ("Resize", "Upsample")  # by tables, which sizes decide about
PLACING = ("CenterCropPad", "Col2Im", "MaxUnpool")  # what sizes say where
BY_SIZES = (*COUNTING, *RESIZING, *PLACING)


@dataclass
class SharedDecisions:
    """tiles: of convolutions by Winograd's method.  layouts: of sets of tensors.

    Both in the order of the graph; None before the first sample.  tiles_of_few: those
    for images of few pixels.  images: numbers may be of pixels, and are no arguments.
    ways: which bounds are taken (graph/counted/).  fixed: nodes of windows and tables
    that are the same in all samples.  resized: along which axes some of them resize an
    image.  unfit: branches that not all samples run.
    by_rows: it has nodes that are computed otherwise for a few rows.  small_batch: for
    those.
    """

    images: bool = False
    tiles: tuple[int | None, ...] | None = None
    tiles_of_few: tuple[int | None, ...] | None = None
    layouts: tuple[Hashable, ...] | None = None
    ways: Sequence[Way] | None = None
    fixed: Set[str] = frozenset()
    unfit: Set[str] = frozenset()
    resized: Mapping[str, Set[int]] = field(default_factory=dict[str, Set[int]])
    by_rows: bool = False
    small_batch: bool = False

    def for_few_pixels(self) -> SharedDecisions | None:
        """The same for images of few pixels; None where their tiles are no others."""
        if not self.images or self.tiles_of_few in (None, self.tiles):
            return None
        return SharedDecisions(
            self.images,
            self.tiles_of_few,
            ways=self.ways,
            fixed=self.fixed,
            unfit=self.unfit,
            resized=self.resized,
        )

    def for_small_batch(self) -> SharedDecisions | None:
        """The same for few rows; None where these are no others."""
        if not self.by_rows:
            return None
        return replace(self, small_batch=True, layouts=None)


def note_rows(graph: ir.Graph, alike: SharedDecisions) -> None:
    """Say to nodes of trees that they have few rows, where it is so."""
    nodes = [node for node in graph if node.op_type in TREES]
    alike.by_rows = bool(nodes)
    for node in nodes if alike.small_batch else ():
        node.attributes.add(ir.AttrInt64(SMALL_BATCH, 1))


def keep_pads(graph: ir.Graph) -> None:
    """Let nodes pad as they say, in place: how far windows reach depends on sizes."""
    for node in graph:
        if node.op_type == "Conv" or {"pads", "ceil_mode"} & {*node.attributes}:
            node.attributes.add(ir.AttrInt64(WHOLE_PADS, 1))


def count_in_place(graph: ir.Graph, alike: SharedDecisions) -> None:
    """Let windows count what lies within them when a program runs, in place.

    And let images be resized by tables that it computes, or lie where it computes; not
    in nodes of which it is known.
    """
    for node in graph:
        if node.op_type in BY_SIZES and node.name not in alike.fixed:
            node.attributes.add(ir.AttrInt64(COUNTED, 1))
            axes = sorted(alike.resized.get(node.name or "", ()))
            node.attributes.add(ir.AttrInt64s(RESIZED, axes))


def turn_resized(node: ir.Node, order: Sequence[int]) -> None:
    """Let a node's axes be those of an image that is transposed behind it."""
    if (axes := node.attributes.get(RESIZED)) is not None:
        turned = [order[axis] for axis in axes.as_ints()]
        node.attributes[RESIZED] = ir.AttrInt64s(RESIZED, turned)
