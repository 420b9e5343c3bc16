"""nanoloom check: every reason why a model does not compile, at once."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from nanoloom.cli import options as words
from nanoloom.cli.failures import AT_FAULT, DONE
from nanoloom.cli.via import with_via

if TYPE_CHECKING:
    import onnx_ir

    from nanoloom.cli.progress import Watch
    from nanoloom.compiler import Report
    from nanoloom.frontend.problems import Problem

EXAMPLE = "Example: nanoloom check model.onnx --dim batch=1"
# Sizes to try for dimensions without a number, until one fits: images want powers of
# two, some graphs a single sequence.
TRIED = (8, 1, 64, 224)
NAMED = 4  # nodes of one problem that are listed


@dataclass(frozen=True)
class Findings:
    """What is wrong with a model, and with which dimensions it was looked at.

    deciding: inputs whose values decide about shapes.  floats: layers of a quantized
    network that are computed in floats.  counted, signs: products of signs that count
    bits, and that are computed in floats.  not_sizes: why dimensions without a number
    are no sizes at run time, "" where they are.  multiple: of which they are then.
    contradictions: values, and the shapes that are declared of them but not given.
    shared: names that are sizes at several places, and what the others may be called.
    """

    problems: list[Problem]
    dims: Mapping[str, int]
    assumed: list[str]
    deciding: tuple[str, ...] = ()
    floats: tuple[Problem, ...] = ()
    counted: tuple[str, ...] = ()
    signs: tuple[Problem, ...] = ()
    not_sizes: str = ""
    nodes: int = 0
    parameters: int = 0
    multiple: int = 1
    contradictions: tuple[tuple[str, str], ...] = ()
    shared: Mapping[str, str] = field(default_factory=dict[str, str])


@with_via
def check(
    model: words.Model,
    dims: words.Dims = None,
    deep: words.Deep = False,
    json: words.Json = False,
    debug: words.Debug = False,
) -> int:
    """List all that keeps a model from compiling: which node, why, what to do.

    Of a library that was compiled: what it is, and whether it runs here.
    """
    del debug
    from nanoloom.cli.arrays import as_json
    from nanoloom.cli.check_library import check_library, said_by
    from nanoloom.cli.progress import Watch

    said = said_by(model)
    if said is not None:
        return check_library(model, said, json=json)
    bound = words.dimensions(dims)
    with Watch() as watch:
        findings = examine(model, bound, watch, deep=deep)
    if json:
        print(as_json(answer(model, findings)))
    else:
        show(model, findings)
    return AT_FAULT if findings.problems else DONE


def examine(
    path: Path, dims: Mapping[str, int], watch: Watch, *, deep: bool = False
) -> Findings:
    """Load a model and look for all its problems; one that does not load has one.

    deep: for those of its kernels as well.
    """
    from nanoloom.errors import ModelError, Unsupported
    from nanoloom.frontend.declared import contradictions_of
    from nanoloom.frontend.onnx import load
    from nanoloom.frontend.problems import Problem
    from nanoloom.frontend.symbol_places import named_places
    from nanoloom.frontend.symbolic_dims import input_dims
    from nanoloom.model.split_symbols import with_names

    def alone(error: ModelError | Unsupported) -> Findings:
        place = error.where.removeprefix(f"{path}").removeprefix(": ") or "the file"
        return Findings([Problem(place, error.reason, error.hint)], dims, [])

    try:
        model = load(path)
        shapes = input_dims(model)
        model = with_names(model, named_places(shapes, dims))
        watch.say("looking at every node")
        findings = best(path, model, dims)
        if deep and not findings.problems:
            findings = replace(findings, problems=of_kernels(model, findings, watch))
        return replace(
            findings,
            contradictions=tuple(contradictions_of(model).found.items()),
            shared=shared(input_dims(model)),
        )
    except (ModelError, Unsupported) as error:
        return alone(error)


def best(path: Path, model: onnx_ir.Model, dims: Mapping[str, int]) -> Findings:
    """The findings for the dimensions given; for open ones, for the size that fits."""
    from nanoloom.cache import Cache, default_root
    from nanoloom.errors import ModelError
    from nanoloom.frontend.symbolic_dims import symbols
    from nanoloom.inspect.binary_layers import BinaryLayers, binary_layers
    from nanoloom.inspect.diagnostics import diagnose
    from nanoloom.inspect.dynamic_sizes import DynamicSizes, dynamic_sizes
    from nanoloom.inspect.float_layers import float_layers

    assumed = [name for name in symbols(model) if name not in dims]
    facts = sum(1 for _ in model.graph.all_nodes()), weights(model)
    first: Findings | ModelError | None = None
    for size in TRIED if assumed else TRIED[:1]:
        sizes = {**dims, **dict.fromkeys(assumed, size)}
        try:
            found, deciding = diagnose(model, sizes)
        except ModelError as error:
            first = first or error
            continue
        floats = () if found else float_layers(model, sizes, deciding)
        bits = BinaryLayers() if found else binary_layers(model, sizes, deciding)
        layers = floats, bits.counted, bits.floats
        findings = Findings(found, sizes, assumed, deciding, *layers, "", *facts)
        if not found:
            cache = Cache(default_root())
            how = dynamic_sizes(path, dims, cache) if assumed else DynamicSizes()
            return replace(findings, not_sizes=how.why, multiple=how.multiple)
        if not isinstance(first, Findings):
            first = findings
    if isinstance(first, Findings):
        return first
    assert first is not None
    raise first


def of_kernels(model: onnx_ir.Model, findings: Findings, watch: Watch) -> list[Problem]:
    """The kernels that do not compile, for the sizes that were looked at."""
    from nanoloom.cache import Cache, default_root
    from nanoloom.inspect.kernel_problems import kernel_problems
    from nanoloom.options import CompileOptions
    from nanoloom.target.cached_host import host

    cache = Cache(default_root())
    options = CompileOptions(host(cache))
    report = cast("Report", watch)
    sizes, deciding = findings.dims, findings.deciding
    return kernel_problems(model, sizes, deciding, options, cache, report)


def shared(shapes: Mapping[str, tuple[int | str, ...]]) -> dict[str, str]:
    """By the name of a place alone: the input and axis it is, and of which name."""
    from nanoloom.frontend.symbol_places import own_names

    return {
        own: f"{shapes[name][axis]} on axis {axis} of input {name}"
        for (name, axis), own in own_names(shapes).items()
    }


def weights(model: onnx_ir.Model) -> int:
    """The number of elements in all initializers."""
    found = (value.const_value for value in model.graph.initializers.values())
    return sum(tensor.size for tensor in found if tensor is not None)


def answer(model: Path, findings: Findings) -> dict[str, Any]:
    """What `--json` prints."""
    return {
        "model": str(model),
        "compiles": not findings.problems,
        "dims": dict(findings.dims),
        "assumed_dims": findings.assumed,
        "sizes": [] if findings.not_sizes else findings.assumed,
        "not_sizes": findings.not_sizes,
        "multiples_of": findings.multiple,
        "value_inputs": list(findings.deciding),
        "contradictions": dict(findings.contradictions),
        "problems": [asdict(problem) for problem in findings.problems],
        "in_floats": [asdict(layer) for layer in findings.floats],
        "in_bits": list(findings.counted),
        "signs_in_floats": [asdict(layer) for layer in findings.signs],
    }


def show(model: Path, findings: Findings) -> None:
    """The same for readers, problems of one kind together."""
    from nanoloom.cli.terminal import indented, out, plural

    screen = out()
    verdict = plural(len(findings.problems), "problem")
    if not findings.problems:
        size = f"{findings.parameters:,} parameters"
        verdict = f"compiles ({plural(findings.nodes, 'node')}, {size})"
    screen.print(f"{model}: {verdict}", markup=False, style="bold", soft_wrap=True)
    listed(findings.problems)
    if findings.floats:
        layers = plural(len(findings.floats), "quantized layer")
        screen.print(f"\n{layers} computed in floats:", markup=False, soft_wrap=True)
        listed(findings.floats)
    if findings.counted:
        layers = plural(len(findings.counted), "binary layer")
        screen.print(f"\n{layers}, computed in bits:", markup=False, soft_wrap=True)
        screen.print(indented(", ".join(findings.counted), 2))
    if findings.signs:
        layers = plural(len(findings.signs), "layer")
        said = f"\n{layers} of signs computed in floats:"
        screen.print(said, markup=False, soft_wrap=True)
        listed(findings.signs)
    for note in notes(findings):
        screen.print(indented(f"note: {note}", 0, "dim"))


def listed(problems: Collection[Problem]) -> None:
    """Problems for readers, those of one kind together."""
    from nanoloom.cli.terminal import indented, out
    from nanoloom.inspect.diagnostics import diagnosed

    screen = out()
    for kind, names in diagnosed(problems):
        operator = f" ({kind.operator})" if kind.operator else ""
        more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
        screen.print()
        screen.print(indented(f"{', '.join(names[:NAMED])}{more}{operator}", 2))
        screen.print(indented(kind.reason, 4))
        if kind.hint:
            screen.print(indented(f"-> {kind.hint}", 4))


def notes(findings: Findings) -> list[str]:
    """What a reader should know of how the model was looked at."""
    found: list[str] = []
    if findings.assumed:
        sizes = ", ".join(f"{name}={findings.dims[name]}" for name in findings.assumed)
        found.append(f"looked at with {sizes}; --dim gives other sizes")
    if findings.assumed and not findings.problems:
        names, why = ", ".join(findings.assumed), findings.not_sizes
        each = f"each size of {names} is compiled on its own: {why}"
        if findings.multiple > 1:
            names += f" that are multiples of {findings.multiple}"
        found.append(each if why else f"compiled once for all sizes of {names}")
    if findings.deciding:
        names = ", ".join(findings.deciding)
        found.append(
            f"the values of {names} decide about shapes: each new value is compiled"
        )
    if findings.problems and findings.shared:
        names = "; ".join(f"{own} is {what}" for own, what in findings.shared.items())
        found.append(f"where sizes of one name differ, --dim gives each: {names}")
    for name, said in findings.contradictions:
        found.append(f"{name} is declared as {said}; what its node gives counts")
    return found
