"""Matrix products with packed weights beside numpy, and the measured peak.

    python -m benchmarks gemm [--sizes 128x768x768,512x512x512] [--precision f32|bf16]

One MatMul model a size, compiled as any other; one thread; the peak of this core is
measured in the same run.  GFLOP/s count 2 * M * N * K.
"""

from __future__ import annotations

import argparse
import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # read when numpy is imported

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from rich.console import Console
from rich.table import Table

import nanoloom
from benchmarks.timing import interleaved
from nanoloom.cache import Cache
from nanoloom.options import CompileOptions
from nanoloom.target.host import host
from nanoloom.target.peaks import measure

SIZES = (
    "128x768x768,128x768x3072,128x3072x768,512x1024x1024,512x2048x2048,512x512x512,"
    "1024x1024x1024,1x768x3072,4x768x3072,16x768x3072,32x768x768,127x333x517"
)


def model(m: int, k: int, n: int, rng: np.random.Generator) -> onnx.ModelProto:
    """y[m, n] = x[m, k] @ w[k, n], w a constant of the model."""
    weight = (rng.standard_normal((k, n)) * k**-0.5).astype(np.float32)
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"], name="product")],
        "gemm",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [m, k])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [m, n])],
        [numpy_helper.from_array(weight, "w")],
    )
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8
    )


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks gemm")
    parser.add_argument("--sizes", default=SIZES, help="MxKxN, by commas")
    parser.add_argument("--precision", default="f32", choices=("f32", "bf16"))
    parser.add_argument("--repeat", type=int, default=30)
    given = parser.parse_args(arguments)
    target, rng = host(), np.random.default_rng(0)
    table = Table(title=f"GEMM, {given.precision}, one thread, GFLOP/s")
    for head in ("M x K x N", "nanoloom", "numpy f32", "peak", "% of peak"):
        table.add_column(head, justify="right")
    for size in given.sizes.split(","):
        m, k, n = map(int, size.split("x"))
        made = model(m, k, n, rng)
        program = nanoloom.compile(
            made,
            threads=1,
            cache=Cache.temporary(),
            options=CompileOptions(target, given.precision),
        )
        x = rng.standard_normal((m, k)).astype(np.float32)
        weight = numpy_helper.to_array(made.graph.initializer[0])
        variant = program.variant({"x": x})
        calls = {"nanoloom": lambda: variant({"x": x}), "numpy": lambda: x @ weight}  # noqa: B023
        seconds = interleaved(calls, given.repeat)
        peaks = measure(target, 1)
        peak = peaks.best("bf16-amx" if given.precision == "bf16" else "f32")
        rate = {name: 2e-9 * m * n * k / s for name, s in seconds.items()}
        table.add_row(
            size,
            f"{rate['nanoloom']:.0f}",
            f"{rate['numpy']:.0f}",
            f"{peak:.0f}",
            f"{100 * rate['nanoloom'] / peak:.0f}",
        )
    Console().print(table)


if __name__ == "__main__":
    main()
