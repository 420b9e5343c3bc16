"""Small models of one family each, of whole numbers: the same bits as ONNX Runtime's.

A family is what single operators do not reach: alike kernels in one model, shapes that
a model merely declares, branches that do not fit, lists of tensors, long sorts and long
loops.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec

import numpy as np
import onnx

import nanoloom
from tests.dynamic.compared import session
from tests.fuzz.cases import Bench, Finding, Outcome

Rng = np.random.Generator
Arrays = dict[str, np.ndarray]
Drawn = tuple[str, Arrays]
SIZES = (1, 2, 3, 7, 8, 16, 20, 33, 48, 64, 80, 128)
HEAD = '<ir_version: 10, opset_import: ["" : 20]>'
MOST_SORTED, MOST_TRIPS = 100_000, 10_000


def whole(rng: Rng, *shape: int) -> np.ndarray:
    return rng.integers(-3, 4, shape).astype(np.float32)


def size(rng: Rng) -> int:
    return int(rng.choice(SIZES))


def alike(rng: Rng) -> Drawn:
    """Two to five products of depths that are also rows or columns of theirs."""
    nodes, feeds, ins, outs = [], Arrays(), [], []
    rows = size(rng)
    for i in range(int(rng.integers(2, 6))):
        depth = size(rng)
        columns = int(rng.choice([depth, depth, rows, size(rng)]))
        here = int(rng.choice([rows, rows, depth]))
        feeds[f"x{i}"], feeds[f"w{i}"] = (
            whole(rng, here, depth),
            whole(rng, depth, columns),
        )
        ins += [f"float[{here},{depth}] x{i}", f"float[{depth},{columns}] w{i}"]
        outs.append(f"float[{here},{columns}] y{i}")
        end = str(rng.choice(["Relu", "Neg", "Identity"]))
        nodes.append(f"p{i} = MatMul(x{i}, w{i}) y{i} = {end}(p{i})")
    return f"g ({', '.join(ins)}) => ({', '.join(outs)}) {{ {' '.join(nodes)} }}", feeds


def declared(rng: Rng) -> Drawn:
    """A result whose declared shape is of another rank, or of other sizes."""
    n, m = size(rng), size(rng)
    said = ", ".join(str(rng.choice([1, n, m, 5])) for _ in range(rng.integers(1, 4)))
    middle = str(rng.choice(["Relu(x)", "Transpose(x)", "Concat<axis = 0>(x, x)"]))
    text = f"""g (float[{n},{m}] x) => (float[{said}] y) <float[{said}] r>
        {{ r = {middle} y = Neg(r) }}"""
    return text, {"x": whole(rng, n, m)}


def branches(rng: Rng) -> Drawn:
    """An If one branch of which may not run for these sizes, and is not taken then."""
    n = size(rng)
    others = (
        ("s = Constant<value_ints = [-1, 5]>() b = Reshape(x, s)", n % 5 == 0),
        ("o = Constant<value_ints = [0]>() b = Squeeze(x, o)", n == 1),
        ("s = Constant<value_ints = [1, 1]>() b, c = Split<axis = 0>(x, s)", n == 2),
        ("b = MatMul(x, x)", n == 4),
    )
    other, fits = others[int(rng.integers(0, len(others)))]
    text = f"""g (float[rows,4] x, bool k) => (float[p,q] y) {{ y = If (k) <
        then_branch = t () => (a) {{ a = Relu(x) }},
        else_branch = e () => (b) {{ {other} }}> }}"""
    return text, {"x": whole(rng, n, 4), "k": np.array(not fits or rng.random() < 0.5)}


RANKS = ("Identity(x)", "Unsqueeze(x, zero)", "ReduceMax<keepdims = 0>(x, zero)",
         "ReduceSum<keepdims = 0>(x)")  # fmt: skip
READERS = (  # b of a, the first one of which is v0
    "{b} = Neg({a})",
    "t{i} = ReduceMax<keepdims = 0>(x) {b} = Add({a}, t{i})",
    "t{i} = ReduceMin<keepdims = 0>(o) {b} = Sub({a}, t{i})",
    "{b} = Max({a}, v0)",
    """{b} = If (k) <then_branch = t{i} () => (p{i}) {{ p{i} = Neg({a}) }},
        else_branch = e{i} () => (q{i}) {{ q{i} = Identity({a}) }}>""",
    """{b} = Loop (three, , {a}) <body = l{i} (int64 j{i}, bool g{i}, float u{i})
        => (h{i}, w{i}) {{ h{i} = Identity(g{i}) w{i} = Add(u{i}, v0) }}>""",
)
ENDS = ("ReduceSum<keepdims = 0>(v)", "ReduceMax<keepdims = 0>(v)", "Reshape(v, flat)")


def ranks(rng: Rng) -> Drawn:
    """An If of branches of other ranks, and what reads it up to where ranks meet."""
    n, nodes = size(rng), list[str]()
    first, second = rng.choice(RANKS, 2, replace=False)
    for i, way in enumerate(rng.choice(READERS, int(rng.integers(0, 4)))):
        nodes.append(way.format(i=i, a=f"v{i}", b=f"v{i + 1}"))
    nodes.append(f"v = Identity(v{len(nodes)}) y = {rng.choice(ENDS)}")
    shape = "[p]" if "flat" in nodes[-1] else ""
    text = f"""g (float[rows, 4] x, float[3] d, bool k)
        => (float{shape} y, float[rows, 4] z)
        <int64[1] zero = {{0}}, int64[1] flat = {{-1}}, int64 three = {{3}},
        float f = {{0}}> {{
        s = ReduceSum<keepdims = 0>(d) c = Greater(s, f) v0, o = If (c) <
        then_branch = t () => (a, a1) {{ a = {first} a1 = Neg(x) }},
        else_branch = e () => (b, b1) {{ b = {second} b1 = Relu(x) }}>
        {" ".join(nodes)} z = Neg(o) }}"""
    arrays = {"x": whole(rng, n, 4), "d": whole(rng, 3)}
    return text, {**arrays, "k": np.array(rng.random() < 0.5)}


def sequences(rng: Rng) -> Drawn:
    """A list that grows and shrinks at places that are known, and is joined."""
    parts, axis = int(rng.integers(1, 6)), int(rng.integers(0, 2))
    n, m = parts * int(rng.integers(1, 5)), size(rng)
    nodes = [
        f"c = Constant<value_int = {n // parts}>() s0 = SplitToSequence(x, c)"
        " first = Constant<value_int = 0>() e = SequenceAt(s0, first)"
    ]
    count, steps = parts, int(rng.integers(1, 6))
    for i in range(steps):
        drop = count > 1 and rng.integers(0, 2)
        at = int(rng.integers(-count, count + (not drop)))
        nodes.append(f"i{i} = Constant<value_int = {at}>()")
        made = (
            f"SequenceErase(s{i}, i{i})" if drop else f"SequenceInsert(s{i}, e, i{i})"
        )
        nodes.append(f"s{i + 1} = {made}")
        count += -1 if drop else 1
    joined = f"y = ConcatFromSequence<axis = {axis}>(s{steps})"
    text = f"g (float[{n},{m}] x) => (float[p,q] y) {{ {' '.join(nodes)} {joined} }}"
    return text, {"x": whole(rng, n, m)}


def sorts(rng: Rng) -> Drawn:
    """The first k of up to 100,000 numbers, with equal ones or none."""
    n = int(10 ** rng.uniform(1, np.log10(MOST_SORTED)))
    k = int(rng.choice([1, max(1, n // 100), n]))
    x = rng.permutation(n) if rng.integers(0, 2) else rng.integers(0, 9, n)
    largest = int(rng.integers(0, 2))
    text = f"""g (float[{n}] x) => (float[{k}] y, int64[{k}] i) {{
        k = Constant<value_ints = [{k}]>() y, i = TopK<largest = {largest}>(x, k) }}"""
    return text, {"x": x.astype(np.float32)}


def trips(rng: Rng) -> Drawn:
    """A Loop of up to 10,000 trips that ends by its condition, with what it scans."""
    most = int(10 ** rng.uniform(0, np.log10(MOST_TRIPS)))
    limit = int(rng.integers(0, most + 2))
    text = f"""g (float[2] x) => (float[2] y, float[t, 2] z) {{
        m = Constant<value_int = {most}>() on = Constant<value = bool {{1}}>()
        y, z = Loop (m, on, x) <body = b (int64 i, bool c, float[2] v)
            => (bool d, float[2] w, float[2] u) {{
            one = Constant<value_floats = [1.0, -1.0]>() w = Add(v, one)
            u = Neg(v) l = Constant<value_int = {limit}>() d = Less(i, l) }}> }}"""
    return text, {"x": whole(rng, 2)}


FAMILIES: dict[str, Callable[[Rng], Drawn]] = {
    "alike": alike,
    "branches": branches,
    "declared": declared,
    "ranks": ranks,
    "sequences": sequences,
    "sorts": sorts,
    "trips": trips,
}


EXPORTERS = ("lightgbm", "onnxmltools", "sklearn", "skl2onnx", "xgboost")
TORCH = ("torch", "onnxscript")


def families() -> list[str]:
    """All that can be drawn here: some families need packages of others."""
    asked = {"classical": EXPORTERS, "module": TORCH, "written": TORCH}
    there = [kind for kind, names in asked.items() if all(map(find_spec, names))]
    return [*FAMILIES, "old", "types", *there]


def check_family(name: str, seed: int, bench: Bench) -> Outcome:
    """Compile a model of a family and compare all bits; a refusal is a finding."""
    text, feeds = FAMILIES[name](np.random.default_rng([7, seed]))
    model = onnx.parser.parse_model(f"{HEAD}\n{text}")
    bench.keep(name, model, feeds)
    bench.at("reference")
    names = [x.name for x in model.graph.output]
    wanted = dict(zip(names, session(model).run(None, feeds), strict=True))
    bench.at("compile and run")
    try:
        made = nanoloom.compile(model, threads=1, cache=bench.cache)(feeds)
    except nanoloom.Error as error:
        return Outcome(
            "finding", Finding("foreign", f"{type(error).__name__}: {error}")
        )
    for output, given in wanted.items():
        array = np.asarray(given)
        found = made[output]
        if found.shape != array.shape or not np.array_equal(found, array):
            what = f"{output}: {found.shape} where {array.shape} is wanted, or numbers"
            return Outcome("finding", Finding("difference", what))
    return Outcome("passed", None, [name])
