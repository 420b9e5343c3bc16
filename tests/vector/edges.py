"""Models of many small kernels whose last dimension fills vectors to any degree.

All numbers are small integers, so that every type holds every result exactly.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product

import ml_dtypes
import numpy as np
import onnx
from onnx import helper, numpy_helper

from nanoloom import compiler
from nanoloom.model.source import Source
from nanoloom.options import CompileOptions, Strategy
from nanoloom.target import Target
from tests.guarded import Side
from tests.vector.kernel_harness import Executable, at_once, backwards, shared_cache

Array = np.ndarray
ROWS, DEPTH, ZERO = 7, 6, 30
TYPES = {
    "f32": np.dtype(np.float32), "f64": np.dtype(np.float64),
    "f16": np.dtype(np.float16), "bf16": np.dtype(ml_dtypes.bfloat16),
    "i8": np.dtype(np.int8), "u8": np.dtype(np.uint8), "i16": np.dtype(np.int16),
    "u16": np.dtype(np.uint16), "i32": np.dtype(np.int32), "i64": np.dtype(np.int64),
    "bool": np.dtype(np.bool_),
}  # fmt: skip
MULTIPLIED = ("f32", "f64", "f16", "bf16", "i32", "i64")
QUANTIZED = ("u8", "i8", "u16", "i16")
PRODUCTS = (
    *(("MatMul", name) for name in MULTIPLIED),
    *(("Cast", name) for name in TYPES if name != "f32"),
    *(("QuantizeLinear", name) for name in QUANTIZED),
    *(("QLinearMatMul", name) for name in ("u8", "i8")),
    ("MatMulInteger", "i32"),
)
CASTS = tuple(product(TYPES, TYPES))


@dataclass
class Edges:
    """A model that grows; wanted: what it computes, as far as that is known."""

    nodes: list[onnx.NodeProto] = field(default_factory=list)
    inputs: dict[str, Array] = field(default_factory=dict)
    constants: dict[str, Array] = field(default_factory=dict)
    wanted: dict[str, Array | None] = field(default_factory=dict)

    def add(self, op: str, inputs: list[str], **attributes: object) -> str:
        """A node of one result; gives that result's name."""
        made = f"{op}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [made], **attributes))
        return made

    def given(self, name: str, array: Array, *, constant: bool = False) -> str:
        (self.constants if constant else self.inputs).setdefault(name, array)
        return name

    def number(self, value: float, kind: str) -> str:
        name = f"{value}_{kind}"
        return self.given(name, np.array(value, TYPES[kind]), constant=True)

    def cast(self, value: str, kind: str) -> str:
        return self.add("Cast", [value], to=onnx_type(TYPES[kind]))

    def proto(self) -> onnx.ModelProto:
        graph = helper.make_graph(
            self.nodes,
            "edges",
            [
                helper.make_tensor_value_info(name, onnx_type(x.dtype), x.shape)
                for name, x in self.inputs.items()
            ],
            [onnx.ValueInfoProto(name=name) for name in self.wanted],
            [numpy_helper.from_array(x, name) for name, x in self.constants.items()],
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])


def onnx_type(dtype: np.dtype) -> int:
    return helper.np_dtype_to_tensor_dtype(dtype)


def integers(shape: tuple[int, ...], seed: int) -> Array:
    return np.random.default_rng(seed).integers(-2, 3, shape)


def multiply(edges: Edges, op: str, kind: str, columns: int, flat: bool) -> None:
    """A product of so many columns that ends in a type; flat: with two inputs."""
    x, w = integers((ROWS, DEPTH), 1), integers((DEPTH, columns), columns)
    name = f"{op}_{kind}_{columns}_{flat}"
    exact = x @ w
    quantized = op in ("QLinearMatMul", "MatMulInteger")
    of = "i8" if quantized else kind if op == "MatMul" else "f32"
    right = edges.given(f"w_{name}", w.astype(TYPES[of]), constant=not flat)
    one, zero, two = (
        edges.number(1, "f32"),
        edges.number(0, "i8"),
        edges.number(2, "u8"),
    )
    left = edges.given("x_u8", (x + 2).astype(np.uint8)) if quantized else ""
    if op == "MatMulInteger":
        made = edges.add(op, [left, right, two])
    elif op == "QLinearMatMul":
        shift = edges.number(ZERO, kind)
        made = edges.add(op, [left, one, two, right, one, zero, one, shift])
    else:
        left = edges.given(f"x_{of}", x.astype(TYPES[of]))
        made = edges.add("MatMul", [left, right])
    if op == "Cast":
        if kind[0] == "u":
            made, exact = edges.add("Abs", [made]), abs(exact)
        made = edges.cast(made, kind)
    if op == "QuantizeLinear":
        made = edges.add(op, [made, one, edges.number(ZERO, kind)])
    shifted = exact + ZERO if op in ("QuantizeLinear", "QLinearMatMul") else exact
    edges.wanted[made] = shifted.astype(TYPES[kind])


def convert(edges: Edges, source: str, result: str, columns: int) -> None:
    """A conversion of rows of so many elements."""
    x = abs(integers((3, columns), columns)).astype(TYPES[source])
    given = edges.given(f"x_{source}_{result}_{columns}", x)
    if source == result:
        edges.wanted[edges.add("Identity", [given])] = x
    else:
        edges.wanted[edges.cast(given, result)] = x.astype(TYPES[result])


def run_edges(
    edges: Edges, target: Target, strategy: Strategy | None = None
) -> list[str]:
    """The results that are wrong, every array of the calls against guard pages."""
    source = Source(edges.proto(), shared_cache())
    model = source.bound({name: x.shape for name, x in edges.inputs.items()}, {})
    options, report = CompileOptions(target, strategy=strategy), compiler.Report()
    made = compiler.compile_model(model, options, shared_cache(), report)
    program = Executable(made)
    given = [edges.inputs[x.name] for x in made.table.inputs]
    first = program(*given, order=at_once, side=Side.END)
    second = program(*given, order=backwards, side=Side.START)
    names = [x.name for x in made.table.outputs]
    assert set(names) == set(edges.wanted)
    return [
        name
        for name, one, other in zip(names, first, second, strict=True)
        if one.tobytes() != other.tobytes() or not is_wanted(edges.wanted[name], one)
    ]


def is_wanted(wanted: Array | None, got: Array) -> bool:
    return wanted is None or (wanted.dtype == got.dtype and bool((wanted == got).all()))
