"""The operations that nanoloom adds to Transform scripts, and their attributes.

    "nanoloom.unroll"(%stage) {axis, count}
    "nanoloom.vectorize"(%stage, %lanes) {axis, chains, form, scalable}
    "nanoloom.stack"(%function) {bytes}
    "nanoloom.scaled"(%stage, %lanes) {vectors} -> %size

The attributes are the fields of the directives in schedule/language.py, which say what
each is for.  How wide vectors are is a parameter of the script, which all operations
with such vectors read, and tiles of them: one number decides.
"""

from __future__ import annotations

import types
from typing import Any

from nanoloom.ir.mlir import ext, ir, transform_dialect
from nanoloom.vector.dialect import Dialect

SCALED = "scaled"
RESULTS = {SCALED: "size"}  # of one operation: the others change what they are given
WIDE = {"copies", "copy_operand", "nanokernel", "pad", SCALED, "vectorize"}


def fields(integers: str = "", *, arrays: str = "", texts: str = "") -> dict[str, Any]:
    """The kinds of an operation's attributes by their names."""
    return {
        **dict.fromkeys(integers.split(), ir.IntegerAttr),
        **dict.fromkeys(arrays.split(), ir.ArrayAttr),
        **dict.fromkeys(texts.split(), ir.StringAttr),
    }


FIELDS = {
    # of a kernel
    "pack": fields(
        "argument column columns group sums steps bits differences",
        arrays="shared reduced",
    ),
    "prefetch": fields("argument lines ahead level", arrays="loops"),
    "copies": fields("bits scalable"),
    "whole_slices": fields(),
    "stack": fields("bytes"),
    "vectorize_rest": fields("bits scalable"),
    # of a stage
    "private_accumulator": fields(),
    "store_at": fields(texts="where"),
    "vectorize": fields("axis scalable chains", texts="form"),
    "scalarize": fields(),
    "unroll": fields("axis count"),
    "unroll_and_jam": fields("axis count"),
    "pipeline": fields("axis"),
    "transpose_in_registers": fields("block_bits tail_lanes"),
    "order": fields(arrays="axes"),
    "at_tile": fields(),
    "copy_operand": fields("operand scalable wide"),
    "hoist": fields("operand", texts="loop"),
    "pad": fields("axis to scalable", texts="number"),
    "stationary": fields("anchor unroll", arrays="points sums resident"),
    "reduce_jointly": fields("count"),
    "reuse_window": fields(),
    "init_with_addend": fields(),
    "use_instruction": fields(texts="name"),
    SCALED: fields("vectors"),
    # of a nanokernel
    "nanokernel": fields(
        "rows vectors packed depth hold_lhs unroll convert_lhs pin_order"
        " keep_broadcast_live unfused_mul_add unmasked_fast_path",
        texts="family copy_rhs",
    ),
    "versions": fields(arrays="rows"),
    "balance": fields(),
    "tail": fields("vectors"),
}


def operation(word: str) -> type[Any]:
    """The class of an operation: its handle, vectors, attributes and result."""
    handle = transform_dialect.AnyOpType
    kinds: dict[str, Any] = {"target": ext.Operand[handle]}
    if word in WIDE:
        kinds["lanes"] = ext.Operand[transform_dialect.ParamType]
    kinds |= FIELDS[word]
    if word in RESULTS:
        kinds[RESULTS[word]] = ext.Result[handle]
    annotated = {"__annotations__": kinds, "__module__": __name__}
    return types.new_class(
        word, (Dialect.Operation,), {"name": word}, lambda body: body.update(annotated)
    )


OPERATIONS = {word: operation(word) for word in FIELDS}
