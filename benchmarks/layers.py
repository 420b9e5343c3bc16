"""Convolutions that nobody tuned for: 100 of timm's networks, beside their peers.

    python -m benchmarks layers [--threads 1] [--only depthwise,dense] [--json FILE]
        [--networks] [--exact-conv]

Each is an ONNX model of one convolution with bias and ReLU, batch 1, f32.
draw_layers.py drew them, seeded, all kinds in turns; --networks has those of
ResNet-50, VGG-16 and MobileNetV2 instead.  %limit: the time that the peak, measured in
turns with all, or the bandwidth of the cache that the layer fits in, allows, over
nanoloom's; above 100 where Winograd's method saves products.  %kernel: the same of the
convolution's kernel alone, without the steps that convert from and to the model's
layout; a kernel that reads that layout itself, as of 1x1 filters, has it in its time.
"""

from __future__ import annotations

import argparse
import json
import math
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import geometric_mean
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from benchmarks.arguments import add_race, parser_of
from benchmarks.show import Progress, print_sheet
from benchmarks.systems import MODEL_PEERS, Measured, Task, absences, job_of, measure
from nanoloom.target.host import host
from nanoloom_papers.reproduce.contenders import NANOLOOM, Company
from nanoloom_papers.reproduce.roofline import Limits, limits
from nanoloom_papers.reproduce.tables import NAMES, SHORT, Sheet
from nanoloom_papers.reproduce.timing import QUICK, Pace

DRAWN = Path(__file__).with_name("layers.json")
NETWORKS = Path(__file__).with_name("network_layers.json")
FEW = 4  # channels of a first layer at most
OPSET, IR_VERSION = 17, 8
LAYOUT = "/layout"  # how the name of a step ends that converts
ALLOWED = 1e-4  # of the largest number: f32, and Winograd's roundings
Pair = tuple[int, int]


@dataclass(frozen=True)
class Layer:
    """A convolution of one image.  network: in which it is."""

    network: str
    channels: int
    high: int
    wide: int
    features: int
    kernel: Pair
    strides: Pair
    padding: Pair
    dilations: Pair
    groups: int

    @staticmethod
    def of(given: dict[str, Any]) -> Layer:
        whole: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in given.items()
        }
        return Layer(**whole)

    @property
    def sizes(self) -> tuple[object, ...]:
        """All that decides about its work."""
        whole = (self.channels, self.high, self.wide, self.features, self.groups)
        return (*whole, self.kernel, self.strides, self.padding, self.dilations)

    @property
    def kind(self) -> str:
        if self.channels <= FEW:
            return "first"
        if self.groups > 1:
            return "depthwise" if self.groups == self.channels else "grouped"
        return "pointwise" if self.kernel == (1, 1) else "dense"

    @property
    def result(self) -> tuple[int, int]:
        """The extents of the image that it makes."""
        axes = zip(
            (self.high, self.wide), self.kernel, self.strides, self.padding,
            self.dilations, strict=True,
        )  # fmt: skip
        high, wide = [(n + 2 * p - (k - 1) * d - 1) // s + 1 for n, k, s, p, d in axes]
        return high, wide

    @property
    def flops(self) -> int:
        depth = self.channels // self.groups * math.prod(self.kernel)
        return 2 * math.prod(self.result) * self.features * depth

    @property
    def bytes(self) -> int:
        """Of image, filters and result."""
        filters = self.features * self.channels // self.groups * math.prod(self.kernel)
        image = self.channels * self.high * self.wide
        return 4 * (image + filters + self.features * math.prod(self.result))

    def __str__(self) -> str:
        words = [f"{self.channels}x{self.high}x{self.wide}", str(self.features)]
        words.append("x".join(map(str, self.kernel)))
        if self.strides != (1, 1):
            words.append(f"stride {self.strides[0]}")
        if self.dilations != (1, 1):
            words.append(f"dilation {self.dilations[0]}")
        if self.kind == "grouped":
            words.append(f"groups {self.groups}")
        return " ".join(words)


def known_layers(file: Path = DRAWN) -> list[Layer]:
    return [Layer.of(each) for each in json.loads(file.read_text())]


def model_of(layer: Layer) -> onnx.ModelProto:
    """relu(conv(x, w) + b), seeded numbers."""
    random = np.random.default_rng(0)
    depth = layer.channels // layer.groups
    filters = random.standard_normal((layer.features, depth, *layer.kernel), np.float32)
    filters /= math.sqrt(depth * math.prod(layer.kernel))
    bias = random.standard_normal(layer.features, np.float32)
    conv = helper.make_node(
        "Conv", ["x", "w", "b"], ["c"], kernel_shape=layer.kernel, group=layer.groups,
        strides=layer.strides, pads=layer.padding * 2, dilations=layer.dilations,
    )  # fmt: skip
    shapes = (
        (1, layer.channels, layer.high, layer.wide),
        (1, layer.features, *layer.result),
    )
    image, made = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in zip("xy", shapes, strict=True)
    )
    weights = [
        numpy_helper.from_array(filters, "w"),
        numpy_helper.from_array(bias, "b"),
    ]
    relu = helper.make_node("Relu", ["c"], ["y"])
    graph = helper.make_graph([conv, relu], "layer", [image], [made], weights)
    opset = helper.make_opsetid("", OPSET)
    return helper.make_model(graph, opset_imports=[opset], ir_version=IR_VERSION)


@dataclass(frozen=True)
class Row:
    """A layer measured."""

    layer: Layer
    measured: Measured
    limits: Limits

    @property
    def limit(self) -> float:
        """Seconds that moving the bytes, or the products, take at least."""
        layer, limits = self.layer, self.limits
        moving = layer.bytes / limits.bandwidth(layer.bytes)[1]
        peak = self.measured.peak or limits.peak("f32") or math.inf
        return max(moving, layer.flops / peak) / 1e9

    @property
    def kernel(self) -> float | None:
        """Seconds of the longest step that is no conversion of layouts."""
        steps = self.measured.steps
        every = [ns for name, ns in steps if not name.endswith(LAYOUT)]
        return max(every) / 1e9 if every else None

    @property
    def speed(self) -> float | None:
        """The fastest peer's time over nanoloom's."""
        ratio = self.measured.ratio
        return None if ratio is None else 1 / ratio

    def to_dict(self) -> dict[str, object]:
        return {
            "kind": self.layer.kind,
            "layer": str(self.layer),
            "network": self.layer.network,
            "flops": self.layer.flops,
            "bytes": self.layer.bytes,
            "limit_seconds": self.limit,
            "peak_gflops": self.measured.peak,
            "speed": self.speed,
            "kernel_seconds": self.kernel,
            "steps_nanoseconds": self.measured.steps,
            **self.measured.to_dict(),
        }


def sheet(rows: Sequence[Row], threads: int) -> Sheet:
    """All layers, the slowest of each kind first."""
    keys = [k for k in NAMES if any(k in row.measured.times for row in rows)]
    cells: list[tuple[str, ...]] = []
    for row in sorted(rows, key=lambda row: (row.layer.kind, row.speed or 0)):
        times = row.measured.times
        own = times.get(NANOLOOM.key)
        cells.append(
            (
                row.layer.kind,
                str(row.layer),
                row.layer.network,
                *(f"{1e6 * times[k].median:.0f}" if k in times else "" for k in keys),
                f"{row.layer.flops / own.median / 1e9:.0f}" if own else "",
                f"{100 * row.limit / own.median:.0f}" if own else "",
                f"{100 * row.limit / row.kernel:.0f}" if row.kernel else "",
                "" if row.speed is None else f"{row.speed:.2f}",
            )
        )
    heads = ("kind", "layer", "network")
    times_of = tuple(f">{SHORT.get(k, NAMES[k])} us" for k in keys)
    title = f"convolutions drawn from networks, f32, threads: {threads}"
    columns = (*heads, *times_of, ">GFLOP/s", ">%limit", ">%kernel", ">speed")
    below = (
        *means(rows),
        "speed: the time of the fastest peer over nanoloom's",
        *absences(row.measured for row in rows),
    )
    return Sheet(title, columns, tuple(cells), below)


def means(rows: Iterable[Row]) -> list[str]:
    """Geometric means of the speeds: of each kind, and of all."""
    speeds: dict[str, list[float]] = {}
    for row in rows:
        if row.speed is not None:
            speeds.setdefault(row.layer.kind, []).append(row.speed)
    every = [speed for found in speeds.values() for speed in found]
    if every:
        speeds["all"] = every
    return [
        f"{kind}: {geometric_mean(found):.2f} in the mean of {len(found)}, "
        f"{min(found):.2f} to {max(found):.2f}"
        for kind, found in speeds.items()
    ]


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = parser_of("layers", __doc__)
    add_race(parser, MODEL_PEERS, "1")
    parser.add_argument("--only", default="", help="kinds, by commas")
    parser.add_argument("--networks", action="store_true", help="of three networks")
    exact = "nanoloom's without Winograd's method"
    parser.add_argument("--exact-conv", action="store_true", help=exact)
    return parser.parse_args(arguments)


def chosen(given: argparse.Namespace) -> list[Layer]:
    kinds = [word for word in given.only.split(",") if word]
    known = known_layers(NETWORKS if given.networks else DRAWN)
    found = [x for x in known if not kinds or x.kind in kinds]
    return sorted(found, key=lambda layer: layer.flops)[:2] if given.quick else found


def run(given: argparse.Namespace, threads: int, progress: Progress) -> list[Row]:
    pace = QUICK if given.quick else Pace(rounds=given.rounds)
    rows: list[Row] = []
    with (
        tempfile.TemporaryDirectory(prefix="nanoloom-") as place,
        Company(tuple(given.against.split(",")), Path(place)) as company,
    ):
        scratch = Path(place)
        for layer in chosen(given):
            progress.say(f"{layer}, threads: {threads}")
            path = scratch / "layer.onnx"
            onnx.save(model_of(layer), path)
            shape = (1, layer.channels, layer.high, layer.wide)
            inputs = {"x": np.random.default_rng(1).standard_normal(shape, np.float32)}
            facts = {"exact_conv": given.exact_conv}
            task = Task(str(layer), path, inputs, facts=facts, allowed=ALLOWED)
            job = job_of(task, threads, scratch, host(), scratch / "cache")
            rates = limits(host(), threads)
            made = measure(task, job, company, pace, rates.unit("f32"))
            rows.append(Row(layer, made, rates))
            progress.advance(f"{layer}, threads: {threads}")
    return rows


def main(arguments: list[str] | None = None) -> None:
    given = parse(arguments)
    counts = [int(word) for word in given.threads.split(",")]
    every: list[Row] = []
    with Progress(len(counts) * len(chosen(given))) as progress:
        for threads in counts:
            rows = run(given, threads, progress)
            print_sheet(sheet(rows, threads))
            every += rows
    if given.json:
        given.json.write_text(json.dumps([r.to_dict() for r in every], indent=1))


if __name__ == "__main__":
    main()
