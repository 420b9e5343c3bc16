"""Input arrays: checked to the letter, made up, nothing converted in silence."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper

from nanoloom.errors import InputError, Unsupported
from nanoloom.frontend.inputs import InputSpec, input_specs, random_inputs
from nanoloom.frontend.onnx import load
from nanoloom.frontend.symbolic_dims import bind
from nanoloom.interface.check_inputs import check_inputs
from tests.frontend import models

FLOAT, LONG = np.dtype(np.float32), np.dtype(np.int64)
IDS = InputSpec("ids", ("batch", 4), LONG)
MASK = InputSpec("mask", ("batch", 4), LONG)
X = InputSpec("x", (2, 3), FLOAT)
NUMBERS = np.arange(6, dtype=np.float32).reshape(2, 3)


def refusal(specs, arrays) -> str:
    with pytest.raises(InputError) as caught:
        check_inputs(specs, arrays)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_what_fits_is_passed_on() -> None:
    checked = check_inputs([X], {"x": NUMBERS})
    assert checked["x"] is NUMBERS


def test_the_order_is_the_models() -> None:
    ids = np.zeros((1, 4), np.int64)
    assert list(check_inputs([IDS, MASK], {"mask": ids, "ids": ids})) == ["ids", "mask"]


@pytest.mark.parametrize(
    "array",
    [
        np.asfortranarray(NUMBERS),
        np.repeat(NUMBERS, 2, axis=1)[:, ::2],
        NUMBERS[::-1].copy()[::-1],
        np.frombuffer(b"0" + NUMBERS.tobytes(), np.float32, 6, 1).reshape(2, 3),
    ],
)
def test_layouts_are_made_contiguous(array: np.ndarray) -> None:
    got = check_inputs([X], {"x": array})["x"]
    assert got.flags.c_contiguous and got.flags.aligned
    np.testing.assert_array_equal(got, array)


def test_scalars_stay_scalars() -> None:
    spec = InputSpec("s", (), FLOAT)
    for value in (np.float32(2), np.array(2, np.float32), 2, 2.0):
        got = check_inputs([spec], {"s": value})["s"]
        assert got.shape == () and got.dtype == np.float32 and got == 2


def test_names() -> None:
    text = refusal([IDS, X], {"idx": NUMBERS, "x": NUMBERS})
    assert "ids is missing and idx is not one of them" in text
    assert "the model takes ids (int64 batchx4), x (float32 2x3)" in text
    assert "inputs: ids is missing" in refusal([IDS], {})
    assert "inputs: are a list; give a dict" in refusal([IDS], [np.zeros(3)])
    assert "inputs: y is not one of them" in refusal([X], {"x": NUMBERS, "y": 1})


def test_element_types() -> None:
    text = refusal([X], {"x": NUMBERS.astype(np.float64)})
    assert text.startswith("input x: is float64 2x3, the model wants float32 2x3; ")
    assert "array.astype('float32')" in text
    assert "is int64 2x3" in refusal([X], {"x": NUMBERS.astype(np.int64)})
    assert "is bool 2x3" in refusal([X], {"x": NUMBERS > 1})
    assert "the model wants int64" in refusal(
        [IDS], {"ids": np.zeros((1, 4), np.int32)}
    )


def test_big_endian() -> None:
    assert "is big-endian" in refusal([X], {"x": NUMBERS.astype(">f4")})


def test_shapes() -> None:
    text = refusal([X], {"x": NUMBERS.T})
    assert "input x: is float32 3x2, the model wants float32 2x3" in text
    assert "is float32 6, the" in refusal([X], {"x": NUMBERS.ravel()})
    assert "is float32 scalar, the" in refusal([X], {"x": np.float32(1)})
    assert "int64 1x5, the" in refusal([IDS], {"ids": np.zeros((1, 5), np.int64)})


def test_named_dimensions_agree() -> None:
    arrays = {"ids": np.zeros((2, 4), np.int64), "mask": np.zeros((3, 4), np.int64)}
    text = refusal([IDS, MASK], arrays)
    assert "input mask: dimension batch is 3 here and 2 in input ids" in text


def test_lists_are_taken_when_exact() -> None:
    got = check_inputs([X], {"x": [[1, 2, 3], [0.5, -1, float("nan")]]})["x"]
    assert got.dtype == np.float32
    assert got[1, 0] == 0.5 and np.isnan(got[1, 2])
    ids = check_inputs([IDS], {"ids": [[1, 2, 3, 4]]})["ids"]
    assert ids.dtype == np.int64
    flag = InputSpec("f", (2,), np.dtype(np.bool_))
    assert check_inputs([flag], {"f": (True, False)})["f"].tolist() == [True, False]


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        (np.float32, [0.1]),
        (np.float32, [2**24 + 1]),
        (np.float32, [True]),
        (np.float32, ["1"]),
        (np.float32, [1j]),
        (np.int64, [0.5]),
        (np.int64, [float("nan")]),
        (np.int64, [2**63]),
        (np.int64, [2**64 - 1]),
        (np.int64, [2**80]),
        (np.int64, [-1, 2**63]),
        (np.float32, [0, 2**63 + 1]),
        (np.uint64, [-1]),
        (np.uint8, [256]),
        (np.uint8, [-1]),
        (np.int8, [200]),
        (np.bool_, [1]),
        (np.float16, [70000]),
        (np.float32, [1e300]),
        (ml_dtypes.bfloat16, [257]),
    ],
)
def test_lists_that_would_change(dtype: type, value: list) -> None:
    spec = InputSpec("x", (len(value),), np.dtype(dtype))
    assert "holds values that are not exactly" in refusal([spec], {"x": value})


def test_integers_beyond_int64() -> None:
    """numpy would take them for floats, and change the last digits."""
    spec = InputSpec("x", (2,), np.dtype(np.uint64))
    (got,) = check_inputs([spec], {"x": [0, 2**63 + 1]}).values()
    assert got.tolist() == [0, 2**63 + 1]


@given(st.lists(st.integers(-(2**70), 2**70), min_size=1, max_size=3))
def test_a_list_of_numbers_keeps_its_values_or_is_refused(values: list[int]) -> None:
    for dtype in (np.int8, np.uint32, np.int64, np.uint64, np.float32):
        spec = InputSpec("x", (len(values),), np.dtype(dtype))
        try:
            got = check_inputs([spec], {"x": values})["x"]
        except InputError:
            continue
        assert [int(number) for number in got] == values


def test_what_is_no_array() -> None:
    assert "is a list of rows of different" in refusal([X], {"x": [[1, 2, 3], [1]]})
    assert "input x: is a dict; give a numpy array" in refusal([X], {"x": {}})
    assert "is a NoneType" in refusal([X], {"x": None})
    assert "is a str" in refusal([X], {"x": "abc"})
    assert "is masked" in refusal([X], {"x": np.ma.masked_equal(NUMBERS, 1)})


class Reluctant:
    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("call .detach() first\nand more")


def test_an_object_that_refuses() -> None:
    text = refusal([X], {"x": Reluctant()})
    assert "input x: cannot become an array: call .detach() first" in text


def test_bfloat16_of_a_npy_file() -> None:
    spec = InputSpec("x", (3,), np.dtype(ml_dtypes.bfloat16))
    stored = np.array([1, 2, 3], ml_dtypes.bfloat16).view("V2")
    assert check_inputs([spec], {"x": stored})["x"].dtype == ml_dtypes.bfloat16


def test_specs_of_a_model() -> None:
    model = load(models.linear())
    assert input_specs(model) == (InputSpec("x", ("batch", 37), FLOAT),)
    bound = input_specs(bind(model, {"batch": 2}))
    assert bound == (InputSpec("x", (2, 37), FLOAT),)
    check_inputs(bound, random_inputs(bound))


def test_specs_of_strings() -> None:
    proto = models.chain([models.unary("x", "y", "Identity")])
    proto.graph.input[0].type.tensor_type.elem_type = TensorProto.STRING
    proto.graph.output[0].type.tensor_type.elem_type = TensorProto.STRING
    (spec,) = input_specs(load(proto))
    assert (spec.name, spec.dtype) == ("x", np.int64)  # their numbers


def test_specs_of_sequences() -> None:
    sequence = helper.make_tensor_sequence_value_info("s", TensorProto.FLOAT, [2])
    node = helper.make_node("SequenceLength", ["s"], ["n"])
    model = models.model([node], [sequence], [models.value("n", [], TensorProto.INT64)])
    with pytest.raises(Unsupported, match="input s: is a sequence, and only a call"):
        input_specs(load(model))


KINDS = (np.float32, np.float64, np.float16, ml_dtypes.bfloat16, np.int64, np.uint8,
         np.bool_, np.complex64, ml_dtypes.int4, ml_dtypes.float8_e4m3fn)  # fmt: skip


@pytest.mark.parametrize("dtype", KINDS)
def test_random_inputs_fit(dtype: type) -> None:
    specs = [
        InputSpec("x", (37, 11), np.dtype(dtype)),
        InputSpec("attention_mask", (5,), np.dtype(dtype)),
        InputSpec("s", (), np.dtype(dtype)),
        InputSpec("none", (0, 3), np.dtype(dtype)),
    ]
    drawn = random_inputs(specs, seed=1)
    check_inputs(specs, drawn)
    assert (drawn["attention_mask"].real.astype(np.float32) == 1).all()
    numbers = drawn["x"].real.astype(np.float32)
    assert len(np.unique(numbers)) > 1
    if dtype in (np.int64, np.uint8, np.bool_, ml_dtypes.int4):
        assert set(np.unique(numbers)) == {0, 1}
    else:
        # The mean of 407 standard normals: five standard errors.
        assert abs(numbers.mean()) < 5 / np.sqrt(407)


def test_random_inputs_depend_on_seed_and_name_only() -> None:
    other = InputSpec("z", (2, 3), FLOAT)
    one, two = random_inputs([X, other], 7), random_inputs([other, X], 7)
    np.testing.assert_array_equal(one["x"], two["x"])
    assert not np.array_equal(one["x"], one["z"])
    assert not np.array_equal(one["x"], random_inputs([X], 8)["x"])


def test_random_inputs_that_cannot_be() -> None:
    with pytest.raises(
        InputError, match="input ids: has no number for dimension batch"
    ):
        random_inputs([IDS])
    huge = InputSpec("x", (2**40, 2**20), FLOAT)
    with pytest.raises(InputError, match=r"input x: inputs .* need 4\.61e\+06 TB"):
        random_inputs([huge])
    random_inputs([X], memory=24)
    with pytest.raises(InputError, match="23 bytes of memory are free"):
        random_inputs([X], memory=23)
