"""Binary 3x3 layers of ResNet-18 beside those of 8-bit integers, both nanoloom's.

    python -m benchmarks binary [--threads 1] [--layers 64,128] [--json FILE]

A layer is a convolution with bias and what makes the next one's input of it: signs and
their bits, or quantized bytes.  Its time is an eighth of what nine of them in a row
take longer than one.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import nanoloom
from benchmarks.arguments import parser_of
from benchmarks.show import Progress, print_sheet
from nanoloom.inspect.timing import Run, interleaved
from nanoloom_papers.reproduce.tables import Sheet

SIZES = {64: 56, 128: 28, 256: 14, 512: 7}  # of the image, by channels
MANY = 9  # layers in a row
BINARY, BYTES = "binary", "int8"
OPSET, IR_VERSION = 20, 10


@dataclass(frozen=True)
class Record:
    """Seconds of one layer, by what its numbers are."""

    channels: int
    size: int
    seconds: dict[str, float]

    @property
    def products(self) -> int:
        return 9 * self.channels**2 * self.size**2

    @property
    def ratio(self) -> float:
        """How many times as fast the binary layer is."""
        return self.seconds[BYTES] / self.seconds[BINARY]


def binary_layers(channels: int, size: int, count: int) -> onnx.ModelProto:
    """float x -> signs, convolution ... -> float y."""
    r = np.random.default_rng(channels)
    nodes: list[onnx.NodeProto] = []
    held = {"zero": np.float32(0), "one": np.float32(1), "minus": np.float32(-1)}
    weights: dict[str, np.ndarray] = {}
    value = "x"
    for i in range(count):
        signs = np.where(r.standard_normal((channels, channels, 3, 3)) > 0, 1, -1)
        weights[f"w{i}"] = (signs * 0.1).astype(np.float32)
        weights[f"b{i}"] = r.standard_normal(channels).astype(np.float32)
        made = "y" if i == count - 1 else f"y{i}"
        nodes += [
            helper.make_node("GreaterOrEqual", [value, "zero"], [f"c{i}"]),
            helper.make_node("Where", [f"c{i}", "one", "minus"], [f"s{i}"]),
            helper.make_node("Conv", [f"s{i}", f"w{i}", f"b{i}"], [made], pads=[1] * 4),
        ]
        value = made
    return model_of(nodes, {**weights, **arrays(held)}, channels, size)


def byte_layers(channels: int, size: int, count: int) -> onnx.ModelProto:
    """float x -> bytes, convolution, bytes ... -> float y."""
    r = np.random.default_rng(channels)
    held = {"s": np.float32(0.05), "z": np.uint8(128)}
    weights: dict[str, np.ndarray] = {
        "ws": r.uniform(0.001, 0.01, channels).astype(np.float32),
        "wz": np.zeros(channels, np.int8),
    }
    nodes = [helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"])]
    value, shape = "q", (channels, channels, 3, 3)
    for i in range(count):
        weights[f"w{i}"] = r.integers(-127, 128, shape).astype(np.int8)
        weights[f"b{i}"] = r.standard_normal(channels).astype(np.float32)
        filters = [f"w{i}", "ws", "wz"]
        nodes += [
            helper.make_node("DequantizeLinear", [value, "s", "z"], [f"d{i}"]),
            helper.make_node("DequantizeLinear", filters, [f"f{i}"], axis=0),
            helper.make_node(
                "Conv", [f"d{i}", f"f{i}", f"b{i}"], [f"y{i}"], pads=[1] * 4
            ),
            helper.make_node("QuantizeLinear", [f"y{i}", "s", "z"], [f"q{i}"]),
        ]
        value = f"q{i}"
    nodes.append(helper.make_node("DequantizeLinear", [value, "s", "z"], ["y"]))
    return model_of(nodes, {**weights, **arrays(held)}, channels, size)


def arrays(numbers: dict[str, np.generic]) -> dict[str, np.ndarray]:
    return {name: np.asarray(number) for name, number in numbers.items()}


def model_of(
    nodes: list[onnx.NodeProto],
    held: dict[str, np.ndarray],
    channels: int,
    size: int,
) -> onnx.ModelProto:
    shape = [1, channels, size, size]
    graph = helper.make_graph(
        nodes,
        "layers",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
        [numpy_helper.from_array(array, name) for name, array in held.items()],
    )
    opsets = [helper.make_opsetid("", OPSET)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION)


def timed(channels: int, size: int, threads: int, rounds: int | None) -> Record:
    """Of the layers of this size, all in turns."""
    x = np.random.default_rng(0).standard_normal((1, channels, size, size))
    given = {"x": x.astype(np.float32)}
    forms = {BINARY: binary_layers, BYTES: byte_layers}
    runs: dict[tuple[str, int], Run] = {}
    for name, make in forms.items():
        for count in (1, MANY):
            model = make(channels, size, count)
            program = nanoloom.compile(model, threads=threads)
            program(given)
            runs[name, count] = lambda program=program: program(given)
    times = interleaved(list(runs.values()), rounds)
    median = {key: each.median for key, each in zip(runs, times, strict=True)}
    seconds = {
        name: max(median[name, MANY] - median[name, 1], 1e-9) / (MANY - 1)
        for name in forms
    }
    return Record(channels, size, seconds)


def sheet(records: Sequence[Record], threads: int) -> Sheet:
    """Milliseconds of a layer, and how many times as fast a binary one is."""
    rows = [
        (
            f"{each.channels} x {each.size} x {each.size}",
            *(f"{1e3 * each.seconds[name]:.3f}" for name in (BINARY, BYTES)),
            f"{each.products / each.seconds[BINARY] / 1e9:.0f}",
            f"{each.ratio:.2f}",
        )
        for each in records
    ]
    columns = ("layer", "binary ms", "int8 ms", "1e9 products/s", "times int8")
    return Sheet(f"Binary 3x3 layers, {threads} threads", columns, tuple(rows))


def main(arguments: Sequence[str]) -> None:
    parser = parser_of("binary", __doc__)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--layers", default=",".join(map(str, SIZES)), help="channels")
    parser.add_argument("--rounds", type=int, default=None)
    parser.add_argument("--json", type=Path, metavar="FILE")
    asked = parser.parse_args(arguments)
    wanted = [int(word) for word in asked.layers.split(",")]
    progress = Progress(len(wanted))
    records: list[Record] = []
    for channels in wanted:
        size = SIZES[channels]
        records.append(timed(channels, size, asked.threads, asked.rounds))
        progress.advance(f"{channels} channels")
    print_sheet(sheet(records, asked.threads))
    if asked.json:
        asked.json.write_text(json.dumps([asdict(each) for each in records], indent=1))
