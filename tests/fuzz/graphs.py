"""Random graphs, compiled and run beside the references."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import helper

import nanoloom
from nanoloom.cache import Cache
from nanoloom.errors import Error, InternalError
from nanoloom.inspect.differences import Difference, compare
from tests.fuzz.cases import Bench, Finding, Outcome
from tests.fuzz.oracle import (
    IR_VERSION,
    Array,
    Arrays,
    Rejected,
    Step,
    Trial,
    opsets,
    single,
)
from tests.fuzz.recipes.table import RECIPES, is_known
from tests.fuzz.sketch import Sketch
from tests.guarded import Side, run_guarded

OPSETS = (22, 21, 20, 18, 17, 13, 23, 24, 25, 26, 28, 11, 12, 19, 10, 9)
LAST = len(OPSETS) - 1
OLD = (7, 8, 9, 10, 11, 12)
TRIALS, MORE_TRIALS = 5, 60
ATTEMPTS = 12  # at a node that some reference runs


@dataclass(frozen=True)
class Drawn:
    """A model, the arrays it is called with and what it is to give."""

    model: onnx.ModelProto
    feeds: Arrays
    wanted: Arrays


def sketch(
    seed: int, most: int = 6, *, old: bool = False, even: bool = False
) -> Sketch:
    """The graph of a seed.  old: of one of the operator sets 7 to 12.

    even: of one or two nodes, of all element types.
    """
    rng = np.random.default_rng([8 if old else 14 if even else 1, seed])
    drawn = int(rng.geometric(0.15)) - 1
    s = Sketch(rng, OLD[drawn % len(OLD)] if old else OPSETS[min(drawn, LAST)])
    s.even = even
    wanted = s.integer(1, min(most, 2) if even else most)
    names = [name for name in RECIPES if is_known(name, s.opset)]
    for _ in range(wanted):
        for _ in range(ATTEMPTS):
            if draw_node(s, s.pick(names)):
                break
    return s


def draw_node(s: Sketch, op: str) -> bool:
    """One more node; nothing changes where that fails."""
    before = dict(s.values), dict(s.given), set(s.parameters), list(s.steps)
    try:
        RECIPES[op](s, op)
    except Rejected:
        s.values, s.given, s.parameters, s.steps = before
        return False
    return True


def outputs_of(s: Sketch) -> list[str]:
    """What nobody reads, some of the rest, and now and then an input."""
    used = {name for step in s.steps for name in step.inputs}
    made = [name for step in s.steps for name in step.node.output if name]
    chosen = [x for x in made if x not in used or s.chance(0.15)]
    inputs = [x for x in s.given if x in used and x not in s.parameters]
    if inputs and s.chance(0.06):
        chosen.append(s.pick(inputs))
    return chosen


def model_of(
    s: Sketch, outputs: Sequence[str], constants: set[str], named: bool
) -> onnx.ModelProto:
    """The graph with some of its inputs as initializers.

    named: whether dimensions are names instead of numbers.
    """
    used = {name for step in s.steps for name in step.inputs} | set(outputs)
    inputs, held = [], []
    for name, array in s.given.items():
        if name not in used:
            continue
        if name in constants:
            held.append(onnx.numpy_helper.from_array(array, name))
            continue
        kind = helper.np_dtype_to_tensor_dtype(array.dtype)
        dims = [f"{name}_{i}" if named else d for i, d in enumerate(array.shape)]
        inputs.append(helper.make_tensor_value_info(name, kind, dims))
    graph = helper.make_graph(
        [step.node for step in s.steps],
        "fuzz",
        inputs,
        [output_info(name, s.values[name]) for name in outputs],
        held,
    )
    nodes = [step.node for step in s.steps]
    return helper.make_model(
        graph, opset_imports=opsets(s.opset, nodes), ir_version=IR_VERSION
    )


def output_info(name: str, array: Array) -> onnx.ValueInfoProto:
    """Its type and rank; the sizes are for the compiler to find."""
    kind = helper.np_dtype_to_tensor_dtype(array.dtype)
    return helper.make_tensor_value_info(name, kind, [None] * array.ndim)


def drawn(s: Sketch, outputs: Sequence[str], constants: set[str]) -> Drawn:
    model = model_of(s, outputs, constants, s.chance(0.2))
    names = [x.name for x in model.graph.input]
    wanted = {name: s.values[name] for name in outputs}
    return Drawn(model, {name: s.values[name] for name in names}, wanted)


def splits(s: Sketch) -> list[set[str]]:
    """Which inputs are constants, in the two models of a graph."""
    some = {x for x in s.given if x in s.parameters or s.chance(0.25)}
    other = s.pick([set(), set(s.given), set(s.parameters)])
    return [some] if some == other else [some, other]


def check_graph(
    seed: int, bench: Bench, *, old: bool = False, even: bool = False
) -> Outcome:
    """Compile the graph of a seed in two ways, run it and compare."""
    bench.at("reference")
    s = sketch(seed, old=old, even=even)
    if not s.steps:
        return Outcome("empty")
    outputs = outputs_of(s)
    operators = [step.node.op_type for step in s.steps]
    refused = ""
    for number, constants in enumerate(splits(s)):
        case = drawn(s, outputs, constants)
        bench.keep(f"{number}", case.model, case.feeds)
        try:
            found = run_all_ways(case, bench, s)
        except InternalError:
            raise
        except Error as error:
            refused = f"{type(error).__name__}: {error}"
            continue
        if found:
            return Outcome("finding", found, operators)
    if refused:
        return Outcome("refused", Finding("refused", refused), operators)
    return Outcome("passed", None, operators)


def run_all_ways(case: Drawn, bench: Bench, s: Sketch) -> Finding | None:
    """With one thread and two; twice; arrays at either end of their pages."""
    content = case.model.SerializeToString()
    first: Mapping[str, Array] | None = None
    for threads, side in ((1, Side.END), (2, Side.START), (2, Side.END)):
        bench.at(f"compile, {threads} threads")
        program = nanoloom.compile(content, threads=threads, cache=bench.cache)
        bench.at(f"run, {threads} threads, {side.value}")
        try:
            made = run_guarded(program, program_inputs(program, case.feeds), side)
        except AssertionError as error:
            return Finding("memory", str(error))
        if first is None:
            first = {name: array.copy() for name, array in made.items()}
            continue
        for name, array in made.items():
            if array.tobytes() != first[name].tobytes():
                return Finding("difference", f"{name}: {threads} threads, other bits")
    assert first is not None
    bench.at("comparison")
    return differing(first, case.wanted, s)


def program_inputs(program: nanoloom.Program, feeds: Arrays) -> dict[str, Array]:
    from nanoloom.interface.check_inputs import check_inputs

    return check_inputs(program.inputs, feeds)


def differing(made: Arrays, wanted: Arrays, s: Sketch) -> Finding | None:
    """What rounding does not explain."""
    for name, array in wanted.items():
        if name in s.random:
            if made[name].shape != array.shape or made[name].dtype != array.dtype:
                return Finding("difference", f"{name}: another shape or type")
            continue
        if made[name].dtype == array.dtype and np.array_equal(made[name], array):
            continue
        found: Difference | None = None
        for count in (TRIALS, MORE_TRIALS):
            others = [Trial(s.steps).run(s.given, i) for i in range(count)]
            trials = [t[name] for t in others if t[name].shape == array.shape]
            found = compare(name, *without_odd(made[name], array, trials))
            if found.passed:
                break
        if found is not None and not found.passed:
            return Finding("difference", described(found, s))
    return None


def without_odd(
    got: Array, wanted: Array, trials: Sequence[Array]
) -> tuple[Array, Array, Sequence[Array]]:
    """Without the elements that rounding makes infinite or NaN in some trial."""
    if got.shape != wanted.shape or got.dtype != wanted.dtype:
        return got, wanted, trials
    finite = [np.isfinite(a.astype(np.float64)) for a in (wanted, *trials)]
    same = np.all([f == finite[0] for f in finite], axis=0)
    if same.all():
        return got, wanted, trials
    return got[same], wanted[same], [t[same] for t in trials]


def described(found: Difference, s: Sketch) -> str:
    sources = [f"{step.node.op_type} ({step.source})" for step in s.steps]
    facts = f"largest {found.absolute:.3g}, bound {found.bound:.3g}"
    text = f"{found.name}: {found.reason}; {facts}; opset {s.opset}: {sources}"
    return "\n".join([*blamed(s), text])


def blamed(s: Sketch) -> list[str]:
    """The nodes that give something else alone, too, and how."""
    found: list[str] = []
    for step in s.steps:
        feeds = {name: s.values[name] for name in step.inputs}
        for constants in ({}, feeds):
            model = single(step.node, s.opset, feeds, constants)
            how = "constants" if constants else "inputs"
            try:
                given = {} if constants else feeds
                made = nanoloom.compile(model, threads=1, cache=Cache.temporary())(
                    given
                )
            except Error as error:
                found.append(f"{step.node.name}, of {how}: {error}")
                continue
            other = compared(made, step, feeds, s)
            if other:
                name = f"{step.node.name} ({step.node.op_type}, {step.source})"
                found.append(f"{name}, of {how}: {other}")
    return found


def compared(made: Arrays, step: Step, feeds: Arrays, s: Sketch) -> str:
    """What a node alone gives that rounding does not explain; "" for nothing."""
    others = [Trial([step]).run(feeds, seed) for seed in range(TRIALS)]
    for name, array in made.items():
        if name in s.random:
            continue
        trials = [x[name] for x in others]
        found = compare(name, *without_odd(array, s.values[name], trials))
        if not found.passed:
            types = [f"{x.dtype.name} {list(x.shape)}" for x in feeds.values()]
            size = f"{found.absolute:.3g} > {found.bound:.3g}"
            return f"{name}: {found.reason} ({size}); inputs {types}"
    return ""
