"""nanoloom verify: the results beside those of another implementation."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nanoloom.cli import options as words
from nanoloom.cli.emulation import Emulation
from nanoloom.cli.failures import AT_FAULT, DONE, say
from nanoloom.cli.request import Request, with_options

if TYPE_CHECKING:
    import onnx_ir

    from nanoloom.api.program import Program
    from nanoloom.cli.arrays import Array
    from nanoloom.cli.model_inputs import Inputs
    from nanoloom.cli.progress import Watch
    from nanoloom.inspect.differences import Difference
    from nanoloom.inspect.layer_differences import Layer, Ours
    from nanoloom.inspect.references import Arrays

EXAMPLE = "Example: nanoloom verify model.onnx --dim batch=2 --per-layer"
KINDS = ("ort", "reference")
Against = Annotated[
    str,
    typer.Option(
        "--against",
        metavar="WHAT",
        help="ort (ONNX Runtime) or reference (of ONNX, in numpy, slow).",
    ),
]
PerLayer = Annotated[
    bool,
    typer.Option("--per-layer", help="Compare every value; find the first to differ."),
]


@dataclass(frozen=True)
class Question:
    """What is compared with what, on which inputs."""

    request: Request
    against: str
    program: Program
    inputs: Inputs
    folder: Path
    watch: Watch


@dataclass
class Verdict:
    """What came out: the outputs compared, or all layers up to the first that fails."""

    outputs: list[Difference] = field(default_factory=list["Difference"])
    layers: list[Layer] = field(default_factory=list["Layer"])

    @property
    def first(self) -> Layer | None:
        """The first layer that differs."""
        return next((x for x in self.layers if not x.difference.passed), None)

    @property
    def passed(self) -> bool:
        return self.first is None and all(x.passed for x in self.outputs)


@with_options("precision", "lowering", "schedule")
def verify(
    request: Request,
    against: Against = "ort",
    per_layer: PerLayer = False,
    json: words.Json = False,
    debug: words.Debug = False,
) -> int:
    """Compare the results with another implementation's, against a derived bound."""
    del debug
    from nanoloom.cli.arrays import as_json
    from nanoloom.cli.progress import Watch

    if against not in KINDS:
        reason = f"{against} is none of {', '.join(KINDS)}"
        raise typer.BadParameter(reason, param_hint="--against")
    if per_layer and request.emulate:
        reason = "layers are compared on this machine only"
        raise typer.BadParameter(reason, param_hint="--per-layer")
    with Watch() as watch:
        question, verdict = asked(request, against, per_layer, watch)
    if json:
        print(as_json(answer(question, verdict)))
    else:
        show(question, verdict)
    return DONE if verdict.passed else AT_FAULT


def asked(
    request: Request, against: str, per_layer: bool, watch: Watch
) -> tuple[Question, Verdict]:
    """Run both sides."""
    from nanoloom.cli.model_inputs import inputs_for, open_program

    program = open_program(request, watch)
    inputs = inputs_for(program, request)
    verdict = Verdict()
    with tempfile.TemporaryDirectory(prefix="nanoloom-") as scratch:
        question = Question(request, against, program, inputs, Path(scratch), watch)
        if per_layer:
            verdict.layers = compare_layers(question)
        else:
            verdict.outputs = compare_outputs(question)
    return question, verdict


def bound_model(question: Question) -> onnx_ir.Model:
    """The model for these inputs; raises Unsupported if it draws random numbers."""
    from nanoloom.errors import Unsupported
    from nanoloom.inspect.rounding import random_node

    shapes = {name: array.shape for name, array in question.inputs.arrays.items()}
    model = as_written(question, question.program.source.bound(shapes, {}))
    drawing = random_node(model)
    if drawing is not None:
        raise Unsupported(
            "draws random numbers, so two results cannot be compared",
            where=f"node {drawing.name} ({drawing.op_type})",
        )
    return model


def as_written(question: Question, bound: onnx_ir.Model) -> onnx_ir.Model:
    """A bound model, with nodes that others run as they are in its file.

    Those that stand for them are of another operator set than the model's, which is
    nothing that a file can say.
    """
    from nanoloom.frontend.onnx import load
    from nanoloom.frontend.symbolic_dims import bind, dims_from_inputs

    if not any(node.version for node in bound.graph.all_nodes()):
        return bound
    model = load(question.request.model, expands=False)
    return bind(model, dims_from_inputs(model, question.inputs.arrays))


def compare_outputs(question: Question) -> list[Difference]:
    """Every output of the model as it is in its file."""
    from nanoloom.inspect.differences import compare
    from nanoloom.inspect.references import (
        NAMES,
        disturbed,
        open_reference,
        readable,
    )

    watch, threads = question.watch, question.program.threads
    texts = question.program.source.texts
    arrays = texts.spelled(question.inputs.arrays)
    model = bound_model(question)
    watch.say("compiling")
    ours = texts.spelled(called(question)(arrays))
    watch.say(f"running {NAMES[question.against]}")
    path = readable(question.request.model, model, question.folder)
    wanted = open_reference(question.against, path, threads)(arrays)
    watch.say("measuring what rounding may change", 0, 0)
    others = disturbed(question.against, model, question.folder, threads, arrays, texts)
    return [
        compare(name, array, wanted[index], [other[index] for other in others])
        for index, (name, array) in enumerate(ours.items())
    ]


def called(question: Question) -> Callable[[Arrays], Mapping[str, Array]]:
    """The model on this machine, or on the emulated one, which knows no strings."""
    program, machine = question.program, question.request.emulate
    if not machine:
        return program
    emulation, places = Emulation(program, machine, question.watch), question.inputs
    return lambda _: emulation(places.arrays)


def compare_layers(question: Question) -> list[Layer]:
    """Every value up to the first that differs, or all."""
    from nanoloom.inspect.layer_differences import Judge

    program, watch = question.program, question.watch
    model = bound_model(question)
    judge = Judge(
        question.against, own_results(question), program.threads, question.folder
    )
    found: list[Layer] = []
    for layer in judge.layers(model, question.inputs.arrays):
        found.append(layer)
        watch.say(f"comparing layers, {len(found)} so far", 0, 0)
        if not layer.difference.passed:
            break
    return found


def own_results(question: Question) -> Ours:
    """nanoloom on a part of the model; what it compiles is not kept."""
    import shutil

    import nanoloom
    from nanoloom.cache import Cache

    store = Cache(question.folder / "cache")

    def run(model: onnx_ir.Model, inputs: Mapping[str, Array]) -> Mapping[str, Array]:
        program = nanoloom.compile(
            model,
            threads=question.program.threads,
            options=question.program.options,
            cache=store,
        )
        found = program(inputs)
        # Every part has all its weights in a file of its own.
        shutil.rmtree(store.root / "models", ignore_errors=True)
        (store.root / "models").mkdir()
        return found

    return run


def answer(question: Question, verdict: Verdict) -> dict[str, Any]:
    """What `--json` prints."""
    from nanoloom.cli.differences import as_dict

    facts: dict[str, Any] = {
        "model": str(question.request.model),
        "against": question.against,
        "seed": question.request.seed,
        "random_inputs": list(question.inputs.random),
        "passed": verdict.passed,
        "outputs": [as_dict(x) for x in verdict.outputs],
    }
    if verdict.layers:
        first = verdict.first
        facts["layers"] = [
            {"node": x.node, "operator": x.operator, **as_dict(x.difference)}
            for x in verdict.layers
        ]
        facts["first_differing"] = first.node if first else None
    return facts


def show(question: Question, verdict: Verdict) -> None:
    """A table, and what it comes to in a sentence."""
    from nanoloom.cli.differences import as_table, listed, weaknesses
    from nanoloom.cli.model_inputs import random_note
    from nanoloom.cli.terminal import indented, out, plural
    from nanoloom.inspect.references import NAMES

    screen = out()
    if question.inputs.random:
        say(random_note(question.inputs.random, question.request.seed))
    differences = verdict.outputs
    if verdict.layers:
        differences = [x.difference for x in listed(verdict.layers)]
    screen.print(as_table(differences))
    screen.print()
    for text in [*reasons(verdict), *weaknesses(differences)]:
        screen.print(indented(text, 0))
    peer, first = NAMES[question.against], verdict.first
    if first is not None:
        text = f"first to differ from {peer}: node {first.node} ({first.operator})"
    elif verdict.layers:
        text = f"all {plural(len(verdict.layers), 'layer')} agree with {peer}"
    elif verdict.passed:
        text = f"agrees with {peer}"
    else:
        text = f"differs from {peer}; --per-layer finds where it begins"
    screen.print(indented(text, 0, "bold"))


def reasons(verdict: Verdict) -> list[str]:
    """Why values fail."""
    found = [*verdict.outputs, *(x.difference for x in verdict.layers)]
    return [f"{x.name}: {x.reason}" for x in found if x.reason]
