"""Nodes that take the place of one whose shapes depend on data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx_ir as ir

from nanoloom.errors import DataDependent
from nanoloom.graph.data_dependent.count import (
    COUNT,
    Count,
    Counts,
    Size,
    counts_of,
    most_of,
    set_counts,
)
from nanoloom.graph.data_dependent.decisions import Decisions
from nanoloom.graph.data_dependent.dynamic_bounds import dynamic_rules
from nanoloom.graph.data_dependent.integer_bounds import KEY, Limits, limits_of
from nanoloom.graph.inference import infer
from nanoloom.graph.splice import substitute
from nanoloom.graph.types import deciding_sources, shape_of
from nanoloom.graph.unique_names import Names

MADE = "nanoloom.made"  # in the `meta` of a node that keeps to the counts itself
OPSET = 18  # of the operators that are made here
DOMAIN = "nanoloom"  # of operators that ONNX does not have
INT64 = ir.TensorType(ir.DataType.INT64)
Attribute = int | Sequence[int]


@dataclass
class Maker:
    """Makes nodes behind `node`, each behind the last one, and replaces it.

    version: of ONNX's operators in the model.  deciding: inputs whose values decide
    about the shapes of the outputs.  decided: by what extents are.
    """

    graph: ir.Graph
    node: ir.Node
    names: Names
    version: int
    deciding: Sequence[int] = ()
    decided: Decisions = field(default_factory=Decisions)
    last: ir.Node = field(init=False)

    def __post_init__(self) -> None:
        self.last = self.node
        self.decided.where = self.where

    @property
    def where(self) -> str:
        return f"node {self.node.name} ({self.node.op_type})"

    def attribute(self, name: str, default: int) -> int:
        found = self.node.attributes.get(name)
        return default if found is None else found.as_int()

    def input(self, index: int) -> ir.Value:
        found = self.optional(index)
        assert found is not None, self.where
        return found

    def optional(self, index: int) -> ir.Value | None:
        return self.node.inputs[index] if index < len(self.node.inputs) else None

    def limits(self, value: ir.Value) -> Limits:
        """What each element of a small tensor of integers may be."""
        is_open = self.decided.is_open
        return limits_of(value, dynamic_rules(self.decided) if is_open else None)

    def refused(self, reason: str) -> DataDependent:
        """What no rule does: the values of the inputs at fault would help."""
        counts = [c for x in self.node.inputs for c in counts_of(x).values()]
        names = [n for count in counts for n in count.sources] or self.sources()
        first = f"; {counts[0].where} decides about a shape" if counts else ""
        return DataDependent(
            f"{reason}{first}",
            tuple(dict.fromkeys(names)),
            where=self.where,
            hint="export the model with a fixed size there",
        )

    def sources(self) -> list[str]:
        """The model's inputs that decide about the shapes of the node's outputs."""
        return [name for x in self.decided_by() for name in deciding_sources(x)]

    def decided_by(self) -> list[ir.Value | None]:
        """The inputs that decide about the shapes of the node's outputs."""
        return [self.optional(i) for i in self.deciding]

    # ---- nodes

    def one(
        self,
        op: str,
        *inputs: ir.Value | None,
        **attributes: Attribute,
    ) -> ir.Value:
        """The output of one of ONNX's operators."""
        given = converted(attributes)
        return self.placed(op, inputs, given, 1, "", OPSET)[0]

    def again(
        self, *inputs: ir.Value | None, drop: Sequence[str] = ()
    ) -> Sequence[ir.Value]:
        """The node's operator on other inputs."""
        node = self.node
        given = {k: v for k, v in node.attributes.items() if k not in drop}
        version = node.version or self.version
        outputs = len(node.outputs)
        made = self.placed(node.op_type, inputs, given, outputs, node.domain, version)
        for old, new in zip(node.outputs, made, strict=True):
            new.name = new.name if old.name else ""
        return made

    def placed(
        self,
        op: str,
        inputs: Sequence[ir.Value | None],
        attributes: Mapping[str, ir.Attr],
        outputs: int,
        domain: str,
        version: int,
    ) -> Sequence[ir.Value]:
        name = self.names.node(f"{self.node.name}/{op}")
        node = ir.Node(
            domain, op, inputs, attributes.values(), num_outputs=outputs,
            version=version, name=name,
        )  # fmt: skip
        node.meta[MADE] = True
        for value in node.outputs:
            value.name = self.names.value(name)
        self.graph.insert_after(self.last, node)
        self.last = node
        infer(node, {"": self.version})  # its outputs' shapes are asked for here
        return node.outputs

    def own(
        self,
        op: str,
        inputs: Sequence[ir.Value | None],
        outputs: Sequence[tuple[Sequence[int], ir.TypeProtocol]],
        **attributes: Attribute,
    ) -> Sequence[ir.Value]:
        """A node of nanoloom's own operators, whose shapes and types nobody infers."""
        given, count = converted(attributes), len(outputs)
        made = self.placed(op, inputs, given, count, DOMAIN, OPSET)
        for value, (shape, kind) in zip(made, outputs, strict=True):
            value.shape, value.type = ir.Shape(shape), kind
        return made

    def replace(self, *found: tuple[ir.Value, Counts]) -> None:
        """Other values, with their counts, for the node's outputs; the node goes."""
        for old, (new, counts) in zip(self.node.outputs, found, strict=False):
            old.shape = None  # as declared: of another size
            set_counts(new, counts)
        substitute(self.graph, self.node, [new for new, _ in found])

    # ---- constants and numbers

    def constant(self, array: np.ndarray) -> ir.Value:
        name = self.names.value(f"{self.node.name}/constant")
        made = ir.Value(
            name=name,
            shape=ir.Shape(array.shape),
            type=ir.TensorType(ir.DataType.from_numpy(array.dtype)),
            const_value=ir.Tensor(array, name=name),
        )
        root = self.graph
        root.register_initializer(made)
        return made

    def ints(self, *numbers: int) -> ir.Value:
        return self.constant(np.array(numbers, np.int64))

    def number(self, size: Size | ir.Value) -> ir.Value:
        """A size as a tensor, int64 [1]."""
        if isinstance(size, Count):
            return size.value
        return size if isinstance(size, ir.Value) else self.ints(size)

    def flat(self, value: ir.Value, dtype: bool = True) -> ir.Value:
        """An integer of any shape as int64 [1]."""
        if dtype and value.dtype != ir.DataType.INT64:
            value = self.one("Cast", value, to=int(ir.DataType.INT64))
        if value.shape is not None and value.shape == ir.Shape([1]):
            return value
        return self.one("Reshape", value, self.ints(1))

    def count(self, value: ir.Value, most: int, *of: Size) -> Count:
        """The program's number `value`, int64 [1], which `of` decide about."""
        value.meta[KEY] = 0, most
        value.shape, value.type = ir.Shape([1]), INT64
        others = [x for x in of if isinstance(x, Count)]
        where = others[0].where if others else self.where
        deciding = dict.fromkeys(v for x in others for v in x.deciding)
        deciding = deciding if others else dict.fromkeys(self.decided_by())
        value.meta[COUNT] = made = Count(value, most, where, tuple(deciding))
        return made

    def times(self, sizes: Sequence[Size]) -> Size:
        """Their product."""
        known = int(np.prod([s for s in sizes if isinstance(s, int)], dtype=np.int64))
        counts = [s for s in sizes if isinstance(s, Count)]
        if not counts or known == 0:
            return known
        made, most = counts[0].value, counts[0].most
        for other in counts[1:]:
            made, most = self.one("Mul", made, other.value), most * other.most
        if known != 1:
            made, most = self.one("Mul", made, self.ints(known)), most * known
        only = len(counts) == 1 and known == 1
        return counts[0] if only else self.count(made, most, *counts)

    def total(self, sizes: Sequence[Size]) -> Size:
        """Their sum."""
        known = sum(s for s in sizes if isinstance(s, int))
        counts = [s for s in sizes if isinstance(s, Count)]
        if not counts:
            return known
        made = counts[0].value
        for other in counts[1:]:
            made = self.one("Add", made, other.value)
        made = self.one("Add", made, self.ints(known)) if known else made
        if made is counts[0].value:
            return counts[0]
        return self.count(made, known + sum(c.most for c in counts), *counts)

    def same(self, one: Size, other: Size) -> Size:
        """A size that is both; the program says so where they differ."""
        if isinstance(one, int) and isinstance(other, int):
            return self.decided.bound(one, other)
        for size in (one, other):
            if isinstance(size, int) and size > 1:  # 1 would be broadcast
                self.decided.require(np.array(size - 2))
        a, b = self.number(one), self.number(other)
        if a is b:
            assert isinstance(one, Count)
            return one.limited(self.decided.bound(most_of(one), most_of(other)))
        (made,) = self.own("SameSize", [a, b], [([1], INT64)])
        most = self.decided.bound(most_of(one), most_of(other))
        return self.count(made, most, one, other)

    # ---- elements

    def positions(self, extent: int, rank: int = 1, axis: int = 0) -> ir.Value:
        """0, 1, 2 ... along one of `rank` axes."""
        shape = [1] * rank
        shape[axis] = extent
        if not self.decided.is_open:
            return self.constant(np.arange(extent, dtype=np.int64).reshape(shape))
        numbers = [self.constant(np.array(n)) for n in (0, extent, 1)]
        made = self.one("Range", *numbers)
        return self.one("Reshape", made, self.ints(*shape), allowzero=1)

    def filled(self, x: ir.Value, number: float, axes: Sequence[int]) -> ir.Value:
        """x with a number in all that does not count along these axes."""
        shape, counts = shape_of(x), counts_of(x)
        for axis in axes:
            if axis in counts and 0 not in shape:
                x = self.bounded(x, shape, axis, counts[axis], np.array(number))
        return set_counts(x, counts)

    def bounded(
        self, x: ir.Value, shape: Sequence[int], axis: int, size: Size, fill: np.ndarray
    ) -> ir.Value:
        """x of this shape with other numbers from a place of an axis on."""
        assert x.dtype is not None
        ones = [1] * (len(shape) - fill.ndim)
        given = fill.astype(x.dtype.numpy()).reshape([*ones, *fill.shape])
        here = self.positions(shape[axis], len(shape), axis)
        inside = self.one("Less", here, self.number(size))
        return self.one("Where", inside, x, self.constant(given))

    def cut(self, x: ir.Value, axis: int, extent: int) -> ir.Value:
        """The first elements along an axis, which has more.

        Sizes may be in another order than those of a sample: then any stand behind.
        """
        shape = list(shape_of(x))
        if shape[axis] == extent:
            return x
        if self.decided.is_open:
            last = self.ints(self.decided.last(shape[axis]))
            at = self.one("Min", self.positions(extent), last)
            return set_counts(self.one("Gather", x, at, axis=axis), counts_of(x))
        given = self.ints(0), self.ints(extent), self.ints(axis)
        made = self.one("Slice", x, *given)
        shape[axis] = extent
        return set_counts(made, counts_of(x))


def converted(attributes: Mapping[str, Attribute]) -> Mapping[str, ir.Attr]:
    return {k: ir.convenience.convert_attribute(k, v) for k, v in attributes.items()}
