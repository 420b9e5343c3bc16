"""Others that continue a text: what they gave last are the inputs of the next call."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from nanoloom.errors import Error

Array = np.ndarray


class Decoding(Protocol):
    """Somebody who continues a text."""

    def prompt(self, ids: Array) -> Array:
        """The logits of a text from its beginning."""
        ...

    def token(self, ids: Array, length: int) -> Array:
        """The logits of a token behind the first `length` ones."""
        ...


class OnnxRuntime(Decoding):
    """Its own arrays are handed on, without a copy into numpy's."""

    def __init__(self, path: Path, threads: int) -> None:
        try:
            import onnxruntime
        except ImportError:
            raise Error("ONNX Runtime is not installed") from None
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(
            str(path), options, providers=["CPUExecutionProvider"]
        )
        self.value = onnxruntime.OrtValue.ortvalue_from_numpy
        self.outputs = [x.name for x in self.session.get_outputs()]
        self.none = {
            x.name: np.zeros([1, x.shape[1], 0, x.shape[3]], np.float32)
            for x in self.session.get_inputs()[1:]
        }
        self.past: dict[str, Any] = {}

    def run(self, ids: Array, past: dict[str, Any]) -> tuple[Array, list[Any]]:
        given = {"input_ids": self.value(ids), **past}
        made = self.session.run_with_ort_values(self.outputs, given)
        return made[0].numpy(), list(made[1:])

    def prompt(self, ids: Array) -> Array:
        none = {name: self.value(x) for name, x in self.none.items()}
        logits, made = self.run(ids, none)
        self.past = dict(zip(self.none, made, strict=True))
        return logits

    def token(self, ids: Array, length: int) -> Array:
        return self.run(ids, self.past)[0]


class OpenVino(Decoding):
    """Arrays of its outputs are shared with its inputs."""

    def __init__(self, path: Path, threads: int) -> None:
        try:
            import openvino
        except ImportError:
            raise Error("OpenVINO is not installed") from None
        hints = {"INFERENCE_NUM_THREADS": threads, "INFERENCE_PRECISION_HINT": "f32"}
        core = openvino.Core()
        self.compiled = core.compile_model(
            str(path), "CPU", {**hints, "PERFORMANCE_HINT": "LATENCY"}
        )
        self.request = self.compiled.create_infer_request()
        self.names = [x.get_any_name() for x in self.compiled.inputs][1:]
        shapes = [x.get_partial_shape() for x in self.compiled.inputs[1:]]
        self.none = {
            name: np.zeros(
                [1, shape[1].get_length(), 0, shape[3].get_length()], np.float32
            )
            for name, shape in zip(self.names, shapes, strict=True)
        }
        self.past: dict[str, Array] = {}

    def run(self, ids: Array, past: dict[str, Array]) -> list[Array]:
        made = self.request.infer(
            {"input_ids": ids, **past}, share_inputs=True, share_outputs=True
        )
        return list(made.values())

    def prompt(self, ids: Array) -> Array:
        logits, *made = self.run(ids, self.none)
        pairs = zip(self.names, made, strict=True)
        self.past = {name: np.array(x) for name, x in pairs}
        return np.array(logits)

    def token(self, ids: Array, length: int) -> Array:
        return self.run(ids, self.past)[0]


PEERS: dict[str, Callable[[Path, int], Decoding]] = {
    "onnxruntime": OnnxRuntime,
    "openvino": OpenVino,
}
