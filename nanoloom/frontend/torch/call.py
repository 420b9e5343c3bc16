"""One call of an operator in a graph of torch: its arguments by name, its result."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir
import torch
from torch import fx

from nanoloom.errors import Unsupported
from nanoloom.frontend.torch.element_types import element_type
from nanoloom.frontend.torch.sizes import Sizes
from nanoloom.frontend.torch.writer import Writer

NUMBERS = (bool, int, float, torch.SymInt, torch.SymFloat, torch.SymBool)
NORMALIZATIONS = ("aten::batch_norm", "aten::native_batch_norm", "aten::instance_norm")
# That a condition holds is what Dynamo's guards and export's constraints are for.
ASSERTIONS = (
    "_assert_async", "_assert_scalar", "_assert_tensor_metadata", "sym_constrain_range",
    "sym_constrain_range_for_size", "_linalg_check_errors",
)  # fmt: skip
LEFT = 'torch.compile(module, backend="nanoloom") leaves it to torch, without fullgraph'


class Call:
    """What an operator's function gets.  w: writes nodes.  args: by schema names.

    changed: inputs that the graph writes to.
    """

    def __init__(
        self, node: fx.Node, writer: Writer, sizes: Sizes,
        values: Mapping[fx.Node, Any], changed: Collection[fx.Node] = (),
    ) -> None:  # fmt: skip
        self.changed = changed
        self.node, self.w, self.sizes, self.values = node, writer, sizes, values
        self.args = arguments(node)
        self.out: Any = node.meta.get("val")

    # ---- the result

    @property
    def shape(self) -> list[int | ir.Value]:
        return self.sizes.all(self.out.shape)

    @property
    def rank(self) -> int:
        return self.out.dim()

    @property
    def dtype(self) -> ir.DataType:
        out = self.out[0] if isinstance(self.out, tuple | list) else self.out
        return element_type(out.dtype, self.node.name)

    def refuse(self, reason: str, hint: str = "") -> Unsupported:
        where = f"node {self.node.name} ({self.node.target})"
        return Unsupported(reason, where=where, hint=hint)

    # ---- arguments

    def __getitem__(self, name: str) -> Any:
        return self.args.get(name)

    def has(self, name: str) -> bool:
        return self.args.get(name) is not None

    def fake(self, name: str) -> torch.Tensor:
        """What torch knows of a tensor: shape and element type, no numbers."""
        return fake_of(self.args[name])

    def fakes(self, name: str) -> list[torch.Tensor]:
        return [fake_of(x) for x in self.args[name]]

    def input_rank(self, name: str) -> int:
        return self.fake(name).dim()

    def type_of(self, name: str) -> ir.DataType:
        return element_type(self.fake(name).dtype, self.node.name)

    def axis(self, name: str, of: str | int = "self") -> int:
        """An axis from the front."""
        rank = of if isinstance(of, int) else self.input_rank(of)
        dim = int(self.args[name])
        return dim + max(rank, 1) if dim < 0 else dim

    def axes(self, name: str, of: str = "self") -> list[int]:
        """Axes from the front; all of them where none is given."""
        given, rank = self.args.get(name), self.input_rank(of)
        if given is None or given == []:
            return list(range(rank))
        each = given if isinstance(given, list | tuple) else [given]
        return [d + max(rank, 1) if d < 0 else d for d in each]

    def extent(self, name: str, axis: int) -> int | ir.Value:
        return self.sizes.of(self.fake(name).shape[axis])

    def of(self, argument: object, dtype: ir.DataType | None = None) -> ir.Value:
        """A tensor or a number as a value, cast where a type is wanted."""
        if isinstance(argument, NUMBERS) and not isinstance(argument, fx.Node):
            return self._number(argument, dtype or self.dtype)
        value = self.values[argument]  # type: ignore[index]
        return self.of_value(value, dtype or self.dtype if is_number(value) else dtype)

    def of_value(self, value: Any, dtype: ir.DataType | None) -> ir.Value:
        """A number as a constant of a type; a value, cast where a type is wanted."""
        if is_number(value):
            assert dtype is not None
            return self._number(value, dtype)
        return self.w.cast(value, dtype) if dtype is not None else value

    def _number(self, number: Any, dtype: ir.DataType) -> ir.Value:
        if isinstance(number, torch.SymInt):
            found = self.sizes.of(number)
            if not isinstance(found, int):
                return self.w.cast(found, dtype)
            number = found
        if dtype.name.startswith("UINT"):  # torch wraps -1 around
            return self.w.constant(np.asarray(number).astype(dtype.numpy()), dtype)
        return self.w.constant(number, dtype)

    def value(self, name: str, dtype: ir.DataType | None = None) -> ir.Value:
        return self.of(self.args[name], dtype)

    def optional(self, name: str, dtype: ir.DataType | None = None) -> ir.Value | None:
        return self.value(name, dtype) if self.has(name) else None

    def tensors(self, name: str, dtype: ir.DataType | None = None) -> list[ir.Value]:
        return [self.of(x, dtype) for x in self.args[name]]

    def size(self, argument: object) -> int | ir.Value:
        """A number or a symbolic size: an int or a 0-d value."""
        if isinstance(argument, fx.Node):
            return self.values[argument]
        if isinstance(argument, int | torch.SymInt):
            return self.sizes.of(argument)
        raise self.refuse(f"has {argument!r} where a size is wanted")

    def vector(self, sizes: Sequence[object]) -> ir.Value:
        return self.w.ints([self.size(x) for x in sizes])

    def number(self, name: str) -> Any:
        """A number that is known while compiling."""
        given = self.args[name]
        if isinstance(given, fx.Node):
            given = given.meta.get("val")
        if isinstance(given, torch.SymInt | torch.SymFloat | torch.SymBool):
            constant = given.node.maybe_as_int()
            if constant is None:
                constant = given.node.maybe_as_float()
            if constant is None:
                raise self.refuse(f"has a {name} that is computed: {given}")
            return constant
        return given

    def attribute(self, number: Any, dtype: ir.DataType) -> float:
        """A number as an attribute, of which ONNX keeps 32 bits.

        Raises Unsupported where more are computed with: with constants, it is exact.
        """
        value = float(number)
        if dtype == ir.DataType.DOUBLE and float(np.float32(value)) != value:
            raise self.refuse(f"has {value}, of which an attribute keeps 32 bits")
        return value

    def numbers(self, name: str, count: int = 0) -> list[int]:
        """Numbers, one of which stands for all of them."""
        given = self.args[name]
        each = list(given) if isinstance(given, list | tuple) else [given]
        known = [int(x) for x in each if isinstance(x, int)]
        if len(known) < len(each):
            raise self.refuse(f"has a {name} that is computed: {given}")
        return known * count if len(known) == 1 and count else known


def is_number(value: object) -> bool:
    return isinstance(value, int | float | bool)


def fake_of(argument: Any) -> Any:
    return argument.meta["val"] if isinstance(argument, fx.Node) else argument


def arguments(node: fx.Node) -> dict[str, Any]:
    """Positional and keyword arguments, and defaults, by the names of the schema."""
    schema = getattr(node.target, "_schema", None)
    if schema is None:
        return {str(i): x for i, x in enumerate(node.args)} | dict(node.kwargs)
    given: dict[str, Any] = {}
    for place, argument in enumerate(schema.arguments):
        if place < len(node.args):
            given[argument.name] = node.args[place]
        elif argument.name in node.kwargs:
            given[argument.name] = node.kwargs[argument.name]
        elif argument.has_default_value():
            given[argument.name] = argument.default_value
    return given


def name_of(target: Any) -> str:
    """Of an overload, without its namespace and without the overload's own name."""
    text = getattr(target, "name", lambda: "")
    found = text() if callable(text) else ""
    return found.rpartition("::")[2].partition(".")[0]


def is_assertion(target: Any) -> bool:
    """Whether an operator only says that a condition holds."""
    return name_of(target) in ASSERTIONS


def is_mutation(node: fx.Node) -> bool:
    """Whether a node changes one of its tensors in place."""
    schema = getattr(node.target, "_schema", None)
    if node.op != "call_function" or schema is None:
        return False
    return schema.is_mutable or keeps_statistics(node)


def keeps_statistics(node: fx.Node) -> bool:
    """Whether a node changes statistics that it is given, of which no schema tells."""
    target: Any = node.target
    if target.name().partition(".")[0] not in NORMALIZATIONS:
        return False
    given = arguments(node)
    of_batch = given.get("training") or given.get("use_input_stats")
    return bool(of_batch) and isinstance(given["running_mean"], fx.Node)
