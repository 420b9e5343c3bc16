"""Single operators beside ONNX Runtime, drawn at random: which kind is behind?

    python -m benchmarks operators [--count N] [--seed N] [--only Reduce,Softmax]
        [--threads 1] [--against onnxruntime] [--rounds N] [--quick] [--json FILE]

Each is a model of one operator, of a shape that is drawn: two to four axes, 2^14 to
2^19 numbers, sizes that divide nothing.  The slowest ones come first.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from math import exp, log, prod
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from benchmarks.arguments import add_race, parser_of
from benchmarks.race import race
from benchmarks.systems import Measured, Task, absences
from nanoloom_papers.reproduce.tables import NAMES, Sheet

OPSET, IR_VERSION = 20, 10
FEWEST, MOST = 14, 19  # powers of two: numbers of an input
Random = np.random.Generator
Shape = tuple[int, ...]


@dataclass(frozen=True)
class Operator:
    """A node with its inputs, those that are constants, and attributes."""

    op: str
    inputs: tuple[np.ndarray, ...]
    constants: tuple[np.ndarray, ...] = ()
    attributes: dict[str, Any] = field(default_factory=dict[str, Any])
    outputs: int = 1

    def model(self) -> onnx.ModelProto:
        """x0, x1, ... -> y0, ...; their shapes and types are ONNX's to infer."""
        given = {f"x{i}": x for i, x in enumerate(self.inputs)}
        known = {f"c{i}": x for i, x in enumerate(self.constants)}
        made = [f"y{i}" for i in range(self.outputs)]
        graph = helper.make_graph(
            [helper.make_node(self.op, [*given, *known], made, **self.attributes)],
            "operator",
            [
                helper.make_tensor_value_info(
                    name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape
                )
                for name, x in given.items()
            ],
            [onnx.ValueInfoProto(name=name) for name in made],
            [numpy_helper.from_array(x, name) for name, x in known.items()],
        )
        opsets = [helper.make_opsetid("", OPSET)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION)
        return onnx.shape_inference.infer_shapes(model)


Draw = Callable[[Random, Shape], Operator]


def numbers(r: Random, *shape: int) -> np.ndarray:
    return r.standard_normal(shape).astype(np.float32)


def of_one(op: str, **attributes: Any) -> Draw:
    """Of one number each, which is positive."""
    return lambda r, s: Operator(op, (abs(numbers(r, *s)) + 0.1,), (), attributes)


def of_two(op: str) -> Draw:
    """Of two tensors, or of one and a row."""

    def draw(r: Random, s: Shape) -> Operator:
        other = s if r.random() < 0.5 else s[-1:]
        return Operator(op, (abs(numbers(r, *s)) + 0.1, numbers(r, *other)))

    return draw


def along(op: str, outputs: int = 1, **attributes: Any) -> Draw:
    """Along an axis that is an attribute."""

    def draw(r: Random, s: Shape) -> Operator:
        given = {"axis": int(r.integers(len(s))), **attributes}
        return Operator(op, (numbers(r, *s),), (), given, outputs)

    return draw


def reduction(op: str) -> Draw:
    """Along one axis or the last two, which are an input."""

    def draw(r: Random, s: Shape) -> Operator:
        last = r.random() < 0.3
        axes = [-2, -1] if last else [int(r.integers(len(s)))]
        return Operator(op, (numbers(r, *s),), (np.array(axes, np.int64),))

    return draw


def gathered(r: Random, s: Shape) -> Operator:
    axis = int(r.integers(len(s)))
    at = r.integers(0, s[axis], max(2, s[axis] // 2))
    return Operator("Gather", (numbers(r, *s), at), (), {"axis": axis})


def transposed(r: Random, s: Shape) -> Operator:
    order = [int(d) for d in r.permutation(len(s))]
    return Operator("Transpose", (numbers(r, *s),), (), {"perm": order})


def padded(r: Random, s: Shape) -> Operator:
    mode = ("constant", "reflect", "edge")[int(r.integers(3))]
    pads = np.array([0] * (len(s) - 1) + [1], np.int64)
    both = np.concatenate([pads, pads])
    return Operator("Pad", (numbers(r, *s),), (both,), {"mode": mode})


def sliced(r: Random, s: Shape) -> Operator:
    axis = int(r.integers(len(s)))
    bounds = [np.array([n], np.int64) for n in (0, s[axis], axis, 2)]
    return Operator("Slice", (numbers(r, *s),), tuple(bounds))


def chosen(r: Random, s: Shape) -> Operator:
    return Operator("Where", (r.random(s) > 0.5, numbers(r, *s), numbers(r, *s)))


def largest(r: Random, s: Shape) -> Operator:
    axis = int(r.integers(len(s)))
    count = np.array([min(5, s[axis])], np.int64)
    return Operator("TopK", (numbers(r, *s),), (count,), {"axis": axis}, 2)


def normalized(r: Random, s: Shape) -> Operator:
    return Operator("LayerNormalization", (numbers(r, *s),), (numbers(r, s[-1]),))


def quantized(r: Random, s: Shape) -> Operator:
    scale, zero = np.array(0.02, np.float32), np.array(128, np.uint8)
    return Operator("QuantizeLinear", (numbers(r, *s),), (scale, zero))


def image(r: Random) -> Shape:
    """Channels and pixels, about as many numbers as the others have."""
    side = int(r.integers(7, 113))
    return (1, max(3, 2**18 // side**2), side, side + int(r.integers(3)))


def windows(op: str) -> Draw:
    def draw(r: Random, _: Shape) -> Operator:
        side, step = int(r.integers(2, 6)), int(r.integers(1, 3))
        given = {"kernel_shape": [side, side], "strides": [step, step]}
        return Operator(op, (numbers(r, *image(r)),), (), given)

    return draw


def transposed_convolution(r: Random, _: Shape) -> Operator:
    """Of few channels and pixels, with filters of one or two steps."""
    step, channels = 2, int(r.integers(3, 97))
    side, pixels = step * int(r.integers(1, 3)), int(r.integers(7, 57))
    x = numbers(r, 1, channels, pixels, pixels)
    w = numbers(r, channels, int(r.integers(1, 65)), side, side)
    pads = [(side - step) // 2] * 4
    return Operator(
        "ConvTranspose", (x,), (w,),
        {"kernel_shape": [side, side], "strides": [step, step], "pads": pads},
    )  # fmt: skip


ONE = ("Relu", "Sigmoid", "Tanh", "Exp", "Log", "Erf", "Gelu", "Sqrt", "Softplus",
       "HardSwish", "Reciprocal", "Floor", "Neg", "Elu")  # fmt: skip
TWO = ("Add", "Sub", "Mul", "Div", "Max", "Less", "Pow")
FOLDS = ("ReduceSum", "ReduceMax", "ReduceMin", "ReduceMean", "ReduceL2",
         "ReduceLogSumExp")  # fmt: skip
DRAWS: tuple[Draw, ...] = (
    *(of_one(op) for op in ONE),
    *(of_two(op) for op in TWO),
    *(reduction(op) for op in FOLDS),
    *(along(op) for op in ("ArgMax", "ArgMin", "Softmax", "LogSoftmax")),
    *(of_one("Cast", to=kind) for kind in (TensorProto.UINT8, TensorProto.INT64)),
    gathered, transposed, padded, sliced, chosen, largest, normalized, quantized,
    windows("MaxPool"), windows("AveragePool"), transposed_convolution,
)  # fmt: skip


def shape_of(r: Random) -> Shape:
    """Two to four axes; the last one is short as often as it is long."""
    count = 2 ** r.uniform(FEWEST, MOST)
    rank = int(r.integers(2, 5))
    last = int(2 ** r.uniform(1, 10))
    left = max(2.0, count / last)
    parts = r.dirichlet([2.0] * (rank - 1)) * log(left)
    return (*(max(1, round(exp(part))) for part in parts), last)


def tasks(given: argparse.Namespace, folder: Path) -> Iterator[Task]:
    """So many operators of the seed, all kinds equally often."""
    words = [word for word in given.only.split(",") if word]
    for number in range(given.count):
        r = np.random.default_rng((given.seed, number))
        made = DRAWS[number % len(DRAWS)](r, shape_of(r))
        name = name_of(made)
        if words and not any(word in name for word in words):
            continue
        path = folder / f"{number}.onnx"
        onnx.save(made.model(), path)
        yield Task(name, path, {f"x{i}": x for i, x in enumerate(made.inputs)})


def name_of(made: Operator) -> str:
    """Operator, shape, and what decides about its loops."""
    facts = [f"{key} {value}" for key, value in made.attributes.items()]
    if made.op.startswith("Reduce"):
        facts.append(f"axes {made.constants[0].tolist()}")
    shape = "x".join(map(str, made.inputs[0].shape))
    return " ".join([made.op, shape, *facts]).replace(",", "")


def sheet(rows: Sequence[Measured], threads: int) -> Sheet:
    """The slowest first, beside the fastest of the others."""
    done = sorted((row for row in rows if row.ratio), key=lambda row: -(row.ratio or 0))
    keys = [k for k in NAMES if any(k in row.times for row in rows)]
    cells: list[tuple[str, ...]] = []
    for made in done:
        times = {k: f"{1e6 * t.median:.1f}" for k, t in made.times.items()}
        ratio = f"{1 / (made.ratio or 1):.2f}"
        cells.append((made.task.name, *(times.get(k, "") for k in keys), ratio))
    heads = ("-", *(f">{NAMES[k]} us" for k in keys), ">best peer's")
    speeds = [1 / (row.ratio or 1) for row in done]
    mean = prod(speeds) ** (1 / len(speeds)) if speeds else 1.0
    behind = sum(speed < 1 for speed in speeds)
    notes = [f"{len(done)} operators: {mean:.2f} in the mean, {behind} below 1"]
    title = f"operators, f32, threads: {threads}"
    return Sheet(title, heads, tuple(cells), (*notes, *absences(rows)))


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = parser_of("operators", __doc__)
    add_race(parser, ("onnxruntime",), "1")
    parser.add_argument("--count", type=int, default=3 * len(DRAWS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="words in the names")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> None:
    given = parse(arguments)
    given.count = min(given.count, 2) if given.quick else given.count
    race(given, tasks, sheet)


if __name__ == "__main__":
    main()
