"""Conditions on sizes that a model says itself: asked at calls, and by files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

import nanoloom
from nanoloom.errors import Error, InputError, ModelError
from nanoloom.interface.size_conditions import (
    KEY,
    NotKnown,
    SizeConditions,
    parse,
    value,
)


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("n // 2 == 3 and n != 6", {7}),
        ("math.trunc(0.5 * torch.sym_float(n)) >= 3", {6, 7}),
        ("max(1, -n + 4) * (n % 3) > 0", {1, 2, 4, 5, 7}),
        ("not n < 6 or n ** 2 == 9", {3, 6, 7}),
    ],
)
def test_conditions_in_python(text: str, right: set[int]) -> None:
    asked = parse(text)
    assert {n for n in range(1, 8) if value(asked, {"n": n})} == right


@pytest.mark.parametrize(
    "text",
    ["open('x')", "n.real", "m > 1", "n ** 99", "[n]", "n if n else 1", "(", "'a'"],
)
def test_what_is_no_arithmetic_is_not_computed(text: str) -> None:
    with pytest.raises(NotKnown):
        value(parse(text), {"n": 3})


def test_a_file_asks_what_a_call_asks(tmp_path: Path) -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 10, opset_import: ["" : 20]> double_it (float[rows, n] x)'
        " => (float[rows, n] y) { y = Add(x, x) }"
    )
    conditions = SizeConditions(
        {"n": ("x", 1, 1, 0)}, [("n > 2", "n > 2"), ("n % 2 == 1", "n is odd")]
    )
    entry = model.metadata_props.add()
    entry.key, entry.value = KEY, conditions.written()
    program = nanoloom.compile(model, cache=tmp_path, threads=1)
    program.save(tmp_path / "twice.so")
    loaded = nanoloom.load(tmp_path / "twice.so")
    for n, reason in ((2, "n > 2"), (3, ""), (4, "n is odd"), (5, ""), (1, "n > 2")):
        x = np.ones((2, n), np.float32)
        if not reason:
            assert (program({"x": x})["y"] == 2).all()
            assert (loaded({"x": x})["y"] == 2).all()
            continue
        with pytest.raises(InputError, match=f"{reason} is not so"):
            program({"x": x})
        with pytest.raises(Error, match=f"no sizes of the model: n={n}"):
            loaded({"x": x})
    with pytest.raises(InputError, match="n is odd is not so"):
        program.save(tmp_path / "four.so", shapes={"x": (2, 4)})


@pytest.mark.parametrize(
    "text",
    [
        "garbage",
        "[1]",
        "{}",
        '[{"a": 1}, []]',
        '[{"n": ["z", 0, 1, 0]}, [["n > 3", "n > 3"]]]',
        '[{"n": ["x", 7, 1, 0]}, [["n > 3", "n > 3"]]]',
        '[{"n": ["x", 0, 0, 0]}, [["n > 3", "n > 3"]]]',
        '[{"n": ["x", 0, 1, 0]}, [["open(n)", "n > 3"]]]',
    ],
)
def test_a_damaged_entry_is_the_models(text: str) -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 10, opset_import: ["" : 20]> double_it (float[n, 5] x)'
        " => (float[n, 5] y) { y = Add(x, x) }"
    )
    entry = model.metadata_props.add()
    entry.key, entry.value = KEY, text
    with pytest.raises(ModelError, match=f"metadata entry {KEY}: does not say"):
        nanoloom.compile(model)
