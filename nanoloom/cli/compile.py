"""nanoloom compile: a model as a program, a library, or a stage on the way there."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nanoloom.cli import emit_choices
from nanoloom.cli import options as words
from nanoloom.cli.emit_choices import STDOUT, WORDS, Emit
from nanoloom.cli.failures import DONE, say
from nanoloom.cli.lowering_options import AS_IT_IS, Lowering, with_lowering
from nanoloom.cli.via import with_via

if TYPE_CHECKING:
    from nanoloom.api.program import Program
    from nanoloom.cache import Cache
    from nanoloom.cli.progress import Watch
    from nanoloom.compiler import Model
    from nanoloom.options import CompileOptions
    from nanoloom.target.facts import Target

LARGEST_MESSAGE = (2 << 30) - (1 << 20)  # of protobuf, and room for the graph
EXAMPLE = "Example: nanoloom compile bert.onnx -o bert.so --dim length=1..512"
Out = Annotated[
    Path,
    typer.Option(
        "--out", "-o", metavar="OUT", help="A file or a folder; - prints a text."
    ),
]
EmitWord = Annotated[
    str | None,
    typer.Option(
        "--emit",
        "-e",
        metavar="STAGE",
        help=f"{WORDS}. Default: what the ending of OUT says; without one, executable.",
    ),
]
TargetName = Annotated[
    str | None,
    typer.Option(
        "--target",
        metavar="NAME",
        help="A CPU of `nanoloom targets`, also with features; default: this one. "
        "Several with commas between, or x86-64: one file that takes what it finds.",
    ),
]
Dataflows = Annotated[
    list[str] | None,
    typer.Option(
        "--dataflow",
        metavar="[KERNELS:]FLOW",
        help='How convolutions are made: "output; weight 4; input 2", or recommended. '
        "KERNELS: a pattern, contraction_* without one; may be repeated. "
        "Brings --exact-conv.",
    ),
]
Workers = Annotated[
    int | None,
    typer.Option(
        "--threads",
        "-t",
        min=1,
        max=1024,
        metavar="N",
        help="Kernels compiled at once; default: one for each usable CPU.",
    ),
]


@dataclass(frozen=True)
class Job:
    """One call of the verb: what goes where."""

    model: Path
    emit: Emit
    out: Path  # the file; for objects maybe a folder
    schedule: Path | None
    only: str | None = None
    levels: tuple[Target, ...] = ()  # of one file; () for one
    session: bool = False
    name: str | None = None  # of the functions

    @property
    def called(self) -> str:
        """By default: as the file is, but a program by itself names its model."""
        own = self.emit.word == "executable"
        return self.model.stem if own else self.out.name.partition(".")[0]


@with_lowering
@with_via
def compile(
    model: words.ModelOrText,
    out: Out,
    emit: EmitWord = None,
    dims: words.Sizes = None,
    name: words.Name = None,
    only: words.Only = None,
    target: TargetName = None,
    precision: words.Precision = "f32",
    session: words.Session = False,
    unchecked: words.Unchecked = False,
    exact_conv: words.ExactConv = False,
    lowering: Lowering = AS_IT_IS,
    schedule: words.Schedule = None,
    dataflow: Dataflows = None,
    threads: Workers = None,
    cache: words.CacheFolder = None,
    no_cache: words.NoCache = False,
    time_report: words.TimeReport = False,
    debug: words.Debug = False,
) -> int:
    """Compile a model to an executable or a library for C, or show a stage of it."""
    del debug
    from nanoloom.cli import progress, schedules
    from nanoloom.cli import session as opened
    from nanoloom.cli.times import show_times

    chosen, bound = emit_choices.emit_choice(emit, out), words.sizes(dims)
    store = opened.open_cache(cache, no_cache)
    levels = opened.levels_named(target, store)
    place = emit_choices.place(chosen, out, model)
    several = tuple(levels[:-1] and levels)
    job = Job(model, chosen, place, schedule, only, several, session, name)
    begin(job, threads, keeps=not no_cache)
    with progress.Watch(workers=threads) as watch:
        options = opened.compile_options(
            levels[-1],
            words.known_precision(precision),
            (*schedules.load_schedules(schedule), *schedules.dataflows(dataflow)),
            checked=not unchecked,
            exact_conv=exact_conv or bool(dataflow),
            lowering=lowering,
        )
        made = model, options, store, watch
        program = opened.open_program(*made, threads=threads, dims=bound)
        write(job, program, watch)
    tell(job)
    if time_report:
        show_times(watch)
    return DONE


def tell(job: Job) -> None:
    """Say what there is now."""
    if job.out != STDOUT:
        header = job.out.with_suffix(".h")
        beside = f" and {header}" if job.emit.has_header else ""
        say(f"nanoloom: wrote {job.out}{beside}")


def begin(job: Job, threads: int | None, *, keeps: bool) -> None:
    """Refuse what cannot be written; start workers that no cache makes idle."""
    check_place(job)
    if job.emit.form is not None and not keeps:
        from nanoloom.workers.pool import start_early

        start_early(threads)


def check_place(job: Job) -> None:
    """Refuse now what could not be written after minutes of work."""
    from nanoloom.cli import output_files

    if job.levels and job.emit.form in (None, "bare"):
        raise typer.BadParameter("name a single one here", param_hint="--target")
    if job.session and job.emit.form not in ("shared", "static"):
        raise typer.BadParameter("is for .so and .a alone", param_hint="--session")
    if job.only is not None and job.emit.word != "all":
        raise typer.BadParameter("it goes with --emit all", param_hint="--only")
    if job.emit.word == "all":
        output_files.folder(job.out)
        return
    if job.out == STDOUT or (job.emit.word == "object" and job.out.is_dir()):
        return
    output_files.require_other(job.out, job.model)
    if job.emit.form is not None or job.emit.word in ("object", "graph"):
        output_files.check_replaceable(job.out, job.emit.ending)
    else:
        with output_files.refusing(job.out):
            output_files.check_file(job.out, job.emit.ending)


def write(job: Job, program: Program, watch: Watch) -> None:
    """Compile as far as is asked for, and write it."""
    from nanoloom.cli import session

    if job.emit.word == "executable":
        session.announce_c_library(program)
    if job.emit.form is not None:
        name = job.name or job.called
        form, more = job.emit.form, job.levels
        program.save(job.out, name, form=form, levels=more, session=job.session)
    else:
        shapes = session.bound_shapes(program.inputs, {}, program.dims)
        write_text(job, program.source.entry(shapes, {}), program, watch)


def write_text(job: Job, model: Model, program: Program, watch: Watch) -> None:
    """What is no program and no library: objects, and texts of stages."""
    if job.emit.word == "object":
        write_objects(job, model, program.options, program.cache, watch)
    elif job.emit.word == "all":
        write_all(job, model, program.options, watch)
    elif job.emit.word == "graph" and job.out != STDOUT:
        write_graph(job, model, program.options)
    else:
        write_stage(job, model, program.options, watch)


def write_stage(job: Job, model: Model, options: CompileOptions, watch: Watch) -> None:
    """The text of a stage, a part with a heading for each kernel."""
    from nanoloom.cli import output_files
    from nanoloom.cli.schedules import heading
    from nanoloom.emit import emit_stage

    parts: list[str] = []
    comment = job.emit.comment

    def dump(stage: str, kernel: str, text: str) -> None:
        watch.say(f"writing {stage} {kernel}".strip())
        parts.append(
            (heading(comment, kernel) if kernel else "") + text.rstrip() + "\n"
        )

    emit_stage(model, job.emit.word, options, dump)
    text = "\n".join(parts)
    if job.out == STDOUT:
        watch.stop()
        sys.stdout.write(text)
    else:
        output_files.write_text(job.out, text)


def write_all(job: Job, model: Model, options: CompileOptions, watch: Watch) -> None:
    """Every stage of a layer's kernels, a small file each."""
    from nanoloom.cli import output_files
    from nanoloom.cli.schedules import heading
    from nanoloom.emit import emit_layers

    def dump(stage: str, kernel: str, text: str) -> None:
        watch.say(f"writing {stage} {kernel}")
        emit = emit_choices.BY_WORD[stage]
        text = heading(emit.comment, kernel) + text.rstrip() + "\n"
        output_files.write_text(
            job.out / (output_files.file_name(kernel) + emit.ending), text
        )

    emit_layers(model, job.only or "*", options, dump)


def write_graph(job: Job, model: Model, options: CompileOptions) -> None:
    """The simplified graph as an ONNX file; weights beyond 2 GB go beside it."""
    import onnx_ir

    from nanoloom.binary.output_files import scratch_beside
    from nanoloom.compiler import optimized, require_graph

    graph = optimized(require_graph(model), options)
    tensors = [value.const_value for value in graph.graph.initializers.values()]
    size = sum(tensor.nbytes for tensor in tensors if tensor is not None)
    beside = f"{job.out.name}.data" if size > LARGEST_MESSAGE else None
    with scratch_beside(job.out) as scratch:
        onnx_ir.save(graph, scratch / job.out.name, external_data=beside)
        for made in sorted(scratch.iterdir(), reverse=True):  # the weights first
            os.replace(made, job.out.with_name(made.name))


def write_objects(
    job: Job, model: Model, options: CompileOptions, cache: Cache, watch: Watch
) -> None:
    """The object of every kernel: a file each in a folder, or one with all of them."""
    from nanoloom.cli import output_files
    from nanoloom.compiler import compile_kernels, partition_model, with_shared_k

    program = with_shared_k(partition_model(model, options, watch), options)
    made = compile_kernels(program, options, cache, watch)
    objects = {name: kernel.object for name, kernel in made.items()}
    if job.out.is_dir():
        for name, code in objects.items():
            with output_files.written(job.out / f"{name}{job.emit.ending}") as file:
                file.write(code)
        return
    output_files.write_merged(objects, job.out, cache)
