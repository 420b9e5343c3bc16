"""The RFC's table of operations, and what it plans to vectorize: each as a small text.

OPERATIONS are functions with one operation on scalable vectors; `rfc` is the table's
word of 2023, "" for those that are not in it.  KERNELS are what the vectorizer is
given, with the sizes of its tiles and vectors, and the same as an ONNX model.
"""

from __future__ import annotations

from dataclasses import dataclass

V, M = "vector<[4]xf32>", "vector<[4]xi1>"
MEMORY = "memref<?xf32>"


@dataclass(frozen=True)
class Operation:
    """One operation of the vector dialect.  text: a function; rfc: yes, no or ""."""

    name: str
    rfc: str
    text: str


@dataclass(frozen=True)
class Kernel:
    """One linalg operation on dynamic tensors, called %op in `match`.

    tiles: sizes of its tiles, and so of vectors, scalable ones in brackets.  contracts:
    it is a sum of products.  model: ONNX's of it, with sizes that no vector divides.
    """

    name: str
    match: str
    text: str
    tiles: str
    model: str
    contracts: bool = False


def function(given: str, result: str, *lines: str) -> str:
    body = "\n  ".join(lines)
    returned = f" -> {result}" if result else ""
    return f"func.func @f({given}){returned} {{\n  {body}\n}}\n"


AT = f"%m: {MEMORY}, %i: index"
OPERATIONS = (
    Operation("vector.create_mask", "yes", function(
        "%n: index", M, f"%r = vector.create_mask %n : {M}", f"return %r : {M}")),
    Operation("vector.constant_mask", "yes", function(
        "", M, f"%r = vector.constant_mask [4] : {M}", f"return %r : {M}")),
    Operation("vector.transfer_read", "no", function(
        f"{AT}, %p: f32", V,
        f"%r = vector.transfer_read %m[%i], %p : {MEMORY}, {V}", f"return %r : {V}")),
    Operation("vector.transfer_write", "no", function(
        f"{AT}, %v: {V}", "", f"vector.transfer_write %v, %m[%i] : {V}, {MEMORY}",
        "return")),
    Operation("vector.gather", "yes", function(
        f"{AT}, %at: vector<[4]xi32>, %k: {M}, %p: {V}", V,
        f"%r = vector.gather %m[%i] [%at], %k, %p : {MEMORY}, vector<[4]xi32>, {M}, "
        f"{V} into {V}", f"return %r : {V}")),
    Operation("vector.scatter", "yes", function(
        f"{AT}, %at: vector<[4]xi32>, %k: {M}, %v: {V}", "",
        f"vector.scatter %m[%i] [%at], %k, %v : {MEMORY}, vector<[4]xi32>, {M}, {V}",
        "return")),
    Operation("vector.mask", "no", function(
        f"{AT}, %p: f32, %k: {M}", V,
        f"%r = vector.mask %k {{ vector.transfer_read %m[%i], %p : {MEMORY}, {V} }} "
        f": {M} -> {V}", f"return %r : {V}")),
    Operation("vector.maskedload", "yes", function(
        f"{AT}, %k: {M}, %p: {V}", V,
        f"%r = vector.maskedload %m[%i], %k, %p : {MEMORY}, {M}, {V} into {V}",
        f"return %r : {V}")),
    Operation("vector.maskedstore", "yes", function(
        f"{AT}, %k: {M}, %v: {V}", "",
        f"vector.maskedstore %m[%i], %k, %v : {MEMORY}, {M}, {V}", "return")),
    Operation("vector.reduction", "", function(
        f"%v: {V}", "f32", f"%r = vector.reduction <add>, %v : {V} into f32",
        "return %r : f32")),
    Operation("vector.step", "", function(
        "", "vector<[4]xindex>", "%r = vector.step : vector<[4]xindex>",
        "return %r : vector<[4]xindex>")),
    Operation("vector.interleave", "", function(
        f"%v: {V}, %w: {V}", "vector<[8]xf32>",
        f"%r = vector.interleave %v, %w : {V} -> vector<[8]xf32>",
        "return %r : vector<[8]xf32>")),
    Operation("vector.expandload", "", function(
        f"{AT}, %k: {M}, %p: {V}", V,
        f"%r = vector.expandload %m[%i], %k, %p : {MEMORY}, {M}, {V} into {V}",
        f"return %r : {V}")),
    Operation("vector.compressstore", "", function(
        f"{AT}, %k: {M}, %v: {V}", "",
        f"vector.compressstore %m[%i], %k, %v : {MEMORY}, {M}, {V}", "return")),
    Operation("vector.outerproduct", "", function(
        f"%v: vector<4xf32>, %w: {V}, %a: memref<4x?xf32>, %i: index", "",
        f"%r = vector.outerproduct %v, %w : vector<4xf32>, {V}",
        "vector.transfer_write %r, %a[%i, %i] {in_bounds = [true, true]} "
        ": vector<4x[4]xf32>, memref<4x?xf32>", "return")),
    Operation("vector.transpose", "", function(
        "%v: vector<[4]xf32>, %a: memref<?x?xf32>, %i: index", "",
        "%w = vector.broadcast %v : vector<[4]xf32> to vector<4x[4]xf32>",
        "%r = vector.transpose %w, [1, 0] : vector<4x[4]xf32> to vector<[4]x4xf32>",
        "vector.transfer_write %r, %a[%i, %i] {in_bounds = [true, true]} "
        ": vector<[4]x4xf32>, memref<?x?xf32>", "return")),
)  # fmt: skip


def generic(kinds: str, maps: str, given: str, out: str, body: str) -> str:
    """A generic on dynamic tensors.  given: types of what it reads."""
    names = [f"%x{n}" for n in range(len(given.split(", ")))]
    types = given.split(", ")
    arguments = ", ".join(f"{n}: {t}" for n, t in zip(names, types, strict=True))
    return function(
        f"{arguments}, %y: {out}", out,
        f"%r = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}} "
        f"ins({', '.join(names)} : {given}) outs(%y : {out}) {{", body,
        f"}} -> {out}", f"return %r : {out}",
    )  # fmt: skip


def named(operation: str, given: str, out: str, words: str = "") -> str:
    """A named operation of linalg on dynamic tensors."""
    types = given.split(", ")
    names = [f"%x{n}" for n in range(len(types))]
    arguments = ", ".join(f"{n}: {t}" for n, t in zip(names, types, strict=True))
    return function(
        f"{arguments}, %y: {out}", out,
        f"%r = {operation} {words} ins({', '.join(names)} : {given}) "
        f"outs(%y : {out}) -> {out}", f"return %r : {out}",
    )  # fmt: skip


ONE, TWO, THREE, FOUR = (f"tensor<{'?x' * rank}f32>" for rank in (1, 2, 3, 4))
P, R = '"parallel"', '"reduction"'
ID1, ID2 = "affine_map<(i) -> (i)>", "affine_map<(i, j) -> (i, j)>"
ROW = "affine_map<(i, j) -> (i)>"
HEAD = '<ir_version: 10, opset_import: ["": 21]>'
KERNELS = (
    Kernel("elementwise", "linalg.generic", generic(
        P, f"{ID1}, {ID1}, {ID1}", f"{ONE}, {ONE}", ONE,
        "^bb0(%a: f32, %b: f32, %o: f32): %s = arith.addf %a, %b : f32 "
        "linalg.yield %s : f32"), "[4]",
        f"{HEAD} k (float[531] a, float[531] b) => (float[531] y) {{ y = Add(a, b) }}"),
    Kernel("sum of rows", "linalg.generic", generic(
        f"{P}, {R}", f"{ID2}, {ROW}", TWO, ONE,
        "^bb0(%a: f32, %o: f32): %s = arith.addf %a, %o : f32 linalg.yield %s : f32"),
        "1, [4]",
        f"{HEAD} k (float[7, 531] a) => (float[7] y) "
        "{ x = Constant<value_ints = [1]>() y = ReduceSum<keepdims = 0>(a, x) }"),
    Kernel("sum of columns", "linalg.generic", generic(
        f"{P}, {R}", "affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i)>",
        TWO, ONE,
        "^bb0(%a: f32, %o: f32): %s = arith.addf %a, %o : f32 linalg.yield %s : f32"),
        "[4], 1",
        f"{HEAD} k (float[7, 531] a) => (float[531] y) "
        "{ x = Constant<value_ints = [0]>() y = ReduceSum<keepdims = 0>(a, x) }"),
    Kernel("matrix product", "linalg.matmul", named(
        "linalg.matmul", f"{TWO}, {TWO}", TWO), "8, [4], 1",
        f"{HEAD} k (float[9, 37] a, float[37, 83] b) => (float[9, 83] y) "
        "{ y = MatMul(a, b) }", contracts=True),
    Kernel("batch matrix product", "linalg.batch_matmul", named(
        "linalg.batch_matmul", f"{THREE}, {THREE}", THREE),
        "1, 8, [4], 1",
        f"{HEAD} k (float[3, 9, 37] a, float[3, 37, 83] b) => (float[3, 9, 83] y) "
        "{ y = MatMul(a, b) }", contracts=True),
    Kernel("matrix times vector", "linalg.matvec", named(
        "linalg.matvec", f"{TWO}, {ONE}", ONE), "4, [4]",
        f"{HEAD} k (float[9, 531] a, float[531] b) => (float[9] y) "
        "{ y = MatMul(a, b) }"),
    Kernel("transpose", "linalg.transpose", named(
        "linalg.transpose", TWO, TWO
        ).replace(f" -> {TWO}\n", " permutation = [1, 0]\n"),
        "4, [4]",
        f"{HEAD} k (float[83, 37] a) => (float[37, 83] y) "
        "{ y = Transpose<perm = [1, 0]>(a) }"),
    Kernel("gather", "linalg.generic", function(
        f"%x: {ONE}, %at: tensor<?xi32>, %y: {ONE}", ONE,
        f"%r = linalg.generic {{indexing_maps = [{ID1}, {ID1}], "
        f"iterator_types = [{P}]}} ins(%at : tensor<?xi32>) outs(%y : {ONE}) {{",
        "^bb0(%a: i32, %o: f32): %i = arith.index_cast %a : i32 to index "
        f"%s = tensor.extract %x[%i] : {ONE} linalg.yield %s : f32",
        f"}} -> {ONE}", f"return %r : {ONE}"), "[4]",
        f"{HEAD} k (float[83] a, int32[531] i) => (float[531] y) "
        "{ y = Gather(a, i) }"),
    Kernel("convolution of rows", "linalg.conv_1d_nwc_wcf", named(
        "linalg.conv_1d_nwc_wcf", f"{THREE}, tensor<1x?x?xf32>", THREE,
        "{dilations = dense<1> : tensor<1xi64>, strides = dense<1> : tensor<1xi64>}"),
        "1, 4, [4], 1, 1",
        f"{HEAD} k (float[1, 5, 37] x, float[19, 5, 3] w) => (float[1, 19, 35] y) "
        "{ y = Conv(x, w) }"),
    Kernel("depthwise convolution", "linalg.depthwise_conv_1d_nwc_wc", named(
        "linalg.depthwise_conv_1d_nwc_wc", "tensor<1x10x?xf32>, tensor<3x?xf32>",
        "tensor<1x8x?xf32>",
        "{dilations = dense<1> : tensor<1xi64>, strides = dense<1> : tensor<1xi64>}"),
        "1, 8, [4], 1",
        f"{HEAD} k (float[1, 19, 37] x, float[19, 1, 3] w) => (float[1, 19, 35] y) "
        "{ y = Conv<group = 19>(x, w) }"),
    Kernel("copy", "linalg.copy", named("linalg.copy", TWO, TWO), "1, [4]",
        f"{HEAD} k (float[9, 83] a) => (float[9, 40] y) "
        "{ b = Constant<value_ints = [0]>() e = Constant<value_ints = [40]>() "
        "x = Constant<value_ints = [1]>() y = Slice(a, b, e, x) }"),
    Kernel("fill", "linalg.fill", function(
        f"%x: f32, %y: {ONE}", ONE,
        f"%r = linalg.fill ins(%x : f32) outs(%y : {ONE}) -> {ONE}",
        f"return %r : {ONE}"), "[4]",
        f"{HEAD} k (float[1] a) => (float[531] y) "
        "{ s = Constant<value_ints = [531]>() y = Expand(a, s) }"),
)  # fmt: skip
