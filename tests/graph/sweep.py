"""Every operator that folds, as ONNX's reference and as the lowered code compute it.

python -m tests.graph.sweep SEED NUMBER    that many random cases of each operator
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import onnx
import onnx_ir as ir

from nanoloom.errors import Error, ModelError
from nanoloom.graph.evaluate import Evaluation
from nanoloom.graph.folding import EXACT, ROUNDED, agrees, is_defined
from nanoloom.graph.index_checks import may_be_out_of_range
from nanoloom.graph.inference import infer
from nanoloom.graph.own_evaluation import RULES
from nanoloom.inspect import rounding
from tests.conformance.cases import as_array, cases
from tests.conformance.scope import left_out
from tests.fuzz.graphs import draw_node
from tests.fuzz.oracle import Step, described, opened, single
from tests.fuzz.recipes.table import RECIPES, is_known
from tests.fuzz.sketch import Sketch
from tests.linalg.harness import evaluate

OPSETS = (22, 21, 20, 18, 17, 13, 23, 24, 12, 11, 10, 9, 8, 7)
OFF_ONE = {"Celu", "Elu", "Gelu", "HardSwish", "Selu", "Softplus"}
DRAWS = 6  # of one case, until a node comes out
Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class Case:
    """A model of one node and its inputs."""

    name: str
    model: onnx.ModelProto
    feeds: Arrays

    @property
    def operator(self) -> str:
        return self.model.graph.node[0].op_type


def node_tests() -> Iterator[Case]:
    """ONNX's own, of operators that fold."""
    for name, case in cases().items():
        model = case.model
        assert model is not None and case.data_sets is not None
        node = model.graph.node[0]
        alone = len(model.graph.node) == 1 and not model.graph.initializer
        folds = node.op_type in EXACT | ROUNDED.keys() | RULES.keys()
        if not alone or not folds or node.domain or left_out(model):
            continue
        for inputs, _ in case.data_sets:
            given = zip(model.graph.input, inputs, strict=False)
            yield Case(name, model, {x.name: as_array(a) for x, a in given})


def drawn(operator: str, seed: int) -> Case | None:
    """A random case with odd shapes, types and attributes; None if none was found."""
    rng = np.random.default_rng([7, seed, zlib.crc32(operator.encode())])
    for _ in range(DRAWS):
        s = Sketch(rng, int(rng.choice(OPSETS)))
        if is_known(operator, s.opset) and draw_node(s, operator) and s.steps:
            step = s.steps[-1]
            feeds = {name: s.values[name] for name in step.inputs}
            model = single(step.node, s.opset, feeds)
            return Case(f"{operator} {seed}", model, feeds)
    return None


def folded(case: Case) -> list[np.ndarray] | None:
    """What a compiler folds the node to; None where it leaves it alone."""
    model = ir.from_proto(case.model)
    node = model.graph[0]
    for value in model.graph.inputs:
        array = case.feeds[value.name or ""]
        value.const_value = ir.Tensor(array)
        value.type = ir.TensorType(ir.DataType.from_numpy(array.dtype))
        value.shape = ir.Shape(array.shape)
    opsets = dict(model.opset_imports)
    with suppress(ModelError):  # stricter than evaluation: the compiler folds before it
        infer(node, opsets)
    if (
        not agrees(node, opsets[""])
        or not is_defined(node)
        or may_be_out_of_range(node)
    ):
        return None
    evaluation = Evaluation.of(node, opsets)
    made = None if evaluation is None else evaluation.run()
    return None if made is None else [a for a in made if a is not None]


def difference(case: Case) -> str:
    """How the folded results differ from the computed ones, or ""."""
    wanted = folded(case)
    if wanted is None:
        return ""
    try:
        made = evaluate(case.model, case.feeds)
    except Error:
        return ""  # no program runs it, whatever is constant
    for one, other in zip(wanted, made, strict=True):
        if one.dtype != other.dtype or one.shape != other.shape:
            return f"{one.dtype}{list(one.shape)}, {other.dtype}{list(other.shape)}"
    if case.operator in EXACT:
        return "" if all(map(same_numbers, wanted, made)) else "other numbers"
    return "" if within(case, wanted, made) else "beyond the roundings"


def same_numbers(one: np.ndarray, other: np.ndarray) -> bool:
    """NaNs are all one, and so are zeros."""
    if one.dtype.kind in "iub":
        return bool((one == other).all())
    return bool(((one == other) | (np.isnan(one) & np.isnan(other))).all())


def within(case: Case, wanted: list[np.ndarray], made: list[np.ndarray]) -> bool:
    """Both within a bound of the operator's error around the same number.

    Sums in any order: as many roundings as there are terms.
    """
    node, opset = case.model.graph.node[0], case.model.opset_import[0].version
    step = Step(node, opset, "reference", opened("reference", node, opset, case.feeds))
    names = [name for name in node.output if name]
    results = dict(zip(names, wanted, strict=True))
    for name, one, other in zip(names, wanted, made, strict=True):
        kind = ir.DataType.from_numpy(one.dtype)
        if kind not in rounding.ROUNDING:
            if not same_numbers(one, other):
                return False
            continue
        terms = rounding.depth(described(node, {**case.feeds, **results}))
        error = 2 * (step.error(case.feeds, results, one) + terms)
        error *= rounding.ROUNDING[kind]
        size = np.nan_to_num(step.magnitude(case.feeds, name, one))
        if case.operator in OFF_ONE:
            size = size + 1  # the code takes one from an exponential or error function
        if not np.allclose(other, one, 0, error * size + tiny(one), equal_nan=True):
            return False
    return True


def tiny(array: np.ndarray) -> float:
    """Vector math gives 0 for what is smaller than a normal number."""
    return float(np.finfo(array.dtype).tiny)


def main(seed: int, number: int) -> None:
    """Print what differs."""
    wrong = 0
    for operator in sorted(RECIPES.keys() & (EXACT | ROUNDED.keys() | RULES.keys())):
        for case in (drawn(operator, seed + i) for i in range(number)):
            reason = "" if case is None else difference(case)
            if case is not None and reason:
                wrong += 1
                kinds = [str(a.dtype) for a in case.feeds.values()]
                print(f"{case.name}: {reason} {kinds}", flush=True)
    print(f"{wrong} differ")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]))
