"""Node tests of ONNX through the whole pipeline, or refused with a sentence."""

from __future__ import annotations

import numpy as np
import pytest

from nanoloom.errors import Error, InternalError
from tests.conformance.cases import as_array, cases, difference, is_random, run
from tests.conformance.pipeline import Pipeline
from tests.conformance.scope import left_out
from tests.conformance.unsupported import unsupported

LEAST_SHARE = 0.95
UPDATE = "python -m tests.conformance.update"


def kind(name: str) -> tuple[str, ...]:
    """The operator, whether its function's body stands for it, and what comes of it."""
    base, expanded, _ = name.partition("_expanded")
    nodes = cases()[base if base in cases() else name].model.graph.node
    operators = sorted({f"{node.domain}.{node.op_type}" for node in nodes})
    return (*operators, expanded, unsupported().get(name, ""))


@pytest.mark.drawn(one_in=6, kind=kind)
@pytest.mark.parametrize("name", cases())
def test_node(name: str, pipeline: Pipeline) -> None:
    reason = unsupported().get(name)
    if reason is None:
        assert run(cases()[name], pipeline) == ""
        return
    try:
        wrong = run(cases()[name], pipeline)
    except InternalError:
        raise
    except Error:
        return
    said = f"is wrong: {wrong}" if wrong else f"passes; take it off: {UPDATE}"
    pytest.fail(f"{name} should be refused ({reason}) and {said}")


def test_list_names_cases() -> None:
    gone = set(unsupported()) - set(cases())
    assert not gone, f"no longer among ONNX's tests: {UPDATE}"


def test_share() -> None:
    """Of the cases that ask for nothing that is left out on purpose."""
    wanted = [name for name, case in cases().items() if not left_out(case.model)]
    passing = [name for name in wanted if name not in unsupported()]
    assert len(passing) >= LEAST_SHARE * len(wanted)


def test_zeros_fail() -> None:
    """The comparison can fail: on zeros instead of an answer, on one wrong element."""
    seen = 0
    for case in cases().values():
        for answer in (as_array(x) for _, answers in case.data_sets for x in answers):
            if answer.dtype.kind not in "fiub" or not np.any(abs(answer) > case.atol):
                continue
            seen += 1
            assert difference(np.zeros_like(answer), answer, case.rtol, case.atol)
    assert seen > 1000


def test_one_wrong_element_fails() -> None:
    right = np.linspace(1, 2, 7, dtype=np.float32)
    for position in range(len(right)):
        wrong = right.copy()
        wrong[position] *= 1.01
        assert difference(wrong, right, 1e-3, 1e-7)
    assert not difference(right, right, 1e-3, 1e-7)
    assert difference(right.astype(np.float64), right, 1e-3, 1e-7).startswith("type")
    assert difference(right[:3], right, 1e-3, 1e-7).startswith("shape")


def test_random_cases_are_few() -> None:
    assert sum(is_random(case.model) for case in cases().values()) == 6
