"""Strings as numbers: a program computes with their places in a list of the model's.

Programs move and compare strings, and so it is enough to number them.  Strings that the
model names (labels, categories, keys) have the numbers from 0 on; what a call brings
beside them gets the next ones (vocabulary.py), which equal none of those.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx_ir as ir

from nanoloom.errors import Unsupported

TEXTS = "nanoloom.texts"  # of a model: its strings; of a value: whether it holds such
ML = "ai.onnx.ml"
UNUSED = "_Unused"  # ONNX's default for what a LabelEncoder does not know
NUMBERED = {
    "cats_strings": "cats_int64s", "keys_strings": "keys_int64s",
    "pool_strings": "pool_int64s", "values_strings": "values_int64s",
}  # fmt: skip
TENSORS = ("keys_tensor", "values_tensor", "default_tensor", "value")
LABELS = {
    "LinearClassifier": "classlabels_ints", "SVMClassifier": "classlabels_ints",
    "TreeEnsembleClassifier": "classlabels_int64s",
}  # fmt: skip
# Move their input, whatever it is; these outputs are strings where the input is.
MOVING = frozenset(
    (
        "Compress", "Concat", "Expand", "Flatten", "Gather", "GatherElements",
        "GatherND", "Identity", "Reshape", "ReverseSequence", "Scatter",
        "ScatterElements", "ScatterND", "Slice", "Split", "Squeeze", "Tile",
        "Transpose", "Unsqueeze", "Where",
    )
)  # fmt: skip
READING = frozenset({"Equal", "Shape", "Size"})  # give numbers of them
CONSTANTS = {"value_string": "value_int", "value_strings": "value_ints"}


@dataclass
class Encoding:
    """codes: of the strings so far, in order.  texts: values that hold some."""

    codes: dict[str, int] = field(default_factory=dict[str, int])
    texts: set[ir.Value] = field(default_factory=set[ir.Value])

    def numbers(self, texts: Iterable[str | bytes]) -> list[int]:
        found = [t.decode() if isinstance(t, bytes) else t for t in texts]
        return [self.codes.setdefault(text, len(self.codes)) for text in found]

    def tensor(self, given: ir.TensorProtocol) -> ir.Tensor:
        codes = np.array(self.numbers(given.numpy().reshape(-1)), np.int64)
        return ir.Tensor(codes.reshape(given.shape.numpy()), name=given.name)

    def holds(self, value: ir.Value | None) -> bool:
        return value is not None and value in self.texts


def encode(model: ir.Model) -> None:
    """Strings of a model become int64, in place; without any it stays as it is.

    Raises Unsupported for an operator that looks into strings.
    """
    if not has_texts(model):
        return
    encoding = Encoding()
    encoding.texts |= {x for x in model.graph.inputs if is_text(x)}
    for value in model.graph.initializers.values():
        if is_text(value) and not reads_numbers(value):
            assert value.const_value is not None
            value.const_value = encoding.tensor(value.const_value)
            encoding.texts.add(value)
    for node in model.graph:
        if node.domain == ML:
            classical(node, encoding)
        elif node.domain in ("", "ai.onnx"):
            plain(node, encoding)
    for value in encoding.texts:
        value.type = ir.TensorType(ir.DataType.INT64)
        value.meta[TEXTS] = True
    model.meta[TEXTS] = list(encoding.codes)


def has_texts(model: ir.Model) -> bool:
    """Whether strings go in or come out, or a node goes by some."""
    names = {*NUMBERED, *CONSTANTS, "classlabels_strings", "classes_strings"}
    sides = (*model.graph.inputs, *model.graph.outputs)
    nodes = (node for node in model.graph if node.domain == ML)
    return any(map(is_text, sides)) or any(names & set(n.attributes) for n in nodes)


def is_text(value: ir.Value) -> bool:
    return value.dtype == ir.DataType.STRING


def reads_numbers(value: ir.Value) -> bool:
    """Whether a constant is only read by Cast, which makes numbers of it."""
    readers = [use.node.op_type for use in value.uses()]
    return bool(readers) and set(readers) == {"Cast"}


def refusal(node: ir.Node, reason: str) -> Unsupported:
    where = f"node {node.name} ({node.op_type})"
    return Unsupported(reason, where=where, hint="do that part outside of the model")


# ---- ONNX's own operators


def plain(node: ir.Node, encoding: Encoding) -> None:
    """Operators that move or compare what they are given."""
    if node.op_type == "Constant":
        constant(node, encoding)
        return
    to = node.attributes.get("to") if node.op_type == "Cast" else None
    given = [x for x in node.inputs if encoding.holds(x)]
    if to is not None and (given or to.as_int() == ir.DataType.STRING):
        if not given or to.as_int() != ir.DataType.STRING:
            what = (
                "reads numbers from strings" if given else "writes numbers as strings"
            )
            raise refusal(node, what)
        node.op_type = "Identity"
        del node.attributes["to"]
    if not given or node.op_type in READING:
        return
    if node.op_type not in MOVING:
        raise refusal(node, "looks into strings, which are numbers in a program")
    encoding.texts |= set(node.outputs)


def constant(node: ir.Node, encoding: Encoding) -> None:
    (name, attribute), *_ = node.attributes.items()
    if name == "value" and attribute.value.dtype == ir.DataType.STRING:
        made = ir.AttrTensor(name, encoding.tensor(attribute.as_tensor()))
    elif name == "value_string":
        made = ir.AttrInt64("value_int", encoding.numbers([attribute.as_string()])[0])
    elif name == "value_strings":
        made = ir.AttrInt64s("value_ints", encoding.numbers(attribute.as_strings()))
    else:
        return
    del node.attributes[name]
    node.attributes[made.name] = made
    encoding.texts.add(node.outputs[0])


# ---- operators of ai.onnx.ml


def classical(node: ir.Node, encoding: Encoding) -> None:
    """Lists of strings become lists of numbers, and so do the outputs they name."""
    match node.op_type:
        case "LabelEncoder" | "CategoryMapper":
            label_encoder(node, encoding)
        case "ArrayFeatureExtractor":
            if encoding.holds(node.inputs[0]):
                encoding.texts.add(node.outputs[0])
            return
        case "OneHotEncoder" | "TfIdfVectorizer":
            renumber(node, encoding, *NUMBERED)
            return
        case name if name in LABELS:
            given = node.attributes.pop("classlabels_strings", None)
            if given is not None and given.value:
                if name == "LinearClassifier" and len(given.as_strings()) == 1:
                    raise refusal(node, "tells one string from none")
                codes = encoding.numbers(given.as_strings())
                node.attributes[LABELS[name]] = ir.AttrInt64s(LABELS[name], codes)
                encoding.texts.add(node.outputs[0])
        case _:
            if any(map(encoding.holds, node.inputs)):
                raise refusal(node, "does not take strings")


def renumber(node: ir.Node, encoding: Encoding, *names: str) -> None:
    for name in names:
        given = node.attributes.pop(name, None)
        if given is not None and given.value:
            other = NUMBERED[name]
            codes = encoding.numbers(given.as_strings())
            node.attributes[other] = ir.AttrInt64s(other, codes)
    for name in TENSORS:
        given = node.attributes.get(name)
        if given is not None and given.as_tensor().dtype == ir.DataType.STRING:
            node.attributes[name] = ir.AttrTensor(
                name, encoding.tensor(given.as_tensor())
            )


def label_encoder(node: ir.Node, encoding: Encoding) -> None:
    """The oldest form, and CategoryMapper, say both ways with one list of strings."""
    values = node.attributes.get("values_tensor")
    gives_texts = bool(listed(node, "values_strings")) or (
        values is not None and values.as_tensor().dtype == ir.DataType.STRING
    )
    classes = listed(node, "classes_strings") or listed(node, "cats_strings")
    default = node.attributes.pop("default_string", None)
    if classes:
        gives_texts = not encoding.holds(node.inputs[0])
        given = node.attributes.pop("cats_int64s", None)
        numbers = list(range(len(classes))) if given is None else list(given.as_ints())
        sides = (encoding.numbers(classes), numbers)
        keys, made = sides[::-1] if gives_texts else sides
        set_lists(node, keys, made)
        node.op_type, node.version = "LabelEncoder", 2  # the first with both lists
    renumber(node, encoding, *NUMBERED)
    if gives_texts:
        if "default_tensor" not in node.attributes:
            text = UNUSED if default is None else default.as_string()
            number = encoding.numbers([text])[0]
            node.attributes["default_int64"] = ir.AttrInt64("default_int64", number)
        encoding.texts.add(node.outputs[0])


def set_lists(node: ir.Node, keys: Sequence[int], values: Sequence[int]) -> None:
    for name in ("classes_strings", "cats_strings"):
        node.attributes.pop(name, None)
    for name, given in (("keys_int64s", keys), ("values_int64s", values)):
        node.attributes[name] = ir.AttrInt64s(name, given)


def listed(node: ir.Node, name: str) -> list[str]:
    given = node.attributes.get(name)
    return [] if given is None else list(given.as_strings())
