"""The peers that read ONNX files, each opened in a process of its own."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

import numpy as np

from nanoloom.errors import Unsupported
from nanoloom_papers.reproduce.array_files import BFLOAT16, Array
from nanoloom_papers.reproduce.jobs import Job, Ready, missing


def onnx_runtime(job: Job) -> Ready:
    """ONNX Runtime's CPU provider, all its optimizations on."""
    try:
        import onnxruntime
    except ImportError:
        raise missing("ONNX Runtime", "onnxruntime") from None
    if job.precision != "f32":
        raise Unsupported("computes no bf16 on CPUs")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = job.threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 4
    # Its threads must not spin on while another system is measured.
    options.add_session_config_entry("session.force_spinning_stop", "1")
    session = onnxruntime.InferenceSession(
        job.model, options, providers=["CPUExecutionProvider"]
    )
    wanted = {x.name for x in session.get_inputs()}
    feeds = {name: array for name, array in job.feeds.items() if name in wanted}

    def run() -> list[Array]:
        return [np.asarray(x) for x in session.run(None, feeds)]

    return Ready(f"ONNX Runtime {onnxruntime.__version__}", run, run)


def openvino(job: Job) -> Ready:
    """OpenVINO's CPU plugin for one stream, its precision named."""
    try:
        import openvino as vino  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise missing("OpenVINO", "openvino") from None
    core = vino.Core()
    model = core.read_model(job.model)
    wanted = {name for x in model.inputs for name in x.get_names()}
    feeds = {name: array for name, array in job.feeds.items() if name in wanted}
    model.reshape({name: list(array.shape) for name, array in feeds.items()})
    hints = {
        "INFERENCE_NUM_THREADS": job.threads,
        "INFERENCE_PRECISION_HINT": job.precision,
        "PERFORMANCE_HINT": "LATENCY",
    }
    request: Any = core.compile_model(model, "CPU", hints).create_infer_request()
    for name, array in feeds.items():
        request.set_tensor(name, tensor(vino, array))

    def outputs() -> list[Array]:
        request.infer()
        return [array_of(vino, x) for x in request.output_tensors]

    return Ready(f"OpenVINO {version('openvino')}", request.infer, outputs)


def tensor(vino: Any, array: Array) -> Any:
    """An array as a tensor of its own; numpy has no bf16 that OpenVINO knows."""
    if array.dtype != BFLOAT16:
        return vino.Tensor(np.ascontiguousarray(array))
    made = vino.Tensor(vino.Type.bf16, vino.Shape(array.shape))
    made.data.view(np.uint16)[...] = array.view(np.uint16)
    return made


def array_of(vino: Any, made: Any) -> Array:
    """The contents of a tensor, copied: the next run overwrites them."""
    if made.element_type == vino.Type.bf16:
        return made.data.view(np.uint16).view(BFLOAT16).copy()
    return np.array(made.data)
