"""Measurements of the RFC "Scalable Vectorisation in Linalg".

Its example step by step; its table of operations, each tried; masked loops against
peeled ones, and the other forms, by instructions and by cycles.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from onnx import parser

from nanoloom.emit import emit_stage
from nanoloom.errors import Error
from nanoloom.frontend.onnx import load
from nanoloom.options import CompileOptions
from nanoloom.target import by_name
from nanoloom.workers.fork_server import ForkServer
from nanoloom.workers.process import Crashed, Worker
from nanoloom_papers.reproduce.scalable_attempts import Attempt, attempts
from nanoloom_papers.reproduce.scalable_counts import cycles, forms_of, instructions
from nanoloom_papers.reproduce.scalable_example import TARGETS, Example, of_form
from nanoloom_papers.reproduce.scalable_results import Result

Say = Callable[[str], None]
OWN = """<ir_version: 10, opset_import: ["": 21]>
example (float[1000] a, float[1000] b, float[1] alpha) => (float[1000] y)
{ s = Add(a, b) y = Mul(alpha, s) }
"""


def example(say: Say) -> dict[str, str]:
    """All files of the example: MLIR's steps, and nanoloom's assembly of each form.

    Raises Error where MLIR does not go the RFC's way to its end.
    """
    say("the example, step by step")
    made: dict[str, str] = {}
    server = ForkServer()
    try:
        worker = Worker(server)
        for peeled in (False, True):
            answer = worker.ask(Example(peeled))
            if answer.failure is not None:
                raise answer.failure.exception()
            assert isinstance(answer.value, dict)
            made |= answer.value
    except Crashed as crash:
        raise Error(f"MLIR ends with {crash.how} at the example") from None
    finally:
        server.stop()
    return made | own()


def own() -> dict[str, str]:
    """nanoloom's assembly of the example, of 1000 numbers, by its forms."""
    made: dict[str, str] = {}
    for short, name in TARGETS.items():
        for form in forms_of(by_name(name)):
            texts: list[str] = []
            options = CompileOptions(of_form(by_name(name), form))
            model = load(parser.parse_model(OWN))
            emit_stage(model, "asm", options, lambda *x, to=texts: to.append(x[-1]))
            made[f"nanoloom-{form.replace(' ', '-')}-{short}.s"] = "\n".join(texts)
    return made


def operations(say: Say) -> Iterator[Attempt]:
    """The RFC's table, and what is vectorized."""
    yield from attempts(say)


def measured(say: Say, *, quick: bool) -> Iterator[Result]:
    """Instructions and cycles of the forms."""
    yield from cycles(say, quick=quick)
    yield from instructions(say, quick=quick)
