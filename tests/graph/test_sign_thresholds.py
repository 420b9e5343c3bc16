"""Sums of signs that are only compared: by whole numbers, for every count."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest

from nanoloom.graph.sign_thresholds import DOMAIN, HOLDS, PRODUCTS, Sums
from tests.graph.models import operators, optimized
from tests.graph.test_binary_products import compared_layers

WORDS = {"LessOrEqual": np.less_equal, "GreaterOrEqual": np.greater_equal}
COLUMNS, MOST = 9, 72


def sums(seed: int, sign: int, *, places: bool, times: int) -> Sums:
    """Some columns of which are all the same, none of the sums or all of them."""
    r = np.random.default_rng(seed)
    shift = r.integers(-80, 80, (4, COLUMNS) if places else ()).astype(np.int16)
    factor = sign * r.uniform(0.01, 2, COLUMNS).astype(np.float32)
    offset = r.standard_normal(COLUMNS).astype(np.float32) * 9
    offset[:4] = 1e4, -1e4, 0, np.nan
    return Sums(shift, factor, offset, times, MOST)


@pytest.mark.drawn
@pytest.mark.parametrize("compare", HOLDS)
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(("places", "times"), [(False, 2), (True, 2), (True, 1)])
def test_every_count_is_on_its_side(
    compare: str, sign: int, places: bool, times: int
) -> None:
    given = sums(3, sign, places=places, times=times)
    limit, word = given.limit(compare, 0.25)
    assert limit.dtype == np.int16
    ones = np.arange(MOST + 1)[(slice(None), *[None] * limit.ndim)]
    wanted = given.holds(given.shift - times * ones, compare, 0.25)
    assert (WORDS[word](ones, limit) == wanted).all()
    assert wanted.any() and not wanted.all()
    for other in (limit - 1, limit + 1):
        assert (WORDS[word](ones, other) != wanted).any()


@pytest.mark.parametrize("seed", range(20))
def test_which_sums_are_never_zero(seed: int) -> None:
    """Of factors and offsets that are small whole numbers; all sums are looked at."""
    r = np.random.default_rng(seed)
    shift = np.asarray(r.integers(-9, 9), np.int16)
    factor = r.integers(1, 4, 3).astype(np.float32) * (-1) ** seed
    offset = r.integers(-99, 99, 3).astype(np.float32) + np.float32(
        0.5 * (seed % 3 > 0)
    )
    given = Sums(shift, factor, offset, 1 + seed % 2, MOST)
    ones = np.arange(MOST + 1)[:, None]
    made = (shift - given.times * ones) * factor.astype(float) + offset
    assert given.are_nonzero() == bool((made != 0).all())


def test_sums_that_may_be_nothing() -> None:
    """A factor of 0, numbers that are none, and such as no float holds."""
    one = np.ones(2, np.float32)
    for factor, offset in ((0, 1), (1, np.nan), (np.nan, 1), (1, np.inf), (1e38, 1)):
        wrong = Sums(np.int16(0) * one, one * factor, one * offset, 2, MOST)
        assert not wrong.are_nonzero()
    assert Sums(np.int16(0) * one, one, one, 2, MOST).are_nonzero()
    assert not Sums(np.int16(0) * one, one, one, 1, MOST).are_nonzero()


def kinds(graph: ir.Graph) -> list[ir.DataType | None]:
    made = [n for n in graph if n.domain == DOMAIN and n.op_type in PRODUCTS]
    return [n.outputs[0].dtype for n in made]


def test_a_product_makes_conditions_where_nothing_else_reads_it() -> None:
    proto = compared_layers()
    graph = optimized(proto)
    assert kinds(graph) == [ir.DataType.BOOL, ir.DataType.FLOAT]
    limit = next(iter(n for n in graph if n.op_type == "BitConvolution")).inputs[2]
    assert limit is not None and limit.dtype == ir.DataType.INT16
    proto.graph.output.append(proto.graph.output[0])
    proto.graph.output[1].name = "p"
    proto.graph.output[1].type.tensor_type.shape.dim[1].dim_value = 11
    graph = optimized(proto)
    assert kinds(graph) == [ir.DataType.FLOAT] * 2
    assert operators(graph).count("Pack") == 2
