"""A generalized function on tensors becomes what the stages behind linalg expect."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nanoloom.errors import ModelError, Unsupported
from nanoloom.ir.linalg_query import maps
from nanoloom.ir.make_generic import set_maps
from nanoloom.ir.mlir import arith, ir, named, operations, run_pipeline, sign, tensor
from nanoloom.linalg.builder.builder import Builder
from nanoloom.linalg.builder.loops import settle
from nanoloom.linalg.builder.scalar import constant
from nanoloom.linalg.builder.tensor import Tensor, constant_tensor
from nanoloom.linalg.parameters import Parameters, name_arguments
from nanoloom.linalg.stage import LinalgModule, Spec
from nanoloom.notation.allowed_mlir import dtype_of, line_of
from nanoloom.weights.weight import Weight

ALL_BYTES = re.compile(r'"0x([0-9A-Fa-f]*)"')
NUMBER = re.compile(r"0x[0-9A-Fa-f]+|[-+]?\d+\.?\d*(?:[eE][-+]?\d+)?")
NAMES = ("nanoloom.input", "nanoloom.parameter")  # as --emit linalg writes them


@dataclass
class Conversion:
    """A generalized function while it becomes what the next stages expect."""

    module: ir.Module
    main: ir.OpView
    where: Callable[[object], str]  # a location for a message

    def result(self) -> LinalgModule:
        block = self.main.operation.regions[0].blocks[0]
        inputs = self.inputs(block)
        parameters = self.take_constants_out(block)
        self.declare(block, inputs, parameters)
        run_pipeline(self.module, ("linalg-inline-scalar-operands",))
        for op in named(self.module, "linalg.generic"):
            use_empty_results(op)
            take_numbers_in(op)
        for op in named(self.module, "scf.for"):
            keep_places(op)
        for op in named(self.module, "tensor.extract"):
            keep_inside(op)
        self.name_places()
        self.module.operation.verify()
        returned = list(list(block.operations)[-1].operation.operands)
        outputs = [spec_of(f"result{i}", v.type) for i, v in enumerate(returned)]
        return LinalgModule(self.module, tuple(inputs), tuple(outputs), parameters)

    def declare(
        self, block: ir.Block, inputs: list[Spec], parameters: Sequence[Weight]
    ) -> None:
        """The function as the stage names it, parameters among its arguments."""
        words = self.main.operation.attributes
        sign(self.main)
        words["sym_name"] = ir.StringAttr.get("main")
        if "res_attrs" in words:
            del words["res_attrs"]
        name_arguments(self.main, [x.name for x in inputs], parameters)  # type: ignore[arg-type]

    def inputs(self, block: ir.Block) -> list[Spec]:
        """The arguments: by the names that --emit linalg gives them, or arg0, arg1."""
        words: Sequence[Any] = ()
        if "arg_attrs" in self.main.operation.attributes:
            words = list(self.main.operation.attributes["arg_attrs"])  # type: ignore[call-overload]
        found: list[Spec] = []
        for i, argument in enumerate(block.arguments):
            known = words[i] if words else {}
            names = [known[key].value for key in NAMES if key in known]
            found.append(spec_of(names[0] if names else f"arg{i}", argument.type))
        if len({x.name for x in found}) != len(found):
            raise ModelError(
                "two arguments have one name",
                where=self.where(self.main.operation.location),
            )
        return found

    def take_constants_out(self, block: ir.Block) -> tuple[Weight, ...]:
        """Constant tensors become arguments, those of one value are filled."""
        parameters = Parameters(block)
        builder = Builder(parameters.add)
        for op in named(self.module, "arith.constant"):
            (result,) = op.operation.results
            if not isinstance(result.type, ir.RankedTensorType):
                continue
            x = self.constant(op)
            values = x.array().reshape(-1)
            if values.tobytes() == values[:1].tobytes() * values.size:
                with ir.InsertionPoint(op), op.operation.location:
                    read_number(result, constant(values[0].item(), x.dtype).value)
                    x = builder.full(x.shape, values[0].item(), x.dtype)
            if list(result.uses):
                with ir.InsertionPoint(op):
                    result.replace_all_uses_with(builder.value(x))
            op.operation.erase()
        return parameters.weights

    def constant(self, op: ir.OpView) -> Tensor:
        """The array of a constant; raises Unsupported for one that is not written."""
        (result,) = op.operation.results
        spec = spec_of("", result.type)
        array = array_of(op.operation.attributes["value"], spec)
        if array is None:
            raise Unsupported(
                "its elements are not in the text",
                where=self.where(op.operation.location),
                hint="write dense<...>, or make it an argument",
            )
        return constant_tensor(array)

    def name_places(self) -> None:
        """Every operation is called by its line, as a layer of a model by its node."""
        for op in operations(self.module, lambda _: True):
            line = line_of(op.operation.location)
            if line is not None:
                op.operation.location = ir.Location.name(f"line {line}")  # type: ignore[misc]


def spec_of(name: str, kind: ir.Type) -> Spec:
    shaped = ir.RankedTensorType(kind)
    dtype = dtype_of(shaped.element_type)
    assert dtype is not None, kind
    return Spec(name, tuple(shaped.shape), dtype)


def array_of(value: ir.Attribute, spec: Spec) -> np.ndarray | None:
    """The array of a dense attribute, None for one that is kept elsewhere."""
    if isinstance(value, ir.DenseResourceElementsAttr):
        return None
    if not isinstance(value, ir.DenseFPElementsAttr | ir.DenseIntElementsAttr):
        return None
    try:
        return np.array(value).astype(spec.dtype).reshape(spec.shape)
    except TypeError:  # bfloat16, which the bindings only print
        return printed_array(str(value), spec)


def printed_array(text: str, spec: Spec) -> np.ndarray:
    """The array of dense<...> : its numbers, or all its bytes; one number for all."""
    inside = text[: text.rindex(":")]
    if found := ALL_BYTES.search(inside):
        made = np.frombuffer(bytes.fromhex(found[1]), spec.dtype)
    else:
        words = NUMBER.findall(inside)
        bits = np.dtype(f"uint{spec.dtype.itemsize * 8}")
        made = np.array(
            [
                np.array(int(word, 16), bits).view(spec.dtype)
                if word.startswith("0x")
                else np.array(float(word)).astype(spec.dtype)
                for word in words
            ]
        )
    if made.size == 1:
        made = np.broadcast_to(made.reshape(()), spec.shape)
    return np.array(made).reshape(spec.shape)


def read_number(value: ir.Value, number: ir.Value) -> None:
    """Let generics read a number instead of a tensor that has it everywhere."""
    for use in list(value.uses):
        op = use.owner.opview
        if op.operation.name != "linalg.generic" or value in outputs(op):
            continue
        indexings = maps(op)
        indexings[use.operand_number] = ir.AffineMap.get(indexings[0].n_dims, 0, [])
        set_maps(op, indexings)
        op.operation.operands[use.operand_number] = number


def outputs(op: ir.OpView) -> list[ir.Value]:
    results = len(list(op.operation.results))
    return list(op.operation.operands)[-results:]


def keep_places(op: ir.OpView) -> None:
    """What a loop carries on stays in the memory that it began with."""
    block = op.operation.regions[0].blocks[0]
    last = list(block.operations)[-1]
    with ir.InsertionPoint(last), op.operation.location:
        for i, carried in enumerate(list(block.arguments)[1:]):
            if isinstance(carried.type, ir.RankedTensorType):
                new = last.operation.operands[i]
                last.operation.operands[i] = settle(new, carried)


def use_empty_results(op: ir.OpView) -> None:
    """What is only written over need not be there before."""
    operands = list(op.operation.operands)
    block = op.operation.regions[0].blocks[0]
    for i in range(len(operands) - len(outputs(op)), len(operands)):
        if list(block.arguments[i].uses):
            continue
        kind = ir.RankedTensorType(operands[i].type)
        with ir.InsertionPoint(op), op.operation.location:
            empty = tensor.empty(list(kind.shape), kind.element_type)
        op.operation.operands[i] = empty


def take_numbers_in(op: ir.OpView) -> None:
    """Constants of a body stand in it."""
    block = op.operation.regions[0].blocks[0]
    for inner in list(block.operations):
        for i, value in enumerate(inner.operation.operands):
            owner = value.owner
            if isinstance(owner, ir.Block) or owner.name != "arith.constant":
                continue
            if owner.parent != op.operation:
                with ir.InsertionPoint.at_block_begin(block):
                    inner.operation.operands[i] = owner.clone().results[0]


def keep_inside(op: ir.OpView) -> None:
    """Indices known at run time are clamped: nothing outside the tensor is read."""
    source, *indices = op.operation.operands
    shape = ir.RankedTensorType(source.type).shape
    with ir.InsertionPoint(op), op.operation.location:
        zero = arith.constant(ir.IndexType.get(), 0)
        for i, (index, size) in enumerate(zip(indices, shape, strict=True)):
            last = arith.constant(ir.IndexType.get(), size - 1)
            clamped = arith.minsi(arith.maxsi(index, zero), last)
            op.operation.operands[i + 1] = clamped
