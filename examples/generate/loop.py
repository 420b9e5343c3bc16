"""Text from a model, token by token: the likeliest, or drawn from the likely ones."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray

Ids = NDArray[np.int64]
Floats = NDArray[np.float32]
Pick = Callable[[Floats], int]
Next = Callable[[Ids], Floats]  # the logits of new tokens behind those before


@dataclass(frozen=True)
class Generated:
    """ids: behind the prompt.  seconds: for all of them but the first."""

    ids: list[int]
    seconds: float

    @property
    def rate(self) -> float:
        """Tokens a second, one behind the other."""
        return (len(self.ids) - 1) / self.seconds


def greedy(logits: Floats) -> int:
    """The likeliest token."""
    return int(logits.argmax())


def sampled(seed: int, temperature: float = 0.8, most: int = 40) -> Pick:
    """One of the `most` likeliest tokens, drawn; higher temperatures are bolder."""
    random = np.random.default_rng(seed)

    def pick(logits: Floats) -> int:
        likely = np.argsort(logits)[-most:]
        scaled = logits[likely].astype(np.float64) / temperature
        shares = np.exp(scaled - scaled.max())
        return int(random.choice(likely, p=shares / shares.sum()))

    return pick


def generate(following: Next, prompt: Ids, count: int, pick: Pick) -> Generated:
    """So many tokens behind a prompt [1, length]; each is an input of the next call."""
    ids = [pick(following(prompt)[0, -1])]
    start = time.perf_counter()
    while len(ids) < count:
        ids.append(pick(following(np.array([ids[-1:]]))[0, -1]))
    return Generated(ids, time.perf_counter() - start)


def kept_by_hand(path: Path, threads: int) -> Callable[[], Next]:
    """ONNX Runtime, whose last outputs are the inputs of its next call.

    Gives what begins a text.
    """
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        str(path), options, providers=["CPUExecutionProvider"]
    )
    value = onnxruntime.OrtValue.ortvalue_from_numpy
    names = [x.name for x in session.get_inputs()[1:]]
    shapes = [x.shape for x in session.get_inputs()[1:]]
    outputs = [x.name for x in session.get_outputs()]

    def begin() -> Next:
        none = (np.zeros((1, s[1], 0, s[3]), np.float32) for s in shapes)
        past: Mapping[str, Any] = dict(zip(names, map(value, none), strict=True))

        def following(ids: Ids) -> Floats:
            nonlocal past
            given = {"input_ids": value(ids), **past}
            logits, *made = session.run_with_ort_values(outputs, given)
            past = dict(zip(names, made, strict=True))
            return logits.numpy()

        return following

    return begin
