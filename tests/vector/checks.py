"""Numbers against float64: a bound from arithmetic, and a proof that it can fail."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from tests.drawn_cases import few_examples
from tests.linalg.bounds import within

Array = np.ndarray
ODD = (1, 7, 13, 16, 17, 31, 33, 64, 97, 127)  # tiles of 4 to 64 divide few of them
odd_sizes = st.sampled_from(ODD)
few = few_examples(8, derandomize=True)


def check(
    got: Array, exact: Array, steps: float, magnitude: Array | None = None
) -> None:
    """got is exact but for `steps` roundings of `magnitude`; one wrong element is not.

    magnitude: default the result itself.  Integers and bools must be equal.
    """
    assert passes(got, exact, steps, magnitude), (got, exact)
    size = np.nan_to_num(np.abs(np.asarray(exact, np.float64)), posinf=1)
    if size.size and size.max() > 0:
        wrong = got.copy()
        wrong.reshape(-1)[int(size.argmax())] = 0
        assert not passes(wrong, exact, steps, magnitude)


def passes(got: Array, exact: Array, steps: float, magnitude: Array | None) -> bool:
    if got.dtype.kind in "iub":
        return got.shape == exact.shape and bool((got == exact).all())
    return within(got, exact, steps, magnitude)


def contracted(equation: str, left: Array, right: Array) -> tuple[Array, Array, int]:
    """The exact sum of products, that of magnitudes, and how many terms it has."""
    one, other = left.astype(np.float64), right.astype(np.float64)
    terms, result = equation.split("->")
    sizes = {
        letter: size
        for term, x in zip(terms.split(","), (left, right), strict=True)
        for letter, size in zip(term, x.shape, strict=True)
    }
    count = int(np.prod([s for c, s in sizes.items() if c not in result]))
    return (
        np.einsum(equation, one, other),
        np.einsum(equation, abs(one), abs(other)),
        count,
    )
