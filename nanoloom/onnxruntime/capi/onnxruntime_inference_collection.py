"""ONNX Runtime's names, where its clients look for them."""

from __future__ import annotations

from nanoloom.onnxruntime.binding import IOBinding
from nanoloom.onnxruntime.session import InferenceSession
from nanoloom.onnxruntime.values import OrtValue

Session = InferenceSession
__all__ = ["IOBinding", "InferenceSession", "OrtValue", "Session"]
