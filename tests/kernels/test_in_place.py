"""Updates in the memory of what they change: outputs that lie in their inputs."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx.parser import parse_model
from onnx.reference import ReferenceEvaluator

import nanoloom
from nanoloom.api.program import Program
from nanoloom.cache import Cache
from nanoloom.compiler import partition_model
from nanoloom.errors import InputError
from nanoloom.kernels.program import Program as Cut
from nanoloom.memory.calls import Place, Storage
from nanoloom.model.source import source_of
from nanoloom.options import CompileOptions
from nanoloom.report import Report
from nanoloom.target.host import host

Array = np.ndarray
NAMES = ("a", "b", "c")
SHAPE = (3, 8, 5)


def program_of(
    model: onnx.ModelProto, pairs: dict[str, str], cache: Path, threads: int = 1
) -> Program:
    options, kept = CompileOptions(host(), in_place=tuple(pairs.items())), Cache(cache)
    source = source_of(model, kept)
    return Program(source, options, threads=threads, dims={}, cache=kept)


def called_in_place(program: Program, feeds: dict[str, Array]) -> dict[str, Array]:
    """The outputs of a call that gives one place for an input and its output."""
    variant = program.variant(program.checked(feeds))
    library = variant.library
    given = [feeds[x.name].copy() for x in library.inputs]
    made = library.new_outputs()
    for number, output in library.in_place:
        made[output] = given[number]
    variant.instance.run_at([x.ctypes.data for x in (*given, *made)])
    return {x.name: y for x, y in zip(library.outputs, made, strict=True)}


def partitioned(program: Program) -> Cut:
    shapes = program.static_shapes()
    model = program.source.entry(shapes, {})
    return partition_model(model, program.options, Report())


def model_of(lines: list[str], outputs: list[str]) -> str:
    kind = f"float[{', '.join(map(str, SHAPE))}]"
    inputs = ", ".join(f"{kind} {name}" for name in NAMES)
    made = ", ".join(f"{kind} {name}" for name in outputs)
    body = "\n".join(lines)
    return f"""<ir_version: 10, opset_import: ["" : 20]>
g ({inputs}, float[3, 2, 5] new, int64[2, 1] at, int64[2] span) => ({made}) {{
{body}
}}"""


def update(draw: random.Random, old: str, made: str) -> list[str]:
    """Rows put at places: along the middle axis, of the first one, or once."""
    kind = draw.choice(["rows", "elements", "added"])
    if kind == "elements":
        return [
            f"{made}_e = Expand(span, sides)",
            f"{made}_i = Unsqueeze({made}_e, last)",
            f"{made}_j = Expand({made}_i, whole)",
            f"{made} = ScatterElements<axis = 1>({old}, {made}_j, new)",
        ]
    how = '<reduction = "add">' if kind == "added" else ""
    return [
        f"{made}_t = Transpose<perm = [1, 0, 2]>({old})",
        f"{made}_n = Transpose<perm = [1, 0, 2]>(new)",
        f"{made}_s = ScatterND{how}({made}_t, at, {made}_n)",
        f"{made} = Transpose<perm = [1, 0, 2]>({made}_s)",
    ]


def drawn(seed: int) -> tuple[str, dict[str, str]]:
    """A model that updates, reads and exchanges its inputs, and its pairs."""
    draw, values = random.Random(seed), list[str](NAMES)
    lines = [
        "sides = Constant<value_ints = [3, 2]>()",
        "last = Constant<value_ints = [2]>()",
        "whole = Constant<value_ints = [3, 2, 5]>()",
    ]
    for step in range(6):
        made, one = f"v{step}", draw.choice(values)
        if draw.random() < 0.6:
            lines += update(draw, one, made)
        else:
            other = draw.choice(values)
            lines.append(f"{made} = {draw.choice(['Add', 'Sub'])}({one}, {other})")
        values.append(made)
    outputs, chosen = [], draw.sample(values, 3) + draw.sample(values[3:], 2)
    for number, value in enumerate(chosen):
        lines.append(f"y{number} = Identity({value})")
        outputs.append(f"y{number}")
    pairs = dict[str, str](zip(draw.sample(NAMES, 3), outputs, strict=False))
    return model_of(lines, outputs), pairs


def feeds_of(seed: int) -> dict[str, Array]:
    r = np.random.default_rng(seed)
    places = r.choice(8, 2, replace=False)
    return {
        **{name: r.integers(-99, 99, SHAPE).astype(np.float32) for name in NAMES},
        "new": r.integers(-99, 99, (3, 2, 5)).astype(np.float32),
        "at": places[:, None], "span": places - 8 * r.integers(0, 2, 2),
    }  # fmt: skip


@pytest.mark.parametrize("seed", range(8))
def test_drawn_models_read_what_they_are_to_read(seed: int, tmp_path: Path) -> None:
    text, pairs = drawn(seed)
    model, feeds = parse_model(text), feeds_of(seed)
    program = program_of(model, pairs, tmp_path, threads=1 + seed % 2)
    names = [x.name for x in model.graph.output]
    wanted = dict(zip(names, ReferenceEvaluator(model).run(None, feeds), strict=True))
    kept = {name: x.copy() for name, x in feeds.items()}
    for made in (called_in_place(program, feeds), program(feeds)):
        for name, array in wanted.items():
            np.testing.assert_array_equal(made[name], array, err_msg=name)
    for name, array in kept.items():  # who gives arrays keeps them
        np.testing.assert_array_equal(feeds[name], array, err_msg=name)


def cache_of(reads_old_behind: bool = False) -> onnx.ModelProto:
    """Rows put into a cache, which is read then; the old one too, if so."""
    lines = [
        "t = Transpose<perm = [1, 0, 2]>(a)", "n = Transpose<perm = [1, 0, 2]>(new)",
        "s = ScatterND(t, at, n)", "put = Transpose<perm = [1, 0, 2]>(s)",
        f"y1 = Add(put, {'a' if reads_old_behind else 'b'})", "y0 = Identity(put)",
    ]  # fmt: skip
    return parse_model(model_of(lines, ["y0", "y1"]))


@pytest.mark.parametrize("reads_old_behind", [False, True])
def test_a_cache_is_copied_only_where_the_old_one_is_read(
    reads_old_behind: bool, tmp_path: Path
) -> None:
    program = program_of(cache_of(reads_old_behind), {"a": "y0"}, tmp_path)
    cut = partitioned(program)
    size = np.zeros(SHAPE, np.float32).nbytes
    reads_cache = [
        call for call in cut.calls
        if Place(Storage.INPUT, 0) in call.arguments
        and Place(Storage.OUTPUT, 0) not in call.arguments
    ]  # fmt: skip
    assert (size in cut.buffers) == bool(reads_cache) == reads_old_behind


def test_an_index_out_of_range_writes_nothing(tmp_path: Path) -> None:
    program, feeds = program_of(cache_of(), {"a": "y0"}, tmp_path), feeds_of(0)
    feeds["at"] = np.array([[0], [8]])
    variant = program.variant(program.checked(feeds))
    given = [feeds[x.name] for x in variant.library.inputs]
    made, old = variant.library.new_outputs(), feeds["a"].copy()
    made[0] = feeds["a"]
    with pytest.raises(InputError, match="index 8"):
        variant.instance.run_at([x.ctypes.data for x in (*given, *made)])
    np.testing.assert_array_equal(feeds["a"], old)
    with pytest.raises(InputError, match="index 8"):
        program(feeds)


def test_updates_one_after_the_other_are_in_one_buffer(tmp_path: Path) -> None:
    lines = ["d = Add(a, b)"]
    for step in range(3):
        old, made = ("d" if not step else f"s{step - 1}"), f"s{step}"
        lines += [
            f"t{step} = Transpose<perm = [1, 0, 2]>({old})",
            f"n{step} = Transpose<perm = [1, 0, 2]>(new)",
            f"p{step} = ScatterND(t{step}, at, n{step})",
            f"{made} = Transpose<perm = [1, 0, 2]>(p{step})",
        ]
    model = parse_model(model_of([*lines, "y0 = Identity(s2)"], ["y0"]))
    cut = partitioned(program_of(model, {}, tmp_path))
    assert np.zeros(SHAPE, np.float32).nbytes not in cut.buffers


@pytest.mark.parametrize(
    ("pairs", "said"),
    [
        ({"a": "nothing"}, "nothing no output"),
        ({"a": "y0", "b": "y0"}, "in two pairs"),
        ({"new": "y0"}, r"float32\[3, 8, 5\], and new is not"),
    ],
)
def test_pairs_that_cannot_be(pairs: dict[str, str], said: str, tmp_path: Path) -> None:
    program = program_of(cache_of(), pairs, tmp_path)
    with pytest.raises(InputError, match=said):
        partitioned(program)


def test_a_cache_of_a_model_is_changed_where_it_is(tmp_path: Path) -> None:
    """One array for a past and its present: nothing else of it is written."""
    model = parse_model("""<ir_version: 10, opset_import: ["" : 20]>
    step (float[6,4] past, int64[1,1] at, float[1,4] row)
      => (float[6,4] present, float[6] sums) <int64[1] axis = {1}> {
      present = ScatterND(past, at, row)
      sums = ReduceSum<keepdims = 0>(present, axis)
    }""")
    pairs = {"past": "present"}
    program = nanoloom.compile(model, in_place=pairs, threads=1, cache=tmp_path)
    wanted = np.arange(24, dtype=np.float32).reshape(6, 4)
    past = wanted.copy()
    for place in (3, 0, 5):
        row = np.full((1, 4), place + 0.5, np.float32)
        feeds = {"past": past, "at": np.array([[place]]), "row": row}
        before, made = past.copy(), program(feeds)
        assert np.array_equal(past, before)  # a new array, where none is given
        wanted[place] = row
        assert np.array_equal(made["present"], wanted)
        made = program.run(feeds, into={"present": past})
        assert made["present"] is past and np.array_equal(past, wanted)
        assert np.array_equal(made["sums"], wanted.sum(1))
    with pytest.raises(InputError, match="shares memory with input past"):
        program.run(feeds, into={"present": past[:]})
    plain = nanoloom.compile(model, threads=1, cache=tmp_path)
    with pytest.raises(InputError, match="shares memory with input past"):
        plain.run(feeds, into={"present": past})
    with pytest.raises(InputError, match="nope no output"):
        nanoloom.compile(model, in_place={"past": "nope"}, threads=1, cache=tmp_path)
