"""The systems that a user would take instead, on the same file and threads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from nanoloom.errors import Error
from nanoloom.inspect.references import answering

Array = np.ndarray[Any, np.dtype[Any]]
Arrays = Mapping[str, Array]


class NotInstalled(Error):
    """A peer that this environment does not have."""


@dataclass(frozen=True)
class Contender:
    """A way to run the model: its name, and a call that gives the outputs in order."""

    name: str
    run: Callable[[], list[Array]]


def open_peer(kind: str, path: Path, arrays: Arrays, threads: int) -> Contender:
    """A peer with the model loaded.  kind: one of PEERS.

    Raises NotInstalled, or Error if it does not take this model.
    """
    return PEERS[kind](path, arrays, threads)


def onnx_runtime(path: Path, arrays: Arrays, threads: int) -> Contender:
    """ONNX Runtime's CPU provider, all its optimizations on."""
    try:
        import onnxruntime
    except ImportError:
        raise missing("ONNX Runtime", "onnxruntime") from None
    name = f"ONNX Runtime {onnxruntime.__version__}"
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 4
    # Its threads must not spin on while another system is measured.
    options.add_session_config_entry("session.force_spinning_stop", "1")
    session = answering(
        name,
        lambda: onnxruntime.InferenceSession(
            str(path), options, providers=["CPUExecutionProvider"]
        ),
    )
    wanted = {x.name for x in session.get_inputs()}
    feeds = {key: array for key, array in arrays.items() if key in wanted}
    return contender(name, lambda: session.run(None, feeds))


def openvino(path: Path, arrays: Arrays, threads: int) -> Contender:
    """OpenVINO's CPU plugin for one stream, in f32 (by itself it may choose bf16)."""
    try:
        import openvino as vino  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise missing("OpenVINO", "openvino") from None
    name = f"OpenVINO {version('openvino')}"
    hints = {
        "INFERENCE_NUM_THREADS": threads,
        "INFERENCE_PRECISION_HINT": "f32",
        "PERFORMANCE_HINT": "LATENCY",
    }

    def load() -> Any:
        core = vino.Core()
        model = core.read_model(str(path))
        model.reshape({key: list(array.shape) for key, array in arrays.items()})
        return core.compile_model(model, "CPU", hints).create_infer_request()

    request = answering(name, load)
    inputs = dict(arrays)
    return contender(name, lambda: list(request.infer(inputs).values()))


def torch(path: Path, arrays: Arrays, threads: int) -> Contender:
    """PyTorch on the program that the model was exported from, MODEL.pt2 beside it."""
    try:
        import torch as pytorch
    except ImportError:
        raise missing("PyTorch", "torch") from None
    name = f"PyTorch {version('torch')}"
    program = path.with_suffix(".pt2")
    if not program.is_file():
        raise Error(
            "PyTorch does not read ONNX",
            hint=f"save what was exported with torch.export.save as {program}",
        )
    pytorch.set_num_threads(threads)
    module = answering(name, lambda: pytorch.export.load(str(program)).module())
    tensors = [pytorch.from_numpy(array.copy()) for array in arrays.values()]

    def run() -> list[Any]:
        with pytorch.inference_mode():
            made = module(*tensors)
        found = made.values() if isinstance(made, Mapping) else made
        return [found] if isinstance(found, pytorch.Tensor) else list(found)

    return contender(name, run)


def contender(name: str, run: Callable[[], list[Any]]) -> Contender:
    """Run once: a peer that cannot says so before anything is timed."""
    answering(name, run)
    return Contender(name, run)


def missing(name: str, package: str) -> NotInstalled:
    return NotInstalled(f"{name} is not installed", hint=f"pip install {package}")


PEERS: dict[str, Callable[[Path, Arrays, int], Contender]] = {
    "ort": onnx_runtime,
    "openvino": openvino,
    "torch": torch,
}
