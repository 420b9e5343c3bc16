"""Kernels with several results: what shares rows, and is read elsewhere as well."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

import nanoloom
from nanoloom.fusion import multi_output_fusion as fusion
from nanoloom.fusion.group import form_groups
from nanoloom.fusion.group_values import group_results
from nanoloom.ir import mlir
from nanoloom.ir.linalg_query import inputs as read_by
from nanoloom.linalg.builder.indexing import take
from nanoloom.linalg.builder.scalar import BOOL
from nanoloom.linalg.builder.window import Window
from nanoloom.linalg.reductions.pooling import pool
from nanoloom.nest.granularity import FEWEST_TASKS
from nanoloom.notation import Buffer, axes, computation, maximum
from nanoloom.target import Target
from tests.filecheck import check_text
from tests.kernels.attention_programs import roots
from tests.kernels.random_programs import grown, inputs_of
from tests.linalg.bounds import dtype_of, sample
from tests.vector.checks import check
from tests.vector.kernel_harness import (
    ANY_CPU,
    Array,
    Make,
    backwards,
    build,
    executable,
    program_of,
    shared_cache,
    targets,
)

TARGETS = pytest.mark.parametrize("target", targets(), ids=str)
SHAPES = [(37, 50), (5, 7, 33), (2, 3, 11, 129), (301, 2), (17, 4099), (3, 5)]


def sums(b: Any, x: Any, axis: int = -1) -> Any:
    return b.reduce(lambda sofar, s: sofar + s, x, [axis % x.rank], 0)


def added(b: Any, x: Any, y: Any) -> Any:
    return b.elementwise(lambda s, t: s + t, x, y)


def whole(seed: int, shape: tuple[int, ...]) -> Array:
    """Small integers, whose sums are exact."""
    return np.rint(sample(seed, shape, "float32", -3, 3))


def layer_norm(b: Any, x: Any, gain: Array, shift: Array) -> Any:
    n = x.shape[-1]
    mean = b.elementwise(lambda s: s * (1 / n), sums(b, x))
    centred = b.elementwise(lambda s, t: s - t, x, mean)
    squares = sums(b, b.elementwise(lambda s: s * s, centred))
    scaled = b.elementwise(
        lambda s, t: s / (t * (1 / n) + 1e-5).math("sqrt"), centred, squares
    )
    return b.elementwise(
        lambda s, g, t: s * g + t, scaled, b.constant(gain), b.constant(shift)
    )


def normal(x: Array, gain: Array, shift: Array) -> tuple[Array, Array]:
    """A layer norm of exact numbers, and how large what it rounds is."""
    x = x.astype(np.float64)
    centred = x - x.mean(-1, keepdims=True)
    deviation = np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)
    size = abs(x).max(-1, keepdims=True) / deviation
    return centred / deviation * gain + shift, size * abs(gain) + abs(shift)


def one_kernel(make: Make, target: Target, *inputs: Array) -> list[Array]:
    """The numbers of a program that is a single kernel."""
    program = program_of(make, *inputs)
    assert len(program.calls) == 1, roots(program)
    return executable(program, target)(*inputs, order=backwards)


# ---- numbers -------------------------------------------------------------------------


@pytest.mark.drawn
@TARGETS
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_residual_sum_and_its_normalization(
    shape: tuple[int, ...], target: Target
) -> None:
    x, y = whole(1, shape), whole(2, shape)
    gain, shift = whole(3, shape[-1:]), whole(4, shape[-1:])

    def make(b: Any, x: Any, y: Any) -> Any:
        s = added(b, x, y)
        return [s, layer_norm(b, s, gain, shift)]

    s, n = one_kernel(make, target, x, y)
    assert (s == x + y).all()
    exact, size = normal(x + y, gain, shift)
    check(n, exact, 4 * (shape[-1] + 8), size)


@TARGETS
def test_the_form_of_networks_that_normalize_first(target: Target) -> None:
    """s = x + y, n = norm(s), s + f(n): the sum is passed on beside its norm."""
    x, y, w = whole(1, (2, 19, 48)), whole(2, (2, 19, 48)), whole(3, (48, 48))
    gain, shift = whole(4, (48,)), whole(5, (48,))

    def make(b: Any, x: Any, y: Any) -> Any:
        s = added(b, x, y)
        n = layer_norm(b, s, gain, shift)
        return added(b, b.einsum("abk,kn->abn", n, b.constant(w)), s)

    program = program_of(make, x, y)
    assert roots(program) == ["reduction", "contraction"]
    (got,) = executable(program, target)(x, y, order=backwards)
    n, size = normal(x + y, gain, shift)
    magnitude = (abs(n) + size) @ abs(w) + abs(x + y)
    check(got, n @ w + x + y, 4 * (48 + 8) + 48 + 4, magnitude)


NETWORK = """
<ir_version: 10, opset_import: ["": 21]>
network (float[3, 37, 50] x, float[3, 37, 50] y, float[50] g, float[50] t)
    => (float[3, 37, 50] s, float[3, 37, 50] n)
{
    s = Add(x, y)
    n = LayerNormalization(s, g, t)
}
"""


def test_a_network_on_one_thread_and_on_two() -> None:
    shape = (3, 37, 50)
    arrays = [whole(1, shape), whole(2, shape), whole(3, (50,)), whole(4, (50,))]
    given = dict(zip("xygt", arrays, strict=True))
    found: list[bytes] = []
    for threads in (1, 2):
        program = nanoloom.compile(
            onnx.parser.parse_model(NETWORK), threads=threads, cache=shared_cache()
        )
        assert len(program.nests()) == 1
        made = program(given)
        assert (made["s"] == given["x"] + given["y"]).all()
        exact, size = normal(given["x"] + given["y"], given["g"], given["t"])
        check(made["n"], exact, 4 * (50 + 8), size)
        found.append(made["n"].tobytes())
    assert found[0] == found[1]


@TARGETS
@pytest.mark.parametrize("shape", [(41,), (5, 41), (16, 3, 7), (8191,)], ids=str)
def test_a_chain_all_of_whose_steps_are_read(
    shape: tuple[int, ...], target: Target
) -> None:
    x = whole(1, shape)

    def make(b: Any, x: Any) -> Any:
        one = b.elementwise(lambda s: s.maximum(0), x)
        two = b.elementwise(lambda s: s * s, one)
        return [one, two, b.elementwise(lambda s, t: s - t, two, one)]

    one, two, three = one_kernel(make, target, x)
    top = x.clip(0)
    assert (one == top).all() and (two == top**2).all()
    assert (three == top**2 - top).all() and three.any()


@TARGETS
@pytest.mark.parametrize("size", [(9, 7, 5), (18, 13, 33)], ids=str)
def test_a_pool_that_is_passed_on(size: tuple[int, ...], target: Target) -> None:
    """As between dense blocks: sums of windows, and what their first layer reads."""
    h, w, c = size
    x, gain = whole(1, (2, 2 * h, 2 * w, c)), whole(2, (c,))

    def make(b: Any, x: Any) -> Any:
        twos, none = (2, 2), (0, 0)
        window = Window(twos, twos, (1, 1), none, none, (2 * h, 2 * w), (h, w))
        pooled = pool(b, x, window, 0, lambda a, s: a + s)
        made = b.elementwise(lambda s, t: (s * t).maximum(0), pooled, b.constant(gain))
        return [pooled, made]

    pooled, made = one_kernel(make, target, x)
    exact = x.reshape(2, h, 2, w, 2, c).sum((2, 4))
    assert (pooled == exact).all() and (made == (exact * gain).clip(0)).all()
    assert made.any()


@TARGETS
def test_a_mean_and_a_variance(target: Target) -> None:
    x = whole(1, (67, 32))

    def make(b: Any, x: Any) -> Any:
        mean = b.elementwise(lambda s: s * (1 / 32), sums(b, x))
        apart = b.elementwise(lambda s, t: (s - t) * (s - t), x, mean)
        return [mean, b.elementwise(lambda s: s * (1 / 32), sums(b, apart))]

    mean, variance = one_kernel(make, target, x)
    assert (mean == x.mean(1, keepdims=True)).all()  # a power of two: exact
    check(variance, x.astype(np.float64).var(1, keepdims=True), 40)


@TARGETS
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", "int8", "bool"])
def test_elements_of_other_types(dtype: str, target: Target) -> None:
    """A result that is passed on keeps its own type beside one of f32."""
    x = whole(1, (23, 45))

    def make(b: Any, x: Any) -> Any:
        if dtype == "bool":
            s = b.elementwise(lambda s: s > 0, x, dtype=BOOL)
        else:
            s = b.cast(x, dtype_of(dtype))
        return [s, b.elementwise(lambda t, s: s.cast(t.dtype) + t, x, s)]

    s, t = one_kernel(make, target, x)
    wanted = (x > 0) if dtype == "bool" else x.astype(dtype_of(dtype))
    assert s.dtype == wanted.dtype and (s == wanted).all()
    assert (t == wanted.astype(np.float32) + x).all()


# ---- which groups join ---------------------------------------------------------------

X = whole(1, (19, 23))


def rest(make: Make, *inputs: Array) -> list[str]:
    return roots(program_of(make, *(inputs or (X,))))


def doubled(b: Any, x: Any) -> Any:
    return b.elementwise(lambda s: s + s, x)


def test_the_last_stage_writes_all_results() -> None:
    program = program_of(lambda b, x: [(s := doubled(b, x)), doubled(b, s)], X)
    (kernel,) = program.kernels.values()
    assert len(kernel.nest.results) == 2
    last = kernel.nest.last
    assert last is not None and [r.buffer for r in last.reads] == ["point", "point"]
    check_text(
        kernel.text,
        """
    CHECK: linalg.generic {{.*}} ins(%arg0 :
    CHECK: [[MADE:%.*]]:2 = linalg.generic {{.*}} outs(%arg2, %arg1 :
    CHECK: return [[MADE]]#1, [[MADE]]#0
    """,
    )


def test_loops_keep_the_names_that_they_were_given() -> None:
    i, j = axes("i j")
    a, s, t = Buffer("a", (37, 50)), Buffer("s", (37, 50)), Buffer("t")
    s[i, j] = a[i, j] * 2
    t[i, j] = maximum(s[i, j], 0)
    ((_, nest),) = nanoloom.compile(computation(s, t)).nests().items()
    assert [(stage.name, stage.names) for stage in nest.stages] == [
        ("s", ("i", "j")),
        ("t", ("i", "j")),
    ]


def test_results_of_another_shape_are_kernels_of_their_own() -> None:
    def make(b: Any, x: Any) -> Any:
        total = sums(b, x)
        return [total, b.elementwise(lambda s, t: s - t, x, total)]

    assert rest(make) == ["reduction", "elementwise"]


def test_a_reader_of_other_places_is_a_kernel_of_its_own() -> None:
    def make(b: Any, x: Any) -> Any:
        s = doubled(b, x)
        return [s, b.elementwise(lambda s, t: s - t, s, b.transpose(s, [1, 0]))]

    assert rest(make, whole(1, (19, 19))) == ["elementwise", "elementwise"]


def test_squares_of_a_turned_operand_are_not_rows() -> None:
    def make(b: Any, x: Any) -> Any:
        s = b.elementwise(lambda s: s + s, b.transpose(x, [1, 0]))
        return [s, b.elementwise(lambda s: s * s, s)]

    assert rest(make) == ["elementwise", "elementwise"]


def test_a_body_that_reads_any_row() -> None:
    """What is gathered from may lie in another task's rows."""

    rows = np.array([(7 * i) % 19 for i in range(19)])

    def make(b: Any, x: Any) -> Any:
        s = doubled(b, x)
        t = b.elementwise(lambda s: s * s, s)
        return [s, added(b, t, take(b, s, rows, 0))]

    assert len(rest(make)) > 1
    s, got = executable(program_of(make, X), targets()[0])(X)
    assert (s == X + X).all() and (got == s * s + s[rows]).all()


def test_a_reader_of_rows_and_of_a_view_of_them() -> None:
    """The view is there only behind the kernel that makes the rows."""
    model = onnx.parser.parse_model("""
        <ir_version: 10, opset_import: ["" : 20]>
        g (float[11, 5] x) => (float[1, 11, 5] y)
        {
            once = Constant<value = int64 {1}>()
            last, each = Loop<body = b (int64 i, bool c, float[11, 5] s)
                => (bool d, float[11, 5] t, float[11, 5] u)
                { d = Identity(c) t = Add(s, s) u = Identity(t) }>(once, , x)
            y = Sum(each, last, x)
        }
        """)
    got = nanoloom.compile(model, threads=1)({"x": X[:11, :5]})["y"]
    assert (got == 5 * X[None, :11, :5]).all() and got.any()


def test_what_waits_for_a_third_kernel() -> None:
    """The norm reads sums of columns of what it would be joined with."""

    def make(b: Any, x: Any) -> Any:
        s = doubled(b, x)
        columns = sums(b, s, 0)
        return [s, b.elementwise(lambda s, t: s - t, s, columns)]

    assert rest(make) == ["elementwise", "reduction", "elementwise"]
    s, got = executable(program_of(make, X), targets()[0])(X)
    assert (s == X + X).all() and (got == s - s.sum(0, keepdims=True)).all()


def test_a_kernel_that_is_joined_stands_in_front_of_its_readers() -> None:
    """The product reads the sum, and comes first in the program."""
    w = whole(2, (23, 23))

    def make(b: Any, x: Any) -> Any:
        s = doubled(b, x)
        other = b.einsum("mk,kn->mn", s, b.constant(w))
        n = b.elementwise(lambda s, t: s - t, s, sums(b, s))
        return [other, n]

    program = program_of(make, X)
    assert roots(program) == ["reduction", "contraction"]
    (other, n), s = executable(program, targets()[0])(X), X + X
    assert (other == s @ w).all() and (n == s - s.sum(1, keepdims=True)).all()


@pytest.mark.parametrize(
    ("rows", "columns", "count"),
    [
        (0, 5000, 1),
        (-1, 5000, 2),  # too few tasks
        (0, ANY_CPU.caches.resident // 4, 1),
        (0, ANY_CPU.caches.resident // 4 + 1, 2),  # leaves the cache
    ],
)
def test_rows_that_are_shared(rows: int, columns: int, count: int) -> None:
    def make(b: Any, x: Any) -> Any:
        s = doubled(b, x)
        return [s, b.elementwise(lambda s, t: s - t, s, sums(b, s))]

    assert len(rest(make, whole(1, (FEWEST_TASKS + rows, columns)))) == count


@TARGETS
def test_a_result_that_is_a_part_of_a_larger_one(target: Target) -> None:
    def make(b: Any, x: Any) -> Any:
        s = doubled(b, x)
        n = b.elementwise(lambda s, t: s - t, s, sums(b, s))
        return [b.concat([n, x], 1), b.pad(s, [1, 2], [0, 3], 4), s]

    joined, padded, s = executable(program_of(make, X), target)(X, order=backwards)
    two = X + X
    assert (s == two).all()
    assert (joined == np.hstack([two - two.sum(1, keepdims=True), X])).all()
    assert (padded == np.pad(two, [(1, 0), (2, 3)], constant_values=4)).all()


@pytest.mark.parametrize("seed", range(24))
def test_groups_come_in_an_order_in_which_they_can_run(seed: int) -> None:
    """Every operation is in one group, behind all that it reads."""
    arrays = inputs_of(seed)
    make, _ = grown(seed, arrays, 20)
    with mlir.context():
        lowered = build(make, *arrays)
        block = lowered.module.body.operations[0].operation.regions[0].blocks[0]
        groups = fusion.fuse_multiple_outputs(block, form_groups(block), ANY_CPU.caches)
        place = {op.operation: i for i, g in enumerate(groups) for op in g.ops}
        assert len(place) == sum(len(g.ops) for g in groups)
        for op, number in [(op.opview, n) for op, n in place.items()]:
            for value in read_by(op) if "generic" in op.operation.name else ():
                other = place.get(value.owner, number)
                assert other <= number
                assert other == number or value in group_results(groups[other])
