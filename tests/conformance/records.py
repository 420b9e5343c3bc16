"""The table of operators: from the node tests and the list of the refused ones."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

import onnx
from onnx import helper
from onnx.backend.test.case.test_case import TestCase

from nanoloom.cli.operators import FILE, Operator, load, markdown
from nanoloom.frontend.header import OLDEST_OPSET
from nanoloom.linalg.operators import OPERATORS
from tests.conformance.cases import cases
from tests.conformance.scope import TRAINING_DOMAIN, left_out

PAGE = Path(__file__).parents[2] / "docs" / "operators.md"
DOMAINS = ("", "ai.onnx.ml", TRAINING_DOMAIN)


@dataclass
class Seen:
    """What the node tests of one operator show."""

    opsets: set[int] = field(default_factory=set)
    types: set[str] = field(default_factory=set)
    passed: int = 0
    tests: int = 0
    notes: dict[str, None] = field(default_factory=dict)

    def take(self, case: TestCase, node: onnx.NodeProto, refused: str | None) -> None:
        model = case.model
        opset = next(x.version for x in model.opset_import if x.domain == node.domain)
        if refused is not None and node.domain == "" and opset < OLDEST_OPSET:
            self.notes[f"its node tests are of opset {opset}"] = None
            return
        self.tests += 1
        if refused is not None:
            self.notes[left_out(model) or reason_alone(refused)] = None
            return
        self.passed += 1
        self.opsets.add(opset)
        self.types |= element_types(model, node, opset)


def reason_alone(reason: str) -> str:
    """A refusal without the names of the test's own node and values."""
    return reason.split("; ")[0].rpartition(": ")[2].replace("|", "/")


def name_of(kind: int) -> str:
    """NumPy's name of an element type; strings are objects there."""
    if kind == onnx.TensorProto.STRING:
        return "string"
    return helper.tensor_dtype_to_np_dtype(kind).name


def element_types(model: onnx.ModelProto, node: onnx.NodeProto, opset: int) -> set[str]:
    """Types of the values that the operator's first type parameter stands for."""
    schema = onnx.defs.get_schema(node.op_type, opset, node.domain)
    if not schema.type_constraints:
        return set()
    wanted = schema.type_constraints[0].type_param_str
    values = [*model.graph.input, *model.graph.output]
    types = {v.name: v.type.tensor_type.elem_type for v in values}
    formal = [*zip(node.input, schema.inputs, strict=False)]
    formal += zip(node.output, schema.outputs, strict=False)
    return {
        name_of(types[name])
        for name, parameter in formal
        if parameter.type_str == wanted and types.get(name)
    }


def rows(refused: Mapping[str, str]) -> list[Operator]:
    """Every operator of ONNX in the order of names, other domains last."""
    schemas = [s for s in onnx.defs.get_all_schemas() if s.domain in DOMAINS]
    seen = {full_name(s.domain, s.name): Seen() for s in schemas}
    for name, case in cases().items():
        nodes = case.model.graph.node
        if "_expanded" in name or len(nodes) != 1:
            continue
        one = seen.get(full_name(nodes[0].domain, nodes[0].op_type))
        if one is not None:
            one.take(case, nodes[0], refused.get(name))
    made = [row(s, seen[full_name(s.domain, s.name)]) for s in schemas]
    return sorted(made, key=lambda r: ("." in r.name, r.name))


def row(schema: onnx.defs.OpSchema, seen: Seen) -> Operator:
    name = full_name(schema.domain, schema.name)
    return Operator(
        name,
        schema.since_version,
        tuple(sorted(seen.opsets)),
        tuple(sorted(seen.types)),
        seen.passed,
        seen.tests,
        name in OPERATORS or has_body(schema),
        "; ".join(seen.notes),
    )


def has_body(schema: onnx.defs.OpSchema) -> bool:
    """Whether the operator is a function of others, which is expanded."""
    return schema.has_function or schema.has_context_dependent_function


def full_name(domain: str, name: str) -> str:
    return f"{domain}.{name}" if domain else name


def write(refused: Mapping[str, str]) -> None:
    """Write operators.json and docs/operators.md."""
    text = ",\n".join(json.dumps(asdict(x)) for x in rows(refused))
    FILE.write_text(f"[\n{text}\n]\n", "utf-8")
    PAGE.write_text(page(load()), "utf-8")


def page(table: Iterable[Operator]) -> str:
    return markdown(list(table))
