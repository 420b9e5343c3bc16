"""The systems a user would pick instead, on the same file with the same threads."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

Arrays = Mapping[str, np.ndarray]
Run = Callable[[], object]


def onnx_runtime(path: Path, arrays: Arrays, threads: int) -> Run:
    """ONNX Runtime's CPU provider."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    # Its threads must not spin on while another system is measured.
    options.add_session_config_entry("session.force_spinning_stop", "1")
    session = onnxruntime.InferenceSession(
        str(path), options, providers=["CPUExecutionProvider"]
    )
    return lambda: session.run(None, dict(arrays))


def openvino(path: Path, arrays: Arrays, threads: int, precision: str = "f32") -> Run:
    """OpenVINO's CPU plugin, its precision named (it would choose bf16 by itself)."""
    import openvino

    core = openvino.Core()
    model = core.read_model(str(path))
    model.reshape({name: list(array.shape) for name, array in arrays.items()})
    compiled = core.compile_model(
        model,
        "CPU",
        {
            "INFERENCE_NUM_THREADS": threads,
            "INFERENCE_PRECISION_HINT": precision,
            "PERFORMANCE_HINT": "LATENCY",
        },
    )
    request = compiled.create_infer_request()
    inputs = dict(arrays)
    return lambda: request.infer(inputs)


PEERS: Mapping[str, Callable[[Path, Arrays, int], Run]] = {
    "onnxruntime": onnx_runtime,
    "openvino": openvino,
}


def installed() -> list[str]:
    """The peers that this environment has."""
    return [name for name in PEERS if importlib.util.find_spec(name) is not None]
