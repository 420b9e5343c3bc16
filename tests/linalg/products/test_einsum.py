"""Einsum against numpy in float64, with the bound of a sum of products."""

from __future__ import annotations

import re

import numpy as np
import pytest

from nanoloom.errors import Error, InternalError
from tests.linalg.bounds import rounding, sample
from tests.linalg.single import run_node

EQUATIONS = {
    "bij,bjk->bik": [(2, 3, 5), (2, 5, 7)],
    "...ij,...jk->...ik": [(2, 3, 5), (1, 5, 7)],
    "...ij,jk": [(3, 1, 2, 5), (5, 7)],
    "ij->ji": [(3, 5)],
    "ij": [(3, 5)],
    "ba": [(3, 5)],
    "ii->i": [(5, 5)],
    "iji->j": [(3, 5, 3)],
    "...ii->...i": [(2, 3, 3)],
    "i,i": [(7,), (7,)],
    "i,j->ij": [(3,), (5,)],
    "ij,kl->": [(3, 5), (2, 7)],
    "bhqd,bhkd,bhkv->bhqv": [(1, 2, 3, 5), (1, 2, 7, 5), (1, 2, 7, 3)],
    " b h i , b h j -> b i j ": [(1, 2, 3), (1, 2, 5)],
    "a,a,a,ab->b": [(3,), (3,), (3,), (3, 5)],
    "Xx,xX->X": [(3, 5), (5, 3)],
    "...->...": [(2, 3)],
    "...,...->...": [(2, 3), (1, 3)],
    "ab,b->a": [(3, 1), (5,)],
    "ij,ij->ij": [(1, 3), (2, 3)],
    "ij,jk->ji": [(3, 1), (2, 5)],
    "ij,jk->ik": [(3, 0), (0, 5)],
    ",ab->ab": [(), (3, 5)],
}


@pytest.mark.drawn
@pytest.mark.parametrize("equation", EQUATIONS)
@pytest.mark.parametrize("name", ["float32", "int32", "bfloat16"])
def test_equations(equation: str, name: str) -> None:
    arrays = [sample(i, shape, name) for i, shape in enumerate(EQUATIONS[equation])]
    version = 28 if name == "bfloat16" else 12
    got = run_node("Einsum", arrays, equation=equation, version=version)[0]
    wide = [x.astype(np.float64) for x in arrays]
    exact = np.einsum(equation.replace(" ", ""), *wide)
    assert (got.dtype, got.shape) == (arrays[0].dtype, exact.shape)
    size = np.einsum(equation.replace(" ", ""), *map(abs, wide))
    terms = 4 + sum(np.prod(x.shape) for x in arrays)  # more than are summed for one
    bound = terms * 2.0**-23 * size
    if name == "bfloat16":
        bound = bound + rounding(got.dtype) * abs(exact)
    if name == "int32":
        bound = 0 * size
    assert (abs(got.astype(np.float64) - exact) <= bound).all()
    if exact.any():
        assert not (abs(0 * exact - exact) <= bound).all()


def test_wrong_rank() -> None:
    with pytest.raises(Error):
        run_node("Einsum", [sample(1, (3, 5), "float32")], equation="abc->c")


REFUSED = {
    "i->ii": "has i twice in its output",
    "i->iii": "has i twice in its output",
    "i->j": "has j in its output, but in no input",
    "i->...i...": "has dots that are not one '...' in a term",
    "i..->i": "has dots that are not one '...' in a term",
    "i.->i": "has dots that are not one '...' in a term",
    "i->->i": "has '-' in a place where none may be",
    "i>i": "has '>' in a place where none may be",
    "i->i,": "has ',' in a place where none may be",
    "\N{GREEK SMALL LETTER ALPHA}": "in a place where none may be",
    "1->1": "has '1' in a place where none may be",
    "i,i->i": "has 2 terms, the node 1 inputs",
}


@pytest.mark.parametrize("equation", REFUSED)
def test_what_is_no_equation(equation: str) -> None:
    """As numpy and ONNX Runtime refuse it; ONNX's inference hangs on a single dot."""
    with pytest.raises(Error, match=re.escape(REFUSED[equation])) as caught:
        run_node("Einsum", [sample(1, (3,), "float32")], equation=equation)
    assert not isinstance(caught.value, InternalError)
    assert "node tested (Einsum)" in str(caught.value)


def drawn(seed: int) -> tuple[str, list[tuple[int, ...]]]:
    """An equation of few letters, right or wrong, and shapes that fit its terms."""
    rng = np.random.default_rng(seed)
    extents = {"i": 3, "j": 2, "k": 1}
    terms = [
        rng.choice(list(extents), rng.integers(4)) for _ in range(rng.integers(1, 4))
    ]
    shapes = [
        tuple(extents[c] if rng.random() < 0.8 else 1 for c in term) for term in terms
    ]
    left = ",".join("".join(term) for term in terms)
    output = "".join(rng.choice([*extents, "..."], rng.integers(4)))
    return f"{left}->{output}" if rng.random() < 0.9 else left, shapes


@pytest.mark.parametrize("seed", range(40))
def test_drawn_equations(seed: int) -> None:
    """Numbers where numpy has some, and a sentence where it has none."""
    equation, shapes = drawn(seed)
    arrays = [sample(i, shape, "float32") for i, shape in enumerate(shapes)]
    try:
        exact = np.einsum(equation, *(x.astype(np.float64) for x in arrays))
    except ValueError:
        with pytest.raises(Error) as caught:
            run_node("Einsum", arrays, equation=equation)
        assert not isinstance(caught.value, InternalError)
        return
    (got,) = run_node("Einsum", arrays, equation=equation)
    size = np.einsum(equation, *(abs(x.astype(np.float64)) for x in arrays))
    assert got.shape == exact.shape
    assert (abs(got - exact) <= 40 * 2.0**-23 * size).all()
    assert not (abs(exact) <= 40 * 2.0**-23 * size).all()
