"""Special functions of elements, which ONNX does not have: operators of nanoloom."""

from __future__ import annotations

from collections.abc import Callable

import onnx_ir as ir

from nanoloom.frontend.torch.call import Call
from nanoloom.frontend.torch.elementwise import sides

T = ir.DataType
OWN = "nanoloom"  # the domain
NAMES = {
    "erfc": "Erfc", "special_erfcx": "Erfcx", "erfinv": "ErfInv",
    "special_ndtr": "Ndtr", "special_ndtri": "Ndtri",
    "special_log_ndtr": "LogNdtr", "lgamma": "Lgamma",
    "digamma": "Digamma", "i0": "I0", "special_i0e": "I0e", "special_i1": "I1",
    "special_modified_bessel_i0": "I0", "special_modified_bessel_i1": "I1",
    "special_i1e": "I1e", "log1p": "Log1p", "expm1": "Expm1", "exp2": "Exp2",
    "log2": "Log2", "log10": "Log10",
}  # fmt: skip


def function(op: str) -> Callable[[Call], ir.Value]:
    return lambda call: call.w(op, call.value("self", call.dtype), domain=OWN)


def polygamma(call: Call) -> ir.Value:
    x, n = call.value("self", call.dtype), int(call.number("n"))
    return call.w("Polygamma", x, n=n, domain=OWN)


def atan2(call: Call) -> ir.Value:
    return call.w("Atan2", *sides(call), domain=OWN)


def bits(call: Call) -> ir.Value:
    """x.view(dtype), of a type that is as wide."""
    x = call.value("self")
    assert x.dtype is not None
    if call.dtype == x.dtype:
        return x
    if call.dtype.itemsize != x.dtype.itemsize or T.BOOL in (call.dtype, x.dtype):
        raise call.refuse("sees bits as numbers of another width")
    return call.w.typed(call.dtype, "BitCast", x, to=int(call.dtype), domain=OWN)


OPERATORS = {
    **{name: function(op) for name, op in NAMES.items()},
    "polygamma": polygamma, "atan2": atan2,
}  # fmt: skip
