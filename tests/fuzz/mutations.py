"""Ways to damage a model: bytes of its file, fields of its messages, what they mean."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from onnx import TensorProto, helper

NAMES = ["", "x", "y", "x0", "v0_0", "Add", "If", "Loop", "MatMul", "ai.onnx",
         "com.microsoft", "value", "batch", "batch+1", "0*8**3", "?", "-1", "n//0",
         "\n", "axis", "axes", "pads", "to", "alpha", "a" * 300]  # fmt: skip
NUMBERS = [*range(-3, 30), 37, 64, 255, 4096, 10**6, 2**31 - 1, 2**31, 2**40, 2**62,
           2**63 - 1, -(2**31), -(2**63)]  # fmt: skip
REALS = [0.0, -1.0, 0.5, 1e-30, 1e30, float("nan"), float("inf")]
RAW = [b"", b"abc", b"\xff", b"\0" * 64]
KINDS = [int(x) for x in TensorProto.DataType.values()]
OPERATORS = sorted({schema.name for schema in onnx.defs.get_all_schemas()})


class Damage:
    """Random changes of one model.  rng: the case's."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng

    def pick(self, choices):  # type: ignore[no-untyped-def]
        return choices[int(self.rng.integers(len(choices)))]

    # ---- bytes

    def bytes_changed(self, content: bytes) -> bytes:
        made = bytearray(content)
        for _ in range(int(self.rng.integers(1, 5))):
            # The front of the file is its structure, the back mostly numbers.
            limit = self.pick([min(300, len(made)), len(made)])
            at = int(self.rng.integers(limit))
            made[at] = self.pick([made[at] ^ (1 << int(self.rng.integers(8))), 0, 255])
        return bytes(made)

    def cut_off(self, content: bytes) -> bytes:
        return content[: int(self.rng.integers(len(content)))]

    def cut_out(self, content: bytes) -> bytes:
        at, gap = int(self.rng.integers(len(content))), int(self.rng.integers(40))
        put = self.rng.bytes(int(self.rng.integers(20)))
        return content[:at] + put + content[at + gap :]

    # ---- messages

    def field_changed(self, model: onnx.ModelProto) -> None:
        """Set, add or remove one field of one message: well-formed, maybe senseless."""
        everywhere = messages(model)
        message = self.pick(everywhere)
        field = self.pick(list(message.DESCRIPTOR.fields))
        if self.rng.random() < 0.25:
            message.ClearField(field.name)
        elif field.type == FieldDescriptor.TYPE_MESSAGE:
            same = [m for m in everywhere if m.DESCRIPTOR is field.message_type]
            content = self.pick(same).SerializeToString() if same else b""
            target = getattr(message, field.name)
            (target.add() if field.is_repeated else target).MergeFromString(content)
        else:
            put(message, field, self.value(field))

    def value(self, field: FieldDescriptor) -> object:
        if field.type == FieldDescriptor.TYPE_ENUM:
            return self.pick([value.number for value in list(field.enum_type.values)])
        if field.type == FieldDescriptor.TYPE_STRING:
            return self.pick(NAMES)
        if field.type == FieldDescriptor.TYPE_BYTES:
            return self.pick(RAW)
        if field.cpp_type in (FieldDescriptor.CPPTYPE_FLOAT,
                              FieldDescriptor.CPPTYPE_DOUBLE):  # fmt: skip
            return self.pick(REALS)
        return self.pick(NUMBERS)

    # ---- meanings

    def operator_swapped(self, model: onnx.ModelProto) -> None:
        self.pick(model.graph.node).op_type = self.pick(OPERATORS)

    def input_changed(self, model: onnx.ModelProto) -> None:
        """Another value as a node's input: of later nodes too, so cycles arise."""
        node = self.pick(model.graph.node)
        names = [*known_names(model), "", "nobody"]
        way = int(self.rng.integers(4))
        if way == 0 or not node.input:
            node.input.append(self.pick(names))
        elif way == 1:
            del node.input[int(self.rng.integers(len(node.input)))]
        else:
            node.input[int(self.rng.integers(len(node.input)))] = self.pick(names)

    def output_changed(self, model: onnx.ModelProto) -> None:
        node = self.pick(model.graph.node)
        way = int(self.rng.integers(3))
        if way == 0 or not node.output:
            node.output.append(self.pick([*known_names(model), "extra"]))
        elif way == 1:
            del node.output[int(self.rng.integers(len(node.output)))]
        else:
            place = int(self.rng.integers(len(node.output)))
            node.output[place] = self.pick([*known_names(model), "other", ""])

    def nodes_moved(self, model: onnx.ModelProto) -> None:
        nodes = list(model.graph.node)
        way = int(self.rng.integers(3))
        if way == 0:
            nodes = [nodes[i] for i in self.rng.permutation(len(nodes))]
        elif way == 1:
            nodes.append(self.pick(nodes))
        else:
            nodes.pop(int(self.rng.integers(len(nodes))))
        del model.graph.node[:]
        model.graph.node.extend(nodes)

    def opset_changed(self, model: onnx.ModelProto) -> None:
        model.opset_import[0].version = self.pick([*range(-1, 30), 10**6, 2**62])

    def dims_changed(self, model: onnx.ModelProto) -> None:
        """Of an input, an output or a constant."""
        infos = [*model.graph.input, *model.graph.output]
        if model.graph.initializer and self.rng.random() < 0.5:
            tensor = self.pick(model.graph.initializer)
            sizes = list(tensor.dims)
            changed = self.sizes_changed(sizes)
            del tensor.dims[:]
            tensor.dims.extend(changed)
        elif infos:
            info = self.pick(infos)
            kind = info.type.tensor_type
            sizes = [d.dim_value for d in kind.shape.dim]
            info.CopyFrom(
                helper.make_tensor_value_info(
                    info.name, kind.elem_type, self.sizes_changed(sizes)
                )
            )

    def sizes_changed(self, sizes: list[int]) -> list[int]:
        way = int(self.rng.integers(4))
        if way == 0 or not sizes:
            return [*sizes, self.pick(NUMBERS)]
        place = int(self.rng.integers(len(sizes)))
        if way == 1:
            return [*sizes[:place], *sizes[place + 1 :]]
        if way == 2:
            return [sizes[i] for i in self.rng.permutation(len(sizes))]
        return [*sizes[:place], self.pick(NUMBERS), *sizes[place + 1 :]]

    def type_changed(self, model: onnx.ModelProto) -> None:
        infos = [*model.graph.input, *model.graph.output]
        if model.graph.initializer and self.rng.random() < 0.5:
            self.pick(model.graph.initializer).data_type = self.pick(KINDS)
        elif infos:
            self.pick(infos).type.tensor_type.elem_type = self.pick(KINDS)

    def attribute_changed(self, model: onnx.ModelProto) -> None:
        """A number, a list's length, a kind, or one more of those the operator has."""
        node = self.pick(model.graph.node)
        way = int(self.rng.integers(5))
        known = onnx.defs.has(node.op_type) and onnx.defs.get_schema(node.op_type)
        if known and known.attributes and (way == 0 or not node.attribute):
            name = self.pick(sorted(known.attributes))
            value = self.pick([self.pick(NUMBERS), self.pick(REALS), self.pick(NAMES),
                               [self.pick(NUMBERS) for _ in range(3)]])  # fmt: skip
            node.attribute.append(helper.make_attribute(name, value))
            return
        if not node.attribute:
            return
        attribute = self.pick(node.attribute)
        if way == 1 and attribute.ints:
            attribute.ints.append(self.pick(NUMBERS))
        elif way == 2 and attribute.ints:
            del attribute.ints[-1]
        elif attribute.ints:
            place = int(self.rng.integers(len(attribute.ints)))
            attribute.ints[place] = self.pick(NUMBERS)
        elif attribute.type == onnx.AttributeProto.INT:
            attribute.i = self.pick(NUMBERS)
        elif attribute.type == onnx.AttributeProto.FLOAT:
            attribute.f = self.pick(REALS)
        else:
            attribute.s = self.pick(
                [b"", b"SAME_UPPER", b"linear", b"no such", b"\xff"]
            )

    def numbers_changed(self, model: onnx.ModelProto) -> None:
        """A constant's content: axes, sizes, indices that fit nothing."""
        if not model.graph.initializer:
            return
        tensor = self.pick(model.graph.initializer)
        array = onnx.numpy_helper.to_array(tensor).copy()
        flat = array.reshape(-1)
        if not flat.size or flat.dtype.kind not in "iuf":
            return
        value = self.pick(NUMBERS if flat.dtype.kind in "iu" else REALS)
        if flat.dtype.kind in "iu":
            info = np.iinfo(flat.dtype)
            value = max(info.min, min(info.max, value))
        flat[int(self.rng.integers(flat.size))] = value
        tensor.CopyFrom(onnx.numpy_helper.from_array(array, tensor.name))

    def outside_the_file(self, model: onnx.ModelProto) -> None:
        """A constant whose numbers are to lie in a file that is not there."""
        if not model.graph.initializer:
            return
        tensor = self.pick(model.graph.initializer)
        tensor.ClearField("raw_data")
        tensor.data_location = TensorProto.EXTERNAL
        pairs = {"location": self.pick(["weights", "../weights", "", "/dev/null"]),
                 "offset": str(self.pick(NUMBERS)), "length": "4"}  # fmt: skip
        for name, text in pairs.items():
            tensor.external_data.add(key=name, value=text)

    def damaged(self, content: bytes) -> bytes:
        """One to three changes of one kind or another."""
        if self.rng.random() < 0.3:
            way: Callable[[bytes], bytes] = self.pick(
                [self.bytes_changed, self.bytes_changed, self.cut_off, self.cut_out]
            )
            return way(content)
        model = onnx.ModelProto.FromString(content)
        for _ in range(self.pick([1, 1, 2, 3])):
            if not model.graph.node or not model.opset_import:
                break
            change = self.pick([
                self.field_changed, self.field_changed, self.operator_swapped,
                self.input_changed, self.output_changed, self.nodes_moved,
                self.opset_changed, self.dims_changed, self.type_changed,
                self.attribute_changed, self.attribute_changed, self.numbers_changed,
                self.outside_the_file,
            ])  # fmt: skip
            try:
                change(model)
            except Exception:  # noqa: BLE001 - the damage before was too much for it
                break
        return model.SerializeToString()


def known_names(model: onnx.ModelProto) -> list[str]:
    made = [name for node in model.graph.node for name in node.output]
    inputs = [x.name for x in model.graph.input]
    return [*inputs, *(x.name for x in model.graph.initializer), *made]


def messages(message: Message) -> list[Message]:
    """The message and all inside of it."""
    found = [message]
    for descriptor, values in message.ListFields():
        if descriptor.type == FieldDescriptor.TYPE_MESSAGE:
            for inner in values if descriptor.is_repeated else (values,):
                found += messages(inner)
    return found


def put(message: Message, field: FieldDescriptor, value: object) -> None:
    """Set or append a value, if the field can hold it."""
    small = field.cpp_type == FieldDescriptor.CPPTYPE_INT32
    if isinstance(value, int) and field.type == FieldDescriptor.TYPE_UINT64:
        value = abs(value)
    if small and isinstance(value, int) and not -(2**31) <= value < 2**31:
        value = 1
    if field.is_repeated:
        getattr(message, field.name).append(value)
    else:
        setattr(message, field.name, value)
