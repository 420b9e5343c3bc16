"""Damaged models and arrays: refused in one sentence, or right."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx

import nanoloom
from nanoloom.cli.check import best
from nanoloom.errors import Error, InternalError
from nanoloom.frontend.inputs import random_inputs
from nanoloom.frontend.onnx import load
from nanoloom.inspect.differences import compare
from nanoloom.inspect.references import disturbed, open_reference
from nanoloom.inspect.rounding import random_node
from tests.frontend import models
from tests.fuzz import graphs
from tests.fuzz.cases import Bench, Finding, Outcome
from tests.fuzz.faults import check_cache, check_library
from tests.fuzz.mangled import mangled
from tests.fuzz.mutations import Damage
from tests.fuzz.oracle import Array, Arrays
from tests.fuzz.sketch import is_tame
from tests.fuzz.wrong import distrusted
from tests.guarded import Side, run_guarded

MEMORY = 10**8  # bytes that the inputs of a damaged model may take


def whole_models() -> tuple[onnx.ModelProto, ...]:
    return models.linear(3, 4), models.branches(), models.calls()


def base(rng: np.random.Generator, seed: int) -> tuple[bytes, Arrays]:
    """A model that is whole, and its inputs."""
    if rng.random() < 0.15:
        every = whole_models()
        return every[int(rng.integers(len(every)))].SerializeToString(), {}
    s = graphs.sketch(seed, most=3)
    if not s.steps:
        return whole_models()[0].SerializeToString(), {}
    constants = {x for x in s.given if x in s.parameters or s.chance(0.3)}
    made = graphs.drawn(s, graphs.outputs_of(s), constants)
    return made.model.SerializeToString(), made.feeds


def check_damage(seed: int, bench: Bench) -> Outcome:
    """A case of a seed: a damaged model, damaged arrays or a damaged cache."""
    rng = np.random.default_rng([2, seed])
    bench.at("reference")
    content, feeds = base(rng, seed)
    way = rng.random() if feeds else 1.0
    if way < 0.2:
        return check_arrays(content, feeds, rng, bench)
    if way < 0.26:
        return check_cache(content, feeds, rng, bench)
    if way < 0.30:
        return check_library(content, feeds, rng, bench)
    return check_model(Damage(rng).damaged(content), feeds, bench)


# ---- models


def check_model(content: bytes, feeds: Arrays, bench: Bench) -> Outcome:
    """Refused, or what a reference gives; `check` and `compile` agree about it."""
    path = bench.keep("damaged", content, {})
    bench.at("check")
    doubts = ""
    try:
        problems = best(path, load(path), {}).problems
        doubts = str(problems[0]) if problems else ""
    except Error as error:
        doubts = one_line(error)
    bench.at("compile")
    program = nanoloom.compile(path, threads=2, cache=bench.cache)
    bench.at("inputs")
    arrays = arrays_for(program, feeds)
    bench.keep("damaged", content, arrays)
    bench.at("run")
    try:
        made = run_guarded(program, arrays, Side.END)
    except AssertionError as error:
        return Outcome("finding", Finding("memory", str(error)))
    if doubts:
        return Outcome("doubted", Finding("refused", f"check says: {doubts}"))
    bench.at("reference")
    return judged(program, path, arrays, made, bench)


def one_line(error: Error) -> str:
    text = str(error)
    assert "\n" not in text, f"an error of several lines: {text}"
    return text


def arrays_for(program: nanoloom.Program, feeds: Arrays) -> dict[str, Array]:
    """The arrays of the whole model where they still fit, else random ones."""
    from nanoloom.frontend.inputs import InputSpec
    from nanoloom.interface.check_inputs import check_inputs

    given = {x.name: feeds.get(x.name) for x in program.inputs}
    try:
        return check_inputs(program.inputs, given)
    except Error:
        sizes = [
            InputSpec(x.name, tuple(d if isinstance(d, int) else 3 for d in x.shape),
                      x.dtype) for x in program.inputs
        ]  # fmt: skip
        return random_inputs(sizes, memory=MEMORY)


def judged(
    program: nanoloom.Program,
    path: Path,
    arrays: Arrays,
    made: Arrays,
    bench: Bench,
) -> Outcome:
    """Right if one of the references says the same, up to rounding."""
    model = onnx.ModelProto.FromString(path.read_bytes())
    if random_node(program.source.model()) is not None:
        return Outcome("unjudged")
    names = [x.name for x in model.graph.output]  # one may be listed twice
    said: list[str] = []
    for kind in ("ort", "reference"):
        try:
            every = open_reference(kind, path, 1)(arrays)
        except Error:
            continue
        wanted = list(dict(zip(names, every, strict=True)).values())
        pairs = list(zip(made.values(), wanted, strict=True))
        if all(close(a, b) for a, b in pairs):
            return Outcome("passed")
        if distrusted(kind, model):  # it agrees, or it says nothing
            continue
        odd = not all(map(is_tame, (*wanted, *made.values())))
        if odd or any(is_narrow(x) for x in wanted):
            return Outcome("unjudged")  # bounds are for models with sense
        reason = beyond_rounding(kind, program, arrays, made, wanted, bench)
        if not reason:
            return Outcome("passed")
        said.append(f"{kind}: {reason}")
    if not said:
        return Outcome("unjudged")
    return Outcome("finding", Finding("difference", "; ".join(said)))


def beyond_rounding(
    kind: str,
    program: nanoloom.Program,
    arrays: Arrays,
    made: Arrays,
    wanted: Sequence[Array],
    bench: Bench,
) -> str:
    """What is different, "" for nothing, as far as that can be told."""
    folder = bench.case / "references"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    shapes = {name: array.shape for name, array in arrays.items()}
    try:
        bound = program.source.bound(shapes, {})
        others = disturbed(kind, bound, folder, 1, arrays)
    except Error:
        return ""
    return unexplained(made, wanted, others)


def close(one: Array, other: Array) -> bool:
    """Equal up to what is rounding in any model but one that makes no sense."""
    if one.dtype != other.dtype or one.shape != other.shape:
        return False
    if one.dtype.kind in "iub":
        return same(one, other)
    wide = other.astype(np.float64)
    size = np.abs(wide).max(initial=0)
    return bool((np.abs(one.astype(np.float64) - wide) <= 1e-5 * size).all())


def is_narrow(array: Array) -> bool:
    return array.dtype.itemsize == 2 and array.dtype.kind not in "iu"


def same(one: Array, other: Array) -> bool:
    if one.dtype != other.dtype or one.shape != other.shape:
        return False
    return one.tobytes() == other.tobytes() or np.array_equal(one, other)


def unexplained(
    made: Arrays, wanted: Sequence[Array], others: Sequence[Sequence[Array]]
) -> str:
    for index, (name, array) in enumerate(made.items()):
        found = compare(name, array, wanted[index], [x[index] for x in others])
        if not found.passed:
            return f"{name} {found.reason} ({found.absolute:.3g} > {found.bound:.3g})"
    return ""


# ---- arrays


def check_arrays(
    content: bytes, feeds: Arrays, rng: np.random.Generator, bench: Bench
) -> Outcome:
    """Arrays that do not fit are refused; those that do give what they should."""
    bench.keep("whole", content, {})
    bench.at("compile")
    program = nanoloom.compile(content, threads=2, cache=bench.cache)
    bench.at("whole arrays")
    first = program(feeds)
    for _ in range(4):
        way, given, fits = mangled(dict(feeds), rng)
        bench.at(f"arrays: {way}")
        try:
            made = program(given)
        except InternalError:
            raise
        except Error as error:
            one_line(error)
            if fits:
                return wrong(f"{way}: refused: {error}")
            continue
        if fits is False:
            return wrong(f"{way}: not refused")
        if fits and any(not same(made[name], first[name]) for name in first):
            return wrong(f"{way}: another result")
    return Outcome("passed")


def wrong(text: str) -> Outcome:
    return Outcome("finding", Finding("difference", f"arrays {text}"))
