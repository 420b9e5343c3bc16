"""Other ways to run the same model, to compare results with."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from textwrap import shorten
from typing import Any

import numpy as np
import onnx
import onnx_ir

from nanoloom.errors import Error
from nanoloom.frontend.maps import drop_maps, has_maps
from nanoloom.frontend.onnx import open_source
from nanoloom.frontend.text_steps.texts import Texts
from nanoloom.frontend.torch.given import is_archive
from nanoloom.inspect.rounding import TRIAL, TRIALS, with_errors
from nanoloom.interface.vocabulary import NO_STRINGS, Strings

Array = np.ndarray[Any, np.dtype[Any]]
Arrays = Mapping[str, Array]
Run = Callable[[Arrays], list[Array]]
LARGE = 1 << 30  # bytes of weights that protobuf still takes with the graph
NAMES = {"ort": "ONNX Runtime", "reference": "the ONNX reference"}


def open_reference(kind: str, path: Path, threads: int) -> Run:
    """A model file as a function from inputs to the list of outputs.

    kind: one of NAMES.  Raises Error if that is not installed or does not run it.
    """
    return OPENERS[kind](path, threads)


def disturbed(
    kind: str,
    model: onnx_ir.Model,
    folder: Path,
    threads: int,
    inputs: Arrays,
    texts: Texts | Strings = NO_STRINGS,
) -> list[list[Array]]:
    """The outputs of a bound model with rounding errors added, once a trial.

    texts: what is string in inputs and outputs, and number in the bound model.
    """
    names = [str(x.name) for x in model.graph.outputs]
    run = open_reference(kind, save(with_errors(model), folder), threads)

    def trial(number: int) -> list[Array]:
        drawn = {TRIAL: np.array(1 + number, np.float32)}

        def made(given: Mapping[str, Any]) -> dict[str, Array]:
            return dict(zip(names, run({**given, **drawn}), strict=True))

        return list(texts.call(inputs, made).values())

    return [trial(number) for number in range(TRIALS)]


def readable(path: Path, bound: onnx_ir.Model, folder: Path) -> Path:
    """The model's own file; one that others read for a program of PyTorch, and one
    that gives tensors for a model that makes dictionaries of its scores."""
    if is_archive(path):
        return save(bound, folder)
    return without_maps(path, folder) if has_maps(open_source(path).proto) else path


def without_maps(path: Path, folder: Path) -> Path:
    model = onnx.load(path)
    with warnings.catch_warnings():  # said when it was compiled
        warnings.simplefilter("ignore")
        drop_maps(model, str(path))
    without = folder / "without-maps.onnx"
    onnx.save(model, without)
    return without


def save(model: onnx_ir.Model, folder: Path, name: str = "") -> Path:
    """Write a model to a file of its own in a folder."""
    count = sum(1 for _ in folder.iterdir())
    path = folder / f"{name or f'model-{count}'}.onnx"
    values = model.graph.initializers.values()
    size = sum(x.const_value.nbytes for x in values if x.const_value is not None)
    beside = f"{path.stem}.weights" if size > LARGE else None
    onnx_ir.save(model, path, external_data=beside)
    return path


def onnx_runtime(path: Path, threads: int) -> Run:
    try:
        import onnxruntime
    except ImportError:
        raise Error(
            "ONNX Runtime is not installed",
            hint="pip install 'nanoloom[peers]', or compare --against reference",
        ) from None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 4  # its complaints come as exceptions, too
    # Fused kernels are not what a model says; and optimizing takes longer than one run.
    options.graph_optimization_level = (
        onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    )
    session = answering(
        "ONNX Runtime",
        lambda: onnxruntime.InferenceSession(
            str(path), options, providers=["CPUExecutionProvider"]
        ),
    )
    wanted = {x.name for x in session.get_inputs()}

    def run(inputs: Arrays) -> list[Array]:
        feeds = {name: array for name, array in inputs.items() if name in wanted}
        made = answering("ONNX Runtime", lambda: session.run(None, feeds))
        return [np.asarray(x) for x in made]

    return run


def onnx_reference(path: Path, threads: int) -> Run:
    """ONNX's own evaluator, in numpy: slow and simple."""
    del threads
    from onnx.reference import ReferenceEvaluator
    from onnx.reference.op_run import OpRun

    class GatherElements(OpRun):
        """ONNX's chooses among arrays, of which numpy takes 64 at most."""

        def _run(self, data: Array, indices: Array, axis: int = 0) -> tuple[Array]:
            return (np.take_along_axis(data, indices, axis),)

    name = NAMES["reference"]
    own: list[type[OpRun]] = [GatherElements]
    evaluator = answering(name, lambda: ReferenceEvaluator(str(path), new_ops=own))

    def run(inputs: Arrays) -> list[Array]:
        with np.errstate(all="ignore"):
            made = answering(name, lambda: evaluator.run(None, dict(inputs)))
        assert isinstance(made, Sequence)
        return [np.asarray(x) for x in made]

    return run


MOST = 300  # characters of what a peer says


def answering(name: str, ask: Callable[[], Any]) -> Any:
    """What the peer answers; whatever it raises is one sentence."""
    try:
        return ask()
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 - peers raise classes of their own
        told = in_short(str(error)) or type(error).__name__
        raise Error(f"{name} does not run this model: {told}") from None


def in_short(text: str) -> str:
    """The first words and the last ones: reasons stand behind names of functions."""
    whole = " ".join(text.split())
    if len(whole) <= MOST:
        return whole
    first = shorten(whole, MOST // 2, placeholder="")
    return f"{first} ... {whole[-MOST // 2 :].partition(' ')[2]}"


OPENERS: dict[str, Callable[[Path, int], Run]] = {
    "ort": onnx_runtime,
    "reference": onnx_reference,
}
