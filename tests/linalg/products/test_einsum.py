"""Einsum against numpy in float64, with the bound of a sum of products."""

from __future__ import annotations

import numpy as np
import pytest

from nanoloom.errors import Error
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
    "ij,jk->ik": [(3, 0), (0, 5)],
    ",ab->ab": [(), (3, 5)],
}


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
