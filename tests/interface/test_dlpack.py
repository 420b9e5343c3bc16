"""Memory of other libraries by DLPack: in every type and stride, and out into it."""

from __future__ import annotations

import ctypes
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto, helper

import nanoloom
from nanoloom.errors import InputError
from nanoloom.interface.dlpack import (
    BFLOAT,
    KINDS,
    READ_ONLY,
    Tensor,
    Versioned,
    shared_array,
)

Array = np.ndarray
CODES = {kind: code for code, kind in KINDS.items()}


class Foreign:
    """An array of a library that numpy knows nothing of."""

    def __init__(self, array: Array, *, device: int = 1, flags: int = 0) -> None:
        count = ctypes.c_int64 * max(array.ndim, 1)
        self.array, self.size = array, array.itemsize
        self.shape = count(*array.shape)
        self.strides = count(*(s // self.size for s in array.strides))
        is_bfloat = array.dtype == ml_dtypes.bfloat16
        code = BFLOAT if is_bfloat else CODES[array.dtype.kind]
        tensor = Tensor(
            array.ctypes.data, device, 0, array.ndim, code, 8 * self.size, 1,
            self.shape, self.strides, 0,
        )  # fmt: skip
        self.made = Versioned(1, 0, None, None, flags, tensor)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.made.tensor.device, 0

    def __dlpack__(self, *, max_version: Any = None, **words: Any) -> Any:
        new = ctypes.pythonapi.PyCapsule_New
        new.restype = ctypes.py_object
        new.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        if max_version is None:
            return new(ctypes.addressof(self.made.tensor), b"dltensor", None)
        return new(ctypes.addressof(self.made), b"dltensor_versioned", None)


class Older(Foreign):
    def __dlpack__(self, **words: Any) -> Any:
        if words:
            raise TypeError("unexpected keyword argument")
        return super().__dlpack__()


TYPES = [
    "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16",
    "float32", "float64", "bool", "bfloat16",
]  # fmt: skip


@pytest.mark.parametrize("name", TYPES)
def test_same_memory(name: str) -> None:
    dtype = np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)
    whole = (np.arange(60) % 2 if name == "bool" else np.arange(60)).astype(dtype)
    for array in (whole.reshape(3, 4, 5), whole.reshape(6, 10)[::2, 1::3].T, whole[:0]):
        found = shared_array(Foreign(array), "here")
        assert found.dtype == dtype
        assert found.shape == array.shape
        assert (found == array).all()
    found = shared_array(Foreign(whole), "here")
    found[3] = whole[0]
    assert whole[3] == whole[0]
    for fixed in (Foreign(whole, flags=READ_ONLY), Older(whole)):
        assert not shared_array(fixed, "here").flags.writeable


def doubling(kind: int) -> nanoloom.Program:
    x, y = (helper.make_tensor_value_info(name, kind, ["n", 3]) for name in "xy")
    nodes = [helper.make_node("Add", ["x", "x"], ["y"])]
    graph = helper.make_graph(nodes, "g", [x], [y])
    opsets = [helper.make_opsetid("", 20)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=9)
    return nanoloom.compile(model)


@pytest.mark.parametrize(
    ("kind", "dtype"),
    [(TensorProto.FLOAT, np.float32), (TensorProto.BFLOAT16, ml_dtypes.bfloat16)],
)
def test_in_and_out(kind: int, dtype: Any) -> None:
    program = doubling(kind)
    x, y = np.arange(12).reshape(4, 3).astype(dtype), np.zeros((4, 3), dtype)
    target = Foreign(y)
    made = program.run({"x": Foreign(x)}, into={"y": target})
    assert made["y"] is target
    assert (y == 2 * np.arange(12).reshape(4, 3)).all()
    assert (program.run({"x": Older(x)})["y"] == y).all()


def test_refusals() -> None:
    program, x = doubling(TensorProto.FLOAT), np.ones((4, 3), np.float32)
    given = {"x": x}
    wrong: list[tuple[Any, Any, str]] = [
        (Foreign(x, device=2), None, "is not in the CPU's memory"),
        (
            Foreign(x.astype(ml_dtypes.bfloat16)),
            None,
            "is bfloat16 4x3, the model wants",
        ),
        (x, Foreign(x), "shares memory with input x"),
        (Foreign(x), Foreign(x), "shares memory with input x"),
        (x, Foreign(np.ones((4, 3), np.float32), flags=READ_ONLY), "nobody may write"),
        (x, [1.0], "give a numpy array, or one with DLPack"),
    ]
    for array, target, reason in wrong:
        into = None if target is None else {"y": target}
        with pytest.raises(InputError, match=reason):
            program.run({**given, "x": array}, into=into)


class Negated(Foreign):
    """The imaginary part of a conjugate in PyTorch, whose memory has it as it was."""

    def is_neg(self) -> bool:
        return True


def test_memory_with_other_signs_is_refused() -> None:
    with pytest.raises(InputError, match="other signs than its memory"):
        shared_array(Negated(np.ones(3, np.float32)), "input x")
