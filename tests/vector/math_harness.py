"""Expansions run on this machine, and the distance of their results from float64.

`Compiled` turns a builder into machine code over numpy arrays; `ulp_error` measures
the distance of its results from float64 in units of the last place of f32.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from nanoloom.ir.mlir import context, ir, llvm, named, run_pipeline
from tests.native_code import Engine

Array = npt.NDArray[Any]
Builder = Callable[..., ir.Value]

# A placeholder that any types may pass, replaced by what a builder makes.
PLACE = "builtin.unrealized_conversion_cast"

TO_LLVM = (
    "func.func(arith-expand{include-bf16=true})",  # not every CPU rounds to bf16
    "convert-scf-to-cf",
    "convert-math-to-llvm",  # before libm could be asked for: nothing may be left
    "convert-vector-to-llvm",
    "convert-to-llvm",
    "reconcile-unrealized-casts",
    "canonicalize",
    "cse",
)


def lanes_module(kind: str, operands: int, body: str | Builder) -> ir.Module:
    """A loop over 1-D arrays: `kind` is loaded, goes through `body`, and is stored.

    kind: "16xf32" for vectors, "f32" for scalars.  body: the name of a math operation
    or a builder of ir.Values.  The arrays' length must be a multiple of the lanes.
    """
    count, _, element = kind.rpartition("x")
    lanes, vector = int(count or 1), f"vector<{kind}>" if count else element
    names = [f"%a{i}" for i in range(operands)]
    load, store = ("vector.load", "vector.store") if count else ("memref.load",) * 2
    store = store if count else "memref.store"
    suffix = f", {vector}" if count else ""
    array = f"memref<?x{element}>"
    loads = "\n".join(
        f"%x{i} = {load} {name}[%i] : {array}{suffix}" for i, name in enumerate(names)
    )
    values = ", ".join(f"%x{i}" for i in range(operands))
    kinds = ", ".join([vector] * operands)
    arguments = ", ".join(f"{name}: {array}" for name in (*names, "%out"))
    operation = body if isinstance(body, str) else PLACE
    module = ir.Module.parse(f"""
      func.func @run({arguments}) attributes {{llvm.emit_c_interface}} {{
        %zero = arith.constant 0 : index
        %step = arith.constant {lanes} : index
        %n = memref.dim %out, %zero : {array}
        scf.for %i = %zero to %n step %step {{
          {loads}
          %y = "{operation}"({values}) : ({kinds}) -> {vector}
          {store} %y, %out[%i] : {array}{suffix}
        }}
        return
      }}""")
    if not isinstance(body, str):
        (place,) = named(module, PLACE)
        with ir.InsertionPoint(place), place.operation.location:
            made = body(*place.operation.operands)
        place.operation.results[0].replace_all_uses_with(made)
        place.operation.erase()
    return module


class _Descriptor(ctypes.Structure):
    """A 1-D memref as MLIR's C interface passes it."""

    _fields_ = (
        ("allocated", ctypes.c_void_p),
        ("aligned", ctypes.c_void_p),
        ("offset", ctypes.c_int64),
        ("size", ctypes.c_int64),
        ("stride", ctypes.c_int64),
    )


class Compiled:
    """A module of `lanes_module` as a function on equally long 1-D arrays."""

    def __init__(self, module: ir.Module) -> None:
        run_pipeline(module, TO_LLVM)
        self.llvm = llvm.translate_module_to_llvmir(module.operation)
        self._engine = Engine(module, opt_level=3)

    @classmethod
    def build(cls, kind: str, operands: int, body: Builder) -> Compiled:
        with context():
            module = lanes_module(kind, operands, body)
            assert module.operation.verify()
            return cls(module)

    def __call__(self, *inputs: Array) -> Array:
        size = inputs[0].size
        padded = -(-size // 64) * 64
        arrays = [np.resize(x, padded) for x in inputs]
        arrays.append(np.empty_like(arrays[0]))
        descriptors = [
            _Descriptor(a.ctypes.data, a.ctypes.data, 0, padded, 1) for a in arrays
        ]
        self._engine.invoke("run", *descriptors)
        return arrays[-1][:size]


def ulp_error(got: Array, exact: Array) -> Array:
    """|got - exact| in units of the last place of f32 at `exact`, per element.

    got is f32, exact f64.  The unit in the denormals is 2^-149.  inf counts as 2^128,
    where rounding begins to give it; NaN against NaN is 0, against a number inf.
    """
    top = 2.0**128
    wide = np.clip(got.astype(np.float64), -top, top)
    true = np.clip(exact, -top, top)
    _, exponent = np.frexp(np.where(true == 0, 2.0**-149, true))
    unit = np.ldexp(1.0, np.clip(exponent, -125, 128) - 24)
    error = np.abs(wide - true) / unit
    both = np.isnan(got) & np.isnan(exact)
    return np.where(both, 0.0, np.where(np.isnan(error), np.inf, error))
