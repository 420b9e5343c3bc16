"""Whether a model computes each row of its batch alone, with nothing of the others.

Such a model is compiled for one row, and runs once for each (kernels/batch_loop.py): so
images of a batch are convolved, pooled and resized, one behind the other.  The model is
bound to three samples of its batch, and each value is one of

    rows     its first axis is the batch, or a number for each of it: [12 * batch, ...]
    alike    the same shape for every batch

What is computed of shapes may only be a shape again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import onnx_ir as ir

from nanoloom.dynamic import size_predicates
from nanoloom.dynamic.dynamic_refusal import NotDynamic
from nanoloom.dynamic.operators import attribute, is_alike, numbers, rank, sizes
from nanoloom.dynamic.sample_walk import NodeSample, Visit, Walks
from nanoloom.graph.layout_effects import ONE_TO_ONE, SPATIAL
from nanoloom.graph.operator_families import REDUCTIONS
from nanoloom.graph.operator_spec import Family
from nanoloom.graph.operator_specs import named

Visits = Sequence[Visit]
Rule = Callable[[Visits, "Rows"], bool]

# Each element from those at its place: of the same row where ranks are equal.
OF_ELEMENTS = ONE_TO_ONE | named(lambda spec: spec.family is Family.BY_PARAMETERS)
# By the definition of their first input: [batch, channels, ...].
OF_IMAGES = SPATIAL | named(lambda spec: spec.family is Family.IMAGE)
SHAPES = ("Shape", "Size")
BATCHES = (3, 5, 7)  # samples
# Which inputs may be numbers that are computed of shapes.
SHAPED = {"ConstantOfShape": (0,), "Expand": (1,), "Reshape": (1,), "Resize": (2, 3)}


def batch_of(shapes: Sequence[Sequence[int | str]], names: Sequence[str]) -> str:
    """The only open dimension, a first axis of inputs; raises Differs for others.

    Without a reason for more than one: why sizes do not do says enough.
    """
    if len(names) > 1:
        raise NotDynamic("")
    if any(d in names for shape in shapes for d in shape[1:]):
        raise NotDynamic("its only dimension is no batch")
    return names[0]


def require_rows(walks: Walks, batch: str, outputs: Sequence[str | None]) -> None:
    """Raise Differs for a model whose rows depend on each other.

    batch: the dimension that has a number for each of BATCHES.  outputs: of the model.
    """
    rows, samples = Rows(BATCHES), [{batch: n} for n in BATCHES]
    for name in walks.through(samples[:1])[0].counted:  # before the others are walked
        raise NotDynamic(f"{name}: a shape depends on the data")
    walked = walks.through(samples)
    for visits in zip(*[walk.visits for walk in walked], strict=True):
        try:
            rows.node(visits)
        except NotDynamic as reason:
            raise NotDynamic(f"{visits[0].name} {reason}") from None
    for name in outputs:
        if name not in rows.made:
            raise NotDynamic(f"output {name} is not of rows")


@dataclass
class Rows:
    """The walk through all samples at once.

    shaped: constants that are computed of shapes.  made: values that are rows.
    """

    batches: Sequence[int]
    shaped: set[str] = field(default_factory=set[str])
    made: set[str] = field(default_factory=set[str])

    def node(self, visits: Visits) -> None:
        first = visits[0]
        if any(is_body(x) for x in first.node.attributes.values()):
            raise NotDynamic("has a body")
        given = [i for i, x in enumerate(first.inputs) if x and x.name in self.shaped]
        if first.operator in SHAPES:
            self.shaped |= {x.name for x in first.outputs}
            return
        made = [self.is_rows(row) for row in self.outputs(visits)]
        if given and all(x.is_known for x in first.outputs) and not any(made):
            samples = [{"batch": n} for n in self.batches]
            if not size_predicates.is_right(visits, samples):
                raise NotDynamic("decides by a size")
            self.shaped |= {
                row[0].name
                for row in self.outputs(visits)
                if size_predicates.is_dynamic([x.numbers for x in row])
            }
            return
        if not set(given) <= set(SHAPED.get(first.operator, ())):
            raise NotDynamic("computes with the batch")
        read = any(self.is_rows(row) for row in self.inputs(visits))
        if not read and not any(made):
            return
        if not all(made):
            raise NotDynamic("mixes rows of the batch")
        if not self.keeps(visits):
            raise NotDynamic("may mix rows of the batch")
        self.made |= {x.name for x in first.outputs}

    def keeps(self, visits: Visits) -> bool:
        """Whether each row of the outputs is made of the same row of the inputs."""
        operator = visits[0].operator
        if operator in OF_ELEMENTS:
            return all(
                rank(visits, i) == len(visits[0].outputs[0].shape or ())
                for i in self.rows(visits)
            )
        if operator in OF_IMAGES:
            trained = attribute(visits, "training_mode", 0)
            return self.rows(visits) == [0] and not trained
        rule = RULES.get(operator)
        return rule is not None and rule(visits, self)

    def rows(self, visits: Visits) -> list[int]:
        """Which inputs have the batch as their first axis."""
        return [i for i, row in enumerate(self.inputs(visits)) if self.is_rows(row)]

    def is_rows(self, row: Sequence[NodeSample | None]) -> bool:
        """Of a value's samples; raises Differs where another axis depends on it."""
        shapes = [x.shape for x in row if x is not None]
        if len(set(shapes)) <= 1:
            return False
        known = [shape for shape in shapes if shape is not None]
        pairs = zip(known, self.batches, strict=False)
        times = {divmod(shape[0], n) for shape, n in pairs if shape}
        right = len(known) == len(shapes) and len(times) == 1 and times.pop()[1] == 0
        if not right or len({shape[1:] for shape in known}) > 1:
            raise NotDynamic("has the batch in another axis")
        return True

    def inputs(self, visits: Visits) -> list[tuple[NodeSample | None, ...]]:
        return list(zip(*[v.inputs for v in visits], strict=True))

    def outputs(self, visits: Visits) -> list[tuple[NodeSample, ...]]:
        return list(zip(*[v.outputs for v in visits], strict=True))


def is_body(found: ir.Attr) -> bool:
    """Whether it is a graph, which reads what it likes."""
    return found.type in (ir.AttributeType.GRAPH, ir.AttributeType.GRAPHS)


def along(default: int) -> Rule:
    """An operator along one axis, which is not the batch."""

    def rule(visits: Visits, rows: Rows) -> bool:
        axis = attribute(visits, "axis", default)
        return axis % rank(visits) != 0 and rows.rows(visits) == [0]

    return rule


def reduced(visits: Visits, rows: Rows) -> bool:
    """Axes are named, none of them the batch."""
    found = visits[0].node.attributes.get("axes")
    axes = list(found.as_ints()) if isinstance(found, ir.Attr) else []
    axes += [each[0] for each in numbers(visits, 1) or [] if is_alike(each)]
    kept = all(axis % rank(visits) != 0 for axis in axes)
    return bool(axes) and kept and rows.rows(visits) == [0]


def joined(visits: Visits, rows: Rows) -> bool:
    every = len(rows.rows(visits)) == len(visits[0].inputs)
    return every and attribute(visits, "axis", 0) % rank(visits) != 0


def reshaped(visits: Visits, rows: Rows) -> bool:
    """In row-major order a row stays where the first axis stays."""
    return rows.rows(visits) == [0]


def squeezed(visits: Visits, rows: Rows) -> bool:
    """Axes are named: without, a batch of one would go, too."""
    named = "axes" in visits[0].node.attributes or len(visits[0].inputs) > 1
    return named and reshaped(visits, rows)


def transposed(visits: Visits, rows: Rows) -> bool:
    found = visits[0].node.attributes.get("perm")
    return isinstance(found, ir.Attr) and list(found.as_ints())[:1] == [0]


def multiplied(visits: Visits, rows: Rows) -> bool:
    """[batch, ..., k] by [k, n], or products of equal ranks, one a row."""
    ranks = [rank(visits, 0), rank(visits, 1)]
    if rows.rows(visits) == [0]:
        return ranks[1] <= max(ranks[0], 2) and (ranks[0] != 2 or ranks[1] == 2)
    return ranks[0] == ranks[1] > 2 or (rows.rows(visits) == [1] and ranks[1] > 2)


def affine(visits: Visits, rows: Rows) -> bool:
    """Gemm: the rows of its first operand."""
    return not attribute(visits, "transA", 0) and set(rows.rows(visits)) <= {0, 2}


def gathered(visits: Visits, rows: Rows) -> bool:
    """Along other axes, or one entry of a table for each index of the rows."""
    axis = attribute(visits, "axis", 0) % rank(visits)
    return rows.rows(visits) == ([0] if axis else [1])


def gathered_elements(visits: Visits, rows: Rows) -> bool:
    axis = attribute(visits, "axis", 0) % rank(visits)
    return axis != 0 and rows.rows(visits) == [0, 1]


def sliced(visits: Visits, rows: Rows) -> bool:
    axes = numbers(visits, 3)
    named = axes is not None and all(each[0] % rank(visits) for each in axes)
    return named and rows.rows(visits) == [0]


def padded(visits: Visits, rows: Rows) -> bool:
    """Nothing in front of the first axis, nothing behind it."""
    pads, count = numbers(visits, 1), rank(visits)
    if len(visits[0].inputs) > 3:  # axes in an order of their own
        return False
    if pads is None or len(pads) != 2 * count or rows.rows(visits) != [0]:
        return False
    return not any(pads[0]) and not any(pads[count])


def resized(visits: Visits, rows: Rows) -> bool:
    """As many rows as before: each lies where it lay."""
    after: list[Sequence[object]] = [visit.outputs[0].shape or () for visit in visits]
    if [shape[0] for shape in after] != [*sizes(visits, 0, 0)]:
        return False
    mode = visits[0].node.attributes.get("coordinate_transformation_mode")
    cropped = isinstance(mode, ir.Attr) and mode.as_string() == "tf_crop_and_resize"
    return not cropped and rows.rows(visits) == [0]


def expanded(visits: Visits, rows: Rows) -> bool:
    """The same for every row, or rows along other axes."""
    made = len(visits[0].outputs[0].shape or ())
    if rows.rows(visits):
        return rank(visits) == made
    return rank(visits) < made or set(sizes(visits, 0, 0)) == {1}


def filled(visits: Visits, rows: Rows) -> bool:
    return True


RULES: dict[str, Rule] = {
    "ArgMax": along(0),
    "ArgMin": along(0),
    "Concat": joined,
    "ConstantOfShape": filled,
    "Expand": expanded,
    "Flatten": reshaped,
    "Gather": gathered,
    "GatherElements": gathered_elements,
    "Gemm": affine,
    "LayerNormalization": along(-1),
    "LogSoftmax": along(-1),
    "MatMul": multiplied,
    "MatMulInteger": multiplied,
    "Pad": padded,
    "RMSNormalization": along(-1),
    "Reshape": reshaped,
    "Resize": resized,
    "Slice": sliced,
    "Softmax": along(-1),
    "Split": along(0),
    "Squeeze": squeezed,
    "Transpose": transposed,
    "Unsqueeze": reshaped,
    **dict.fromkeys(REDUCTIONS, reduced),
}
