"""ONNX's equations of RNN, GRU and LSTM in numpy, one row and time step at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

Function = Callable[[np.ndarray], np.ndarray]
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
DEFAULTS = {
    "RNN": ["Tanh"],
    "GRU": ["Sigmoid", "Tanh"],
    "LSTM": ["Sigmoid", "Tanh", "Tanh"],
}
FORMULAS: dict[str, Callable[..., np.ndarray]] = {
    "Relu": lambda x, a, c: np.maximum(x, 0),
    "Tanh": lambda x, a, c: np.tanh(x),
    "Sigmoid": lambda x, a, c: 1 / (1 + np.exp(-x)),
    "Affine": lambda x, a, c: a * x + c,
    "LeakyRelu": lambda x, a, c: np.where(x >= 0, x, a * x),
    "ThresholdedRelu": lambda x, a, c: np.where(x >= a, x, 0),
    "ScaledTanh": lambda x, a, c: a * np.tanh(c * x),
    "HardSigmoid": lambda x, a, c: np.clip(a * x + c, 0, 1),
    "Elu": lambda x, a, c: np.where(x >= 0, x, a * (np.exp(x) - 1)),
    "Softsign": lambda x, a, c: x / (1 + abs(x)),
    "Softplus": lambda x, a, c: np.log(1 + np.exp(x)),
}
WITH_ALPHA = {
    "Affine",
    "LeakyRelu",
    "ThresholdedRelu",
    "ScaledTanh",
    "HardSigmoid",
    "Elu",
}
WITH_BETA = {"Affine", "ScaledTanh", "HardSigmoid"}


def step(
    op: str,
    f: Sequence[Function],
    x: np.ndarray,
    h: np.ndarray,
    c: np.ndarray,
    w: np.ndarray,
    r: np.ndarray,
    bias: np.ndarray,
    peep: np.ndarray,
    options: dict[str, int],
    clip: float,
) -> tuple[np.ndarray, np.ndarray]:
    """One row's next state; w, r, bias are of one direction."""
    gates = GATES[op]
    one, two = bias.reshape(2, gates, -1)
    enter = (w @ x).reshape(gates, -1) + one
    back = (r @ h).reshape(gates, -1) + two

    def g(i: int, value: np.ndarray) -> np.ndarray:
        return f[i](np.clip(value, -clip, clip))

    if op == "RNN":
        return g(0, enter[0] + back[0]), c
    if op == "GRU":
        update, reset = g(0, enter[0] + back[0]), g(0, enter[1] + back[1])
        if options.get("linear_before_reset"):
            new = g(1, enter[2] + reset * back[2])
        else:
            again = r.reshape(3, -1, h.size)[2] @ (reset * h) + two[2]
            new = g(1, enter[2] + again)
        return (1 - update) * new + update * h, c
    sums, p = enter + back, peep.reshape(3, -1)
    i, forget = g(0, sums[0] + p[0] * c), g(0, sums[2] + p[2] * c)
    if options.get("input_forget"):
        forget = 1 - i
    c = forget * c + i * g(1, sums[3])
    return g(0, sums[1] + p[1] * c) * f[2](c), c


def reference(
    op: str,
    functions: Sequence[Sequence[Function]],
    reverse: Sequence[bool],
    arrays: dict[str, np.ndarray],
    options: dict[str, int],
    clip: float,
) -> list[np.ndarray]:
    """Y, Y_h and Y_c with layout 0 in float64."""
    a = {k: v.astype(np.float64) for k, v in arrays.items() if k != "lengths"}
    steps, batch, _ = a["x"].shape
    size = a["r"].shape[-1]
    y = np.zeros((steps, len(reverse), batch, size))
    last = np.zeros((2, len(reverse), batch, size))
    for d, backwards in enumerate(reverse):
        for n in range(batch):
            h, c = a["h"][d, n], a["c"][d, n]
            times = range(int(arrays["lengths"][n]))
            for t in reversed(times) if backwards else times:
                h, c = step(
                    op,
                    functions[d],
                    a["x"][t, n],
                    h,
                    c,
                    a["w"][d],
                    a["r"][d],
                    a["b"][d],
                    a["p"][d],
                    options,
                    clip,
                )
                y[t, d, n] = h
            last[0, d, n], last[1, d, n] = h, c
    return [y, *last]
