"""Recurrent layers beside ONNX Runtime and OpenVINO: a frame, and many in a row.

    python -m benchmarks recurrences [--threads 1,2] [--only LSTM,nsnet2]
        [--against onnxruntime,openvino] [--rounds N] [--quick] [--json FILE]
        [--folder DIR]

Layers have seeded weights; nsnet2 is the model of that name.  Everybody in a process of
its own, in turns, medians.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from benchmarks.arguments import add_race, parser_of
from benchmarks.models import seeded_inputs
from benchmarks.race import race
from benchmarks.systems import (
    MODEL_PEERS,
    Measured,
    Task,
    absences,
)
from benchmarks.whole_models import model_file
from nanoloom_papers.reproduce.tables import NAMES, Sheet

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
OPSET, IR_VERSION = 20, 10
NSNET2 = "nsnet2"


@dataclass(frozen=True)
class Layers:
    """Layers of one kind, one behind the other, over so many steps."""

    kind: str
    width: int
    steps: int
    count: int = 1
    both: bool = False  # directions

    @property
    def name(self) -> str:
        times = f" x {self.count}" if self.count > 1 else ""
        word = "bidirectional " if self.both else ""
        return f"{word}{self.kind} {self.width}{times}, {self.steps} steps"

    def model(self) -> onnx.ModelProto:
        """x [steps, 1, width] -> y [steps, 1, directions * width]."""
        random = np.random.default_rng(self.width)
        ways, gates = 1 + self.both, GATES[self.kind]
        nodes: list[onnx.NodeProto] = []
        weights: dict[str, np.ndarray] = {
            "whole": np.array([self.steps, 1, -1], np.int64)
        }
        value, inputs = "x", self.width
        for i in range(self.count):
            for name, columns in (("w", inputs), ("r", self.width)):
                shape = (ways, gates * self.width, columns)
                drawn = random.standard_normal(shape) / np.sqrt(columns)
                weights[f"{name}{i}"] = drawn.astype(np.float32)
            nodes.append(
                helper.make_node(
                    self.kind,
                    [value, f"w{i}", f"r{i}"],
                    [f"y{i}"],
                    f"layer{i}",
                    hidden_size=self.width,
                    direction="bidirectional" if self.both else "forward",
                )
            )
            turned = helper.make_node(
                "Transpose", [f"y{i}"], [f"t{i}"], perm=[0, 2, 1, 3]
            )
            nodes += [
                turned,
                helper.make_node("Reshape", [f"t{i}", "whole"], [f"z{i}"]),
            ]
            value, inputs = f"z{i}", ways * self.width
        graph = helper.make_graph(
            nodes,
            "layers",
            [row("x", self.steps, self.width)],
            [row(value, self.steps, inputs)],
            [numpy_helper.from_array(w, name) for name, w in weights.items()],
        )
        opsets = [helper.make_opsetid("", OPSET)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION)

    def inputs(self) -> dict[str, np.ndarray]:
        random = np.random.default_rng(self.steps)
        shape = (self.steps, 1, self.width)
        return {"x": random.standard_normal(shape).astype(np.float32)}


def row(name: str, steps: int, width: int) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, [steps, 1, width])


LAYERS = (
    Layers("LSTM", 512, 20, count=2),
    Layers("LSTM", 93, 20, count=2, both=True),
    Layers("LSTM", 93, 100, count=2, both=True),
    Layers("GRU", 400, 100),
)
TINY = (Layers("GRU", 7, 3),)
FRAMES = (1, 100)  # of nsnet2


def tasks(given: argparse.Namespace, folder: Path) -> Iterator[Task]:
    """The layers and nsnet2 whose names have one of the words.

    Each file is written when it is asked for: nsnet2 needs PyTorch.
    """
    for layers in TINY if given.quick else LAYERS:
        if chosen(given, layers.name):
            path = folder / f"{layers.name.replace(' ', '_')}.onnx"
            onnx.save(layers.model(), path)
            yield Task(layers.name, path, layers.inputs())
    if given.quick or not chosen(given, NSNET2):
        return
    for frames in FRAMES:
        inputs = seeded_inputs(NSNET2, sizes={"frames": frames})
        path = model_file(NSNET2, folder)
        yield Task(f"{NSNET2}, {frames} frames", path, inputs)


def chosen(given: argparse.Namespace, name: str) -> bool:
    words = [word for word in given.only.split(",") if word]
    return not words or any(word in name for word in words)


def sheet(rows: Sequence[Measured], threads: int) -> Sheet:
    keys = [k for k in NAMES if any(k in row.times for row in rows)]
    cells: list[tuple[str, ...]] = []
    for made in rows:
        times = {k: f"{1e3 * t.median:.3f}" for k, t in made.times.items()}
        ratio = "" if made.ratio is None else f"{1 / made.ratio:.2f}"
        cells.append((made.task.name, *(times.get(k, "") for k in keys), ratio))
    heads = ("-", *(f">{NAMES[k]} ms" for k in keys), ">best peer's")
    title = f"recurrent layers, f32, threads: {threads}"
    return Sheet(title, heads, tuple(cells), tuple(absences(rows)))


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = parser_of("recurrences", __doc__)
    add_race(parser, MODEL_PEERS, "1,2")
    parser.add_argument("--only", default="", help="words in the names")
    parser.add_argument("--folder", type=Path, help="where models are kept")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> None:
    given = parse(arguments)
    race(given, tasks, sheet)


if __name__ == "__main__":
    main()
