"""Sizes are found from samples, or not at all."""

from __future__ import annotations

import pytest

from nanoloom.sizes.samples import samples_of
from nanoloom.sizes.size import Dims, Size, found, number

SAMPLES = ({"b": 3, "n": 131}, {"b": 5, "n": 137}, {"b": 7, "n": 139})
OTHERS = ({"b": 1, "n": 1}, {"b": 4, "n": 512}, {"b": 0, "n": 9})


@pytest.mark.parametrize(
    "text",
    ["b", "n", "b * n", "4 * n", "b * n * n", "12 * b * n", "n + 2", "512 - n",
     "4 * b * n + 64", "b * n + n", "3 * n - b"],
)  # fmt: skip
def test_polynomials(text: str) -> None:
    def of(dims: Dims) -> int:
        return eval(text, dict(dims))

    size = found([of(dims) for dims in SAMPLES], SAMPLES)
    assert size is not None and size.number is None
    assert [size.of(dims) for dims in OTHERS] == [of(dims) for dims in OTHERS]


@pytest.mark.parametrize(
    "text", ["n // 2", "(n - 1) // 2", "n ** 4", "b * b + n + 1", "n % 7", "-(-n // 4)"]
)
def test_what_is_no_size(text: str) -> None:
    assert found([eval(text, dict(dims)) for dims in SAMPLES], SAMPLES) is None


def test_numbers() -> None:
    size = found([768] * 3, SAMPLES)
    assert size == number(768) and size.number == 768
    assert number(0).number == 0 and str(number(0)) == "0"
    assert str(Size(((2, ("b", "n")), (1, ())))) == "2 * b * n + 1"
    assert number(2).times(3).number == 6


def test_sums_are_no_accident() -> None:
    """280, 288 and 296 are 4 b + 268 as well."""
    rows = ((3, 131, 149), (5, 137, 151), (7, 139, 157))
    samples = [dict(zip("bnp", row, strict=True)) for row in rows]
    assert found([s["n"] + s["p"] for s in samples], samples) == Size(
        ((1, ("n",)), (1, ("p",)))
    )


def test_samples() -> None:
    samples = samples_of([("batch", "length"), ("batch", 4)], ("batch", "length"))
    assert len(samples) == 3
    assert all(sample["batch"] < sample["length"] for sample in samples)
    assert len({n for sample in samples for n in sample.values()}) == 6
    assert samples_of([tuple(map(str, range(20)))], tuple(map(str, range(20)))) == ()
