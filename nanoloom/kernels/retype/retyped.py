"""Weights and activations of a module in another element type, each made once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from nanoloom.ir.linalg_query import (
    Kind,
    Op,
    body,
    filled_with,
    inputs,
    is_fill,
    is_generic,
    iterators,
    kind,
    maps,
)
from nanoloom.ir.make_generic import make_generic
from nanoloom.ir.mlir import arith, ir, linalg, tensor
from nanoloom.kernels.retype.parameters import Parameters
from nanoloom.linalg.builder.pointwise import pointwise
from nanoloom.linalg.builder.scalar import BFLOAT16
from nanoloom.linalg.stage import LinalgModule
from nanoloom.weights.derivations import Cast
from nanoloom.weights.weight import Weight

NO_SIGNED_ZEROS = "#arith.fastmath<nsz>"


class Retyped(Parameters):
    """What the operands of a module's sums are in another type of floats.

    Weights are converted while compiling, to parameters of their own; activations right
    behind where they are made.
    """

    def __init__(
        self, lowered: LinalgModule, element: ir.Type, dtype: np.dtype
    ) -> None:
        super().__init__(lowered)
        self.element, self.dtype = element, dtype
        self.made: dict[ir.Value, ir.Value] = {}
        self.exact: set[ir.Value] = set()  # values that rounding does not change

    def sum_of(self, op: ir.OpView, add_up: Callable[..., ir.Value]) -> None:
        """Replace a sum by one of the same operands in the other type.

        add_up: its body, of a number of each operand and the sum before them.
        """
        operands = list(op.operation.operands)
        given = [self.value(v) for v in operands[:2]]
        with ir.InsertionPoint(op), op.operation.location:
            made = make_generic(given, operands[2:], maps(op), iterators(op)).operation
            block = made.regions[0].blocks[0]
            with ir.InsertionPoint(block):
                linalg.YieldOp([add_up(*block.arguments)])
        op.operation.results[0].replace_all_uses_with(made.results[0])
        op.operation.erase()

    def value(self, value: ir.Value) -> ir.Value:
        """A value in the type."""
        if ir.RankedTensorType(value.type).element_type == self.element:
            return value
        if value not in self.made:
            parameter = self.parameter_of(value)
            self.made[value] = (
                self.activation(value) if parameter is None else self.weight(parameter)
            )
        return self.made[value]

    def weight(self, parameter: Weight) -> ir.Value:
        """A parameter of its own: the weight, rounded to nearest even by numpy."""
        return self.parameter(parameter.then(Cast(self.dtype)), self.element)

    def activation(self, value: ir.Value) -> ir.Value:
        """An activation, converted right behind where it is made.

        Of a border and of parts side by side what is inside: by whatever makes it.  The
        largest of some numbers is rounded as the largest of the rounded ones.
        """
        owner = value.owner
        if not isinstance(owner, ir.Block) and self.is_narrower(value):
            if is_known_part(owner):
                return self.part(owner)
            if is_fill(owner.opview):
                return self.fill(owner)
            if owner.name == "tensor.collapse_shape":
                return self.collapsed(owner)
            if is_maximum(owner.opview) and self.dtype == BFLOAT16:
                self.read_narrow(owner.opview)
        at_begin = isinstance(owner, ir.Block)
        place = (
            ir.InsertionPoint.at_block_begin(self.block)
            if at_begin
            else ir.InsertionPoint.after(owner)
        )
        with place, ir.Location.unknown() if at_begin else owner.location:
            target = tensor.empty(ir.RankedTensorType(value.type).shape, self.element)
            return pointwise([value], target, self.converted)

    def part(self, owner: ir.Operation) -> ir.Value:
        """A tensor with another one in it, both converted."""
        inside, around = (self.value(v) for v in owner.operands)
        with ir.InsertionPoint.after(owner), owner.location:
            numbers = (
                list(owner.attributes[f"static_{name}"])  # type: ignore[call-overload] - MLIR's stubs know no kinds of attributes
                for name in ("offsets", "sizes", "strides")
            )
            return tensor.InsertSliceOp(inside, around, [], [], [], *numbers).result

    def fill(self, owner: ir.Operation) -> ir.Value:
        """The same constant everywhere."""
        number = filled_with(owner.opview)
        with ir.InsertionPoint.after(owner), owner.location:
            kind = ir.RankedTensorType(owner.results[0].type)
            target = tensor.empty(kind.shape, self.element)
            return pointwise(
                [], target, lambda: self.converted(number.clone().results[0])
            )

    def collapsed(self, owner: ir.Operation) -> ir.Value:
        """The same numbers with fewer dimensions."""
        whole = self.value(owner.operands[0])
        with ir.InsertionPoint.after(owner), owner.location:
            shape = ir.RankedTensorType(owner.results[0].type).shape
            made = ir.RankedTensorType.get(shape, self.element)
            return tensor.collapse_shape(made, whole, owner.attributes["reassociation"])

    def read_narrow(self, op: Op) -> None:
        """Let a maximum's operand be bf16; its result stays as it is, but exact in it.

        Which of two zeros is larger costs half of its instructions, and is not asked.
        The numbers are widened as integers: LLVM would take the maximum in bf16, for
        which there are no instructions.
        """
        op.operation.operands[0] = self.value(inputs(op)[0])
        number = body(op).arguments[0]
        (largest, _) = body(op).operations
        largest.operation.attributes["fastmath"] = ir.Attribute.parse(NO_SIGNED_ZEROS)
        number.set_type(self.element)
        with ir.InsertionPoint.at_block_begin(body(op)), op.operation.location:
            short, word = map(ir.IntegerType.get_signless, (16, 32))
            bits = arith.bitcast(short, number)
            high = arith.shli(arith.extui(word, bits), arith.constant(word, 16))
            wide = arith.bitcast(ir.F32Type.get(), high)
        number.replace_all_uses_except(wide, bits.owner.operation)
        self.exact.add(op.operation.results[0])

    def is_narrower(self, value: ir.Value) -> bool:
        """Whether the type is narrower than that of a value's numbers."""
        kind = ir.RankedTensorType(value.type).element_type
        return self.element.width < kind.width  # type: ignore[attr-defined] - nor of types

    def converted(self, number: ir.Value) -> ir.Value:
        narrower = self.element.width < number.type.width  # type: ignore[attr-defined]
        return (arith.truncf if narrower else arith.extf)(self.element, number)


def is_known_part(owner: ir.Operation) -> bool:
    """Whether an operation puts a tensor at a place that is known."""
    return owner.name == "tensor.insert_slice" and len(owner.operands) == 2


def is_maximum(op: Op) -> bool:
    """Whether an operation is a pool, or another one, that takes the largest number."""
    if not is_generic(op) or kind(op) is not Kind.REDUCTION:
        return False
    first, *rest = (inner.operation for inner in body(op).operations)
    before, alone = body(op).arguments[-1], len(rest) == 1
    return alone and first.name == "arith.maximumf" and before in first.operands
