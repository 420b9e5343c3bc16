"""Write a benchmark model as ONNX, or list them all.

python -m benchmarks.models                           the table of models
python -m benchmarks.models resnet50 -o r.onnx        one model
python -m benchmarks.models bge-small-int8 -o b.onnx  in 8 bits (also -int8-tensor,
                                                      -int8-dynamic)
python -m benchmarks.models --small tests/models      the small ones of the tests
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.models.quantized import parts, write_quantized
from benchmarks.models.small import write_small
from benchmarks.models.table import MODELS, Input, Variant
from nanoloom.errors import Error


def shape(value: Input, sizes: Mapping[str, int]) -> str:
    """`batch=1 x 3 x 224 x 224`: a symbolic dimension with its usual size."""
    return " x ".join(
        f"{dim}={sizes[dim]}" if isinstance(dim, str) else str(dim)
        for dim in value.dims
    )


def shapes(variant: Variant) -> str:
    """The shapes of a model's inputs, once if all are the same."""
    every = [shape(value, variant.sizes) for value in variant.inputs]
    return "\n".join(dict.fromkeys(every))


def print_models() -> None:
    table = Table(title="models", caption="A word is a symbolic dimension.")
    for title in ("name", "inputs", "shape", "small shape"):
        table.add_column(title, no_wrap=title == "name")
    for name, model in MODELS.items():
        inputs = "\n".join(value.name for value in model.full.inputs)
        table.add_row(
            name, inputs, shapes(model.full), shapes(model.small), end_section=True
        )
    Console().print(table)


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.models",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", nargs="?", metavar="NAME", help="a model of the table")
    parser.add_argument("-o", type=Path, metavar="FILE", help="default: NAME.onnx")
    parser.add_argument("--opset", type=int, default=17)
    parser.add_argument("--exporter", choices=("torchscript", "dynamo"))
    parser.add_argument("--seed", type=int, default=0, help="of the random weights")
    parser.add_argument("--tiny", action="store_true", help="the small form of NAME")
    parser.add_argument("--small", type=Path, metavar="FOLDER", help="all small models")
    options = parser.parse_args(arguments)
    if options.name and options.small:
        parser.error("NAME and --small do not go together")
    return options


def main(arguments: list[str] | None = None) -> int:
    """0 done, 1 the model cannot be written, 2 wrong usage."""
    options = parse(arguments)
    try:
        if options.small:
            for path in write_small(options.small):
                print(f"{path} {path.stat().st_size // 1000} kB", flush=True)
        elif options.name:
            write_one(options)
        else:
            print_models()
    except Error as error:
        print(error, file=sys.stderr)
        return 1
    except ModuleNotFoundError as error:
        print(f"{error}; pip install torch==2.13.0 transformers", file=sys.stderr)
        return 1
    return 0


def write_one(options: argparse.Namespace) -> None:
    """Write the one model that the command names."""
    from benchmarks.models.export import write  # needs torch; the table does not

    name: str = options.name
    path: Path = options.o or Path(f"{name}.onnx")
    if parts(name)[1] is not None:
        write_quantized(name, path, options.opset, options.tiny, options.seed)
    else:
        write(name, path, options.opset, options.tiny, options.exporter, options.seed)
    print(f"{path} {path.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    sys.exit(main())
