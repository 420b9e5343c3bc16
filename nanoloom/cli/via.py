"""--via: which way a program of PyTorch (.pt2) becomes a model."""

from __future__ import annotations

import atexit
import functools
import inspect
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from nanoloom.cli.lowering_options import declared

GRAPH, ONNX = "graph", "onnx"
Via = Annotated[
    str,
    typer.Option(
        "--via",
        metavar="WAY",
        help="How a .pt2 of PyTorch comes in: graph, or onnx (PyTorch's own exporter).",
    ),
]


def with_via(verb: Callable[..., int]) -> Callable[..., int]:
    """Give a verb that takes `model` and `dims` the option."""

    @functools.wraps(verb)
    def typed(model: Path, via: str, **given: object) -> int:
        return verb(model=model_by(via, model), **given)

    dims = inspect.signature(verb, eval_str=True).parameters["dims"]
    options = {"via": (Via, GRAPH), dims.name: (dims.annotation, dims.default)}
    return declared(typed, verb, dims.name, options)


def model_by(way: str, path: Path) -> Path:
    """The file to read: for "onnx" what PyTorch's exporter makes, until this ends.

    Raises Unsupported for what it refuses, typer.BadParameter for another word.
    """
    if way == GRAPH:
        return path
    if way != ONNX:
        reason = f"{way} is neither {GRAPH} nor {ONNX}"
        raise typer.BadParameter(reason, param_hint="--via")
    from nanoloom.errors import InputError
    from nanoloom.frontend.torch.given import is_archive, read_archive
    from nanoloom.inspect.references import save

    if path.exists() and not is_archive(path):
        reason = "--via is for a program of PyTorch (.pt2), and this is none"
        raise InputError(reason, where=str(path), hint="leave it out")
    model = read_archive(path, way)
    folder = Path(tempfile.mkdtemp(prefix="nanoloom-via-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    (folder / path.name).symlink_to(path.resolve())  # a peer runs it
    return save(model, folder, path.stem)
