"""Sums, means, extremes and their places, norms, running sums, softmax."""

from __future__ import annotations

from collections.abc import Callable

import onnx_ir as ir
import torch

from nanoloom.frontend.torch.call import Call
from nanoloom.frontend.torch.comparisons import truth
from nanoloom.frontend.torch.elementwise import SHORT, comparable
from nanoloom.frontend.torch.elementwise import extreme as pairwise
from nanoloom.frontend.torch.writer import INT64

T = ir.DataType


def reduced(call: Call, op: str, value: ir.Value, axes: list[int]) -> ir.Value:
    if call.input_rank("self") == 0:
        return value
    keep = int(bool(call["keepdim"]))
    return call.w(op, value, call.w.constant(axes), keepdims=keep)


def summand(call: Call) -> ir.Value:
    """ONNX adds no integers of less than 32 bits; torch wraps theirs around."""
    x = call.value("self", call.dtype)
    return call.w.cast(x, T.INT32) if call.dtype in {*SHORT, T.BOOL} else x


def reduce(op: str) -> Callable[[Call], ir.Value]:
    def made(call: Call) -> ir.Value:
        x = summand(call)
        return call.w.cast(reduced(call, op, x, call.axes("dim")), call.dtype)

    return made


def ends(op: str) -> Callable[[Call], ir.Value]:
    def made(call: Call) -> ir.Value:
        x = call.value("self", comparable(call.dtype))
        return call.w.cast(reduced(call, op, x, call.axes("dim")), call.dtype)

    return made


def extreme(op: str, places: str) -> Callable[[Call], object]:
    """max and min: of all elements, of two tensors, along an axis with its places."""

    def made(call: Call) -> object:
        if call.has("other"):
            return pairwise(op.removeprefix("Reduce"))(call)
        x = call.value("self")
        wide = call.w.cast(x, comparable(call.type_of("self")))
        if "dim" not in call.args:
            return call.w.cast(reduced(call, op, wide, call.axes("dim")), call.dtype)
        if call.input_rank("self") == 0:
            return x, call.w.constant(0)
        axis, keep = call.axis("dim"), int(bool(call["keepdim"]))
        best = reduced(call, op, wide, [axis])
        at = call.w.typed(INT64, places, wide, axis=axis, keepdims=keep)
        return call.w.cast(best, call.dtype), at

    return made


def place(op: str) -> Callable[[Call], ir.Value]:
    def made(call: Call) -> ir.Value:
        x, keep = call.value("self"), int(bool(call["keepdim"]))
        if call.input_rank("self") == 0:
            return call.w.constant(0)
        if call["dim"] is None:
            flat = call.w.reshape(x, [-1])
            found = call.w.typed(INT64, op, flat, axis=0, keepdims=0)
            return call.w.reshape(found, call.shape) if keep else found
        return call.w.typed(INT64, op, x, axis=call.axis("dim"), keepdims=keep)

    return made


def truths(op: str) -> Callable[[Call], ir.Value]:
    """any and all: the largest or the least of 0 and 1."""

    def made(call: Call) -> ir.Value:
        x = call.w.cast(truth(call, "self"), T.UINT8)
        return call.w.cast(reduced(call, op, x, call.axes("dim")), call.dtype)

    return made


def variance(call: Call) -> ir.Value:
    x, axes = call.value("self"), call.axes("dim")
    w = call.w
    if call["correction"] is not None:
        less = call["correction"]
    else:
        less = 0 if call["unbiased"] is False else 1
    mean = w("ReduceMean", x, w.constant(axes), keepdims=1)
    gaps = w("Sub", x, mean)
    total = reduced(call, "ReduceSum", w("Mul", gaps, gaps), axes)
    shape = call.fake("self").shape
    count = w.constant(1)
    for axis in axes:
        size = call.sizes.of(shape[axis])
        count = w("Mul", count, call.sizes.operand(size))
    divisor = w("Sub", w.cast(count, call.dtype), w.constant(less, call.dtype))
    return w("Div", total, w("Max", divisor, w.constant(0, call.dtype)))


def variance_and_mean(call: Call) -> tuple[ir.Value, ir.Value]:
    return variance(call), reduced(
        call, "ReduceMean", call.value("self"), call.axes("dim")
    )


def deviation(call: Call) -> ir.Value:
    return call.w("Sqrt", variance(call))


def norm(call: Call) -> ir.Value:
    """Of vectors, with the exponents 1, 2 and those of extremes."""
    p = call["ord"] if "ord" in call.args else call["p"]
    p = 2 if p is None else p
    x, axes = call.value("self", call.dtype), call.axes("dim")
    if p == 2:
        if call.input_rank("self") == 0:
            return call.w("Abs", x)
        return reduced(call, "ReduceL2", x, axes)
    ops = {1: "ReduceSum", float("inf"): "ReduceMax", float("-inf"): "ReduceMin"}
    if p not in ops:
        raise call.refuse(f"is a norm of exponent {p}")
    return reduced(call, ops[p], call.w("Abs", x), axes)


def softmax(op: str) -> Callable[[Call], ir.Value]:
    def made(call: Call) -> ir.Value:
        x = call.value("self", call.dtype)
        if call.rank == 0:
            x = call.w.reshape(x, [1])
            return call.w.scalar(call.w(op, x, axis=0))
        return call.w(op, x, axis=call.axis("dim"))

    return made


def safe_softmax(call: Call) -> ir.Value:
    """Where all of a row is -inf, 0."""
    w, made = call.w, softmax("Softmax")(call)
    x, axis = call.value("self", call.dtype), call.axis("dim")
    best = w("ReduceMax", x, w.constant([axis]), keepdims=1)
    lowest = w.constant(float("-inf"), call.dtype)
    empty = w.typed(T.BOOL, "Equal", best, lowest)
    return w.typed(call.dtype, "Where", empty, w.constant(0, call.dtype), made)


def running(op: str) -> Callable[[Call], ir.Value]:
    """CumSum and CumProd, of types that torch computes them in."""

    def made(call: Call) -> ir.Value:
        x = summand(call)
        if call.rank:
            x = call.w(op, x, call.w.constant(call.axis("dim")))
        return call.w.cast(x, call.dtype)

    return made


def topk(call: Call) -> object:
    k = call.w.ints([call.size(call["k"])])
    x, axis = call.value("self"), call.axis("dim")
    if call.input_rank("self") == 0:
        return x, call.w.constant(0)
    largest = 0 if call["largest"] is False else 1
    return best(call, x, k, axis, largest)


def best(
    call: Call, x: ir.Value, k: ir.Value, axis: int, largest: int
) -> tuple[ir.Value, ir.Value]:
    dtype = comparable(call.type_of("self"))
    wide = call.w.cast(x, T.FLOAT if dtype == T.BFLOAT16 else dtype)
    values, places = call.w("TopK", wide, k, count=2, axis=axis, largest=largest)
    places.dtype = INT64
    return call.w.cast(values, call.type_of("self")), places


def sort(call: Call) -> object:
    x = call.value("self")
    if call.input_rank("self") == 0:
        return x, call.w.constant(0)
    axis = call.axis("dim") if call.has("dim") else call.input_rank("self") - 1
    k = call.w.ints([call.extent("self", axis)])
    return best(call, x, k, axis, int(bool(call["descending"])))


def argsort(call: Call) -> object:
    return sort(call)[1]  # type: ignore[index]


def mean(call: Call) -> ir.Value:
    return reduce("ReduceMean")(call)


def bincount(call: Call) -> ir.Value:
    """How often each number occurs; the largest says how many there are."""
    w, x = call.w, call.value("self", INT64)
    one, zero = w.constant(1), w.constant(0)
    most = w("ReduceMax", w("Concat", x, w.constant([-1]), axis=0), keepdims=0)
    least = w.scalar(w.ints([call.size(call["minlength"])]))
    count = w("Max", w("Add", most, one), least)
    (size,) = call.out.shape
    if isinstance(size, torch.SymInt):
        call.sizes.set(size, count)
    rows = w("Unsqueeze", w("Range", zero, count, one), w.constant([1]))
    same, weights = w("Equal", rows, x), call.optional("weights", call.dtype)
    if weights is None:
        each = w.cast(same, INT64)
    else:
        each = w("Where", same, weights, w.constant(0, call.dtype))
    return w("ReduceSum", each, w.constant([1]), keepdims=0)


OPERATORS = {
    "bincount": bincount,
    "sum": reduce("ReduceSum"), "mean": mean, "prod": reduce("ReduceProd"),
    "amax": ends("ReduceMax"), "amin": ends("ReduceMin"),
    "logsumexp": reduce("ReduceLogSumExp"), "max": extreme("ReduceMax", "ArgMax"),
    "min": extreme("ReduceMin", "ArgMin"), "argmax": place("ArgMax"),
    "argmin": place("ArgMin"), "any": truths("ReduceMax"), "all": truths("ReduceMin"),
    "_is_any_true": truths("ReduceMax"), "_is_all_true": truths("ReduceMin"),
    "var": variance, "std": deviation,
    "var_mean": variance_and_mean, "norm": norm, "linalg_vector_norm": norm,
    "softmax": softmax("Softmax"), "_softmax": softmax("Softmax"),
    "log_softmax": softmax("LogSoftmax"), "_log_softmax": softmax("LogSoftmax"),
    "_safe_softmax": safe_softmax, "cumsum": running("CumSum"),
    "cumprod": running("CumProd"), "topk": topk, "sort": sort,
    "argsort": argsort,
}  # fmt: skip
