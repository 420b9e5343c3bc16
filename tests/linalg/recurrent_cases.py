"""One node of RNN, GRU or LSTM, drawn and compared with ONNX's equations."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import ml_dtypes
import numpy as np

from tests.linalg.recurrences import (
    DEFAULTS,
    FORMULAS,
    GATES,
    WITH_ALPHA,
    WITH_BETA,
    Function,
    reference,
)
from tests.linalg.single import run_node


def arrays_of(
    op: str,
    directions: int,
    shape: tuple[int, int, int, int],
    kind: np.dtype,
    lengths: bool,
) -> dict[str, np.ndarray]:
    """Weights small enough that a step does not enlarge errors: sum |R| < 1."""
    steps, batch, inputs, size = shape
    r, rows = np.random.default_rng(steps + 10 * batch), GATES[op] * size
    uniform = lambda *s: r.uniform(-1, 1, s)  # noqa: E731 - a word for the draws
    made = {
        "x": uniform(steps, batch, inputs),
        "w": uniform(directions, rows, inputs),
        "r": uniform(directions, rows, size) / (4 * size),
        "b": uniform(directions, 2 * rows),
        "h": uniform(directions, batch, size),
        "c": uniform(directions, batch, size),
        "p": uniform(directions, 3 * size) / 4,
    }
    made = {k: v.astype(kind) for k, v in made.items()}
    full = np.full(batch, steps, np.int32)
    made["lengths"] = r.integers(0, steps, batch, np.int32, endpoint=True)
    if not lengths:
        made["lengths"] = full
    return made


def compare(
    op: str,
    direction: str,
    shape: tuple[int, int, int, int],
    kind: np.dtype,
    *,
    names: Sequence[str] = (),
    given: Sequence[str] = ("b", "lengths", "h", "c", "p"),
    layout: int = 0,
    clip: float | None = None,
    constants: Sequence[int] = (),
    run: Callable[..., list[np.ndarray]] = run_node,
    **options: int,
) -> None:
    """run: what makes and runs the node; its answer is checked within a bound."""
    reverse = {"forward": [False], "reverse": [True]}.get(direction, [False, True])
    a = arrays_of(op, len(reverse), shape, kind, "lengths" in given)
    for name in ("b", "h", "c", "p"):
        if name not in given:
            a[name] = np.zeros_like(a[name])
    chosen = list(names) or DEFAULTS[op] * len(reverse)
    alpha = [0.375 + 0.125 * i for i, n in enumerate(chosen) if n in WITH_ALPHA]
    beta = [0.25 + 0.125 * i for i, n in enumerate(chosen) if n in WITH_BETA]
    alphas, betas = iter(alpha), iter(beta)
    functions = [bound(n, alphas, betas) for n in chosen]
    count = len(DEFAULTS[op])
    grouped = [functions[i : i + count] for i in range(0, len(functions), count)]
    right = reference(
        op, grouped, reverse, a, options, np.inf if clip is None else clip
    )
    turned = {"x": (1, 0, 2), "h": (1, 0, 2), "c": (1, 0, 2)} if layout else {}
    order = ["x", "w", "r", "b", "lengths", "h", *(["c", "p"] if op == "LSTM" else [])]
    inputs = [a[n].transpose(turned[n]).copy() if n in turned else a[n] for n in order]
    inputs = [
        v if n in given or n in "xwr" else None
        for n, v in zip(order, inputs, strict=True)
    ]
    outputs = 3 if op == "LSTM" else 2
    got = run(
        op,
        inputs,
        outputs=outputs,
        direction=direction,
        hidden_size=shape[3],
        layout=layout or None,
        clip=clip,
        activations=list(names) or None,
        activation_alpha=alpha or None,
        activation_beta=beta or None,
        constants=constants,
        **options,
    )
    check(got, right[:outputs], kind, shape, layout)


def bound(name: str, alphas: object, betas: object) -> Function:
    a = next(alphas) if name in WITH_ALPHA else 0.0
    c = next(betas) if name in WITH_BETA else 0.0
    return lambda x: FORMULAS[name](x, a, c)


def check(
    got: list[np.ndarray],
    right: list[np.ndarray],
    kind: np.dtype,
    shape: tuple[int, int, int, int],
    layout: int,
) -> None:
    """A step is a sum of inputs + size + 4 products of size 2 at most, then functions
    of slope 1 at most; errors of earlier steps do not grow, so they add."""
    steps, _, inputs, size = shape
    work = np.float64 if kind == np.float64 else np.float32
    tolerance = 2.0 * max(steps, 1) * (inputs + size + 16) * float(np.finfo(work).eps)
    if kind.itemsize == 2:
        tolerance += 2 * float(ml_dtypes.finfo(kind).eps)
    axes = [(2, 0, 1, 3), (1, 0, 2), (1, 0, 2)]
    for one, other, order in zip(got, right, axes[: len(got)], strict=True):
        wanted = other.transpose(order) if layout else other
        assert one.dtype == kind
        assert one.shape == wanted.shape
        assert (abs(one.astype(np.float64) - wanted) <= tolerance).all()
        if abs(wanted).max(initial=0) > tolerance:
            assert not (abs(0 * one.astype(np.float64) - wanted) <= tolerance).all()
