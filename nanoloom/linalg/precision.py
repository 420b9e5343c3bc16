"""`--precision bf16`: contractions multiply bf16 numbers and add in f32.

    f32 = contract(a: f32, b: f32)   ->   f32 = contract(bf16(a), bf16(b))

where its last sum has LEAST numbers or more: shorter ones gain nothing.
Weights are converted once, while compiling; activations where they are made, those of
attention included.  Sums, softmax, normalization and everything else stay in f32.
Never chosen silently.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from nanoloom.linalg.pointwise import pointwise
from nanoloom.linalg.scalar import BFLOAT16
from nanoloom.linalg.stage import LinalgModule, Parameter, name_arguments
from nanoloom.mlir import arith, ir, linalg, named, tensor

IsProduct = Callable[[ir.OpView], bool]
# A nanokernel takes several numbers at once, tile registers up to 32 in the same time.
# Over fewer of them multiply-adds in f32 are faster, measured on channels of images.
LEAST = 8


def to_bf16(lowered: LinalgModule, is_product: IsProduct) -> LinalgModule:
    """Lower the precision of every long sum that is_product says yes to.

    Raises nothing.
    """
    main = lowered.module.body.operations[0]
    conversion = Conversion(lowered, main)
    for op in named(lowered.module, "linalg.generic"):
        top = op.operation.parent
        if top is None or top.name != "func.func" or not is_product(op):
            continue
        conversion.convert(op)
    made = replace(lowered, parameters=tuple(conversion.parameters))
    block = main.operation.regions[0].blocks[0]
    results = list(main.operation.attributes["function_type"].value.results)  # type: ignore[attr-defined]
    signature = ir.FunctionType.get([a.type for a in block.arguments], results)
    main.operation.attributes["function_type"] = ir.TypeAttr.get(signature)
    name_arguments(main, made.inputs, made.parameters)  # type: ignore[arg-type]
    lowered.module.operation.verify()
    return made


class Conversion:
    """Values in bf16 by their f32 value, each made once."""

    def __init__(self, lowered: LinalgModule, main: ir.OpView) -> None:
        self.block = main.operation.regions[0].blocks[0]
        self.parameters: list[Parameter] = list(lowered.parameters)
        self.input_count = len(lowered.inputs)
        self.made: dict[ir.Value, ir.Value] = {}

    def convert(self, op: ir.OpView) -> None:
        operands = list(op.operation.operands)
        kinds = [ir.RankedTensorType(v.type) for v in operands]
        if any(str(k.element_type) != "f32" for k in kinds):
            return
        if last_extent(op, kinds) < LEAST:
            return
        narrow = [self.narrow(v) for v in operands[:2]]
        indexings = op.operation.attributes["indexing_maps"]
        made = linalg.GenericOp(
            [operands[2].type],
            narrow,
            [operands[2]],
            indexings,
            op.operation.attributes["iterator_types"],
            ip=ir.InsertionPoint(op),
            loc=op.operation.location,
        )
        bf16, f32 = ir.BF16Type.get(), ir.F32Type.get()
        block = made.regions[0].blocks.append(bf16, bf16, f32)
        with ir.InsertionPoint(block), op.operation.location:
            wide = [arith.extf(f32, x) for x in list(block.arguments)[:2]]
            total = arith.addf(block.arguments[2], arith.mulf(*wide))
            linalg.YieldOp([total])
        op.operation.results[0].replace_all_uses_with(made.results[0])
        op.operation.erase()

    def narrow(self, value: ir.Value) -> ir.Value:
        if value not in self.made:
            parameter = self.parameter_of(value)
            self.made[value] = (
                self.rounded(value) if parameter is None else self.weight(parameter)
            )
        return self.made[value]

    def parameter_of(self, value: ir.Value) -> Parameter | None:
        if not isinstance(value.owner, ir.Block):
            return None
        number = list(self.block.arguments).index(value) - self.input_count
        return self.parameters[number] if number >= 0 else None

    def weight(self, parameter: Parameter) -> ir.Value:
        """A parameter of its own: the weight, rounded to nearest even by numpy."""
        kind = ir.RankedTensorType.get(list(parameter.shape), ir.BF16Type.get())
        self.parameters.append(
            Parameter(
                f"{parameter.name}.bf16",
                parameter.shape,
                BFLOAT16,
                lambda: np.asarray(parameter.load()).astype(BFLOAT16),
                parameter.release,
            )
        )
        return self.block.add_argument(kind, ir.Location.unknown())

    def rounded(self, value: ir.Value) -> ir.Value:
        """An activation, rounded right behind where it is made."""
        kind = ir.RankedTensorType(value.type)
        bf16 = ir.BF16Type.get()
        owner = value.owner
        place = (
            ir.InsertionPoint.at_block_begin(self.block)
            if isinstance(owner, ir.Block)
            else ir.InsertionPoint.after(owner)
        )
        location = (
            ir.Location.unknown() if isinstance(owner, ir.Block) else owner.location
        )
        with place, location:
            target = tensor.empty(kind.shape, bf16)
            return pointwise([value], target, lambda x: arith.truncf(bf16, x))


def last_extent(op: ir.OpView, kinds: list[ir.RankedTensorType]) -> int:
    """The extent of the last reduced dimension, 0 if no operand says it."""
    iterators = [str(a) for a in op.operation.attributes["iterator_types"]]  # type: ignore[union-attr]
    reduced = [d for d, text in enumerate(iterators) if "reduction" in text]
    for kind, attribute in zip(
        kinds,
        op.operation.attributes["indexing_maps"],
        strict=True,  # type: ignore[arg-type]
    ):
        for size, expr in zip(kind.shape, attribute.value.results, strict=True):
            if isinstance(expr, ir.AffineDimExpr) and expr.position == reduced[-1]:
                return size
    return 0
