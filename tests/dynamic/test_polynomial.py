"""Sizes are found from samples, or not at all."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import onnx_ir
import pytest
from onnx import parser

from nanoloom.dynamic.dynamic_refusal import NotDynamic
from nanoloom.dynamic.polynomial import Dims, Size, beginning, found, number
from nanoloom.dynamic.recurrent_batch import require_steps
from nanoloom.dynamic.samples import STEPS, samples_of, tried_samples

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
    "text", ["n // 2", "(n - 1) // 2", "n ** 7", "b * b + n + 1", "n % 7", "-(-n // 4)"]
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


@pytest.mark.parametrize("shape", [("b", "n", "p"), ("n", "b", "p"), ("n", "p", "b")])
def test_sums_with_a_number_are_not_taken_for_others(shape: tuple[str, ...]) -> None:
    """What has three terms is found as itself, or not at all."""
    many = {"b": 40, "n": 1000, "p": 7000}
    inputs = [(shape[0], shape[1], 8), (shape[0], shape[2], 8)]
    for samples in tried_samples(inputs, shape):
        for (a, b), c in product(combinations("bnp", 2), (-3, -2, -1, 1, 2, 3)):
            for x, y in ((1, 1), (1, -1), (2, 1), (1, 2)):
                terms = ((x, (a,)), (y, (b,)), (c, ()))
                true = Size(terms)
                size = found([true.of(sample) for sample in samples], samples)
                assert size is None or size.of(many) == true.of(many), (true, size)


MANY = {"n": 9, "h": 77, "w": 31, "d": 50}


@pytest.mark.parametrize("seed", range(6))
def test_volumes(seed: int) -> None:
    """With what lies around them, in a batch; and where a part begins behind that."""
    random = np.random.default_rng(seed)
    tried = tried_samples([("n", "h", "w", "d")], ("n", "h", "w", "d"))
    (samples,) = (each for each in tried if each[0]["h"] > 200)
    for _ in range(20):
        a, b, c, times = (int(k) for k in random.integers(0, 4, 4))
        elements, begins = list[int](), list[int]()
        for s in (*samples, MANY):
            h, w, d = s["h"] + 2 * a - 3, s["w"] + 2 * b, s["d"] + 2 * c
            elements.append((1 + times) * s["n"] * h * w * d)
            begins.append(16 * (((a + 1) * w + b) * d + c))
        for numbers, search in ((elements, found), (begins, beginning)):
            size = search(numbers[:-1], samples)
            assert size is not None and size.of(MANY) == numbers[-1], (size, a, b, c)


def test_samples() -> None:
    samples = samples_of([("batch", "length"), ("batch", 4)], ("batch", "length"))
    assert len(samples) == 3
    assert all(sample["batch"] < sample["length"] for sample in samples)
    assert len({n for sample in samples for n in sample.values()}) == 6
    assert samples_of([tuple(map(str, range(20)))], tuple(map(str, range(20)))) == ()


@pytest.mark.parametrize("shape", [("batch", "steps", 8), ("steps", "batch", 8)])
def test_samples_of_recurrences(shape: tuple[str | int, ...]) -> None:
    """Many rows in a step; no model without steps takes them."""
    names = ("batch", "steps")
    first, second, *_ = tried_samples([shape], names)
    assert min(first[0].values()) == 127 and min(second[0].values()) == 3
    assert first == samples_of([shape], names, STEPS)
    taken, refused = (
        parser.parse_model(
            '<ir_version: 10, opset_import: ["" : 20]>'
            f"g (float[steps, batch, 8] x) => (float[steps, batch, 8] y) {{ {body} }}"
        )
        for body in ("y = RNN<hidden_size = 8>(x, w, r)", "y = Relu(x)")
    )
    require_steps(onnx_ir.serde.deserialize_model(taken).graph, first)
    graph = onnx_ir.serde.deserialize_model(refused).graph
    require_steps(graph, second)
    with pytest.raises(NotDynamic) as refusal:
        require_steps(graph, first)
    assert not str(refusal.value)  # other samples have the model's own reasons
    assert refusal.value.others
