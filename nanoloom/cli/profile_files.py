"""The files that nanoloom profile writes beside its table."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from nanoloom.explain.page import LayerTable
    from nanoloom.explain.profile import Profile
    from nanoloom.explain.report import Explanation

Trace = Annotated[
    Path | None,
    typer.Option(
        "--trace",
        metavar="FILE",
        help="Write a timeline of the runs, for ui.perfetto.dev: .json or .pftrace.",
    ),
]
Html = Annotated[
    Path | None,
    typer.Option("--html", metavar="FILE.html", help="Write one page, with explain's."),
]
Overlay = Annotated[
    Path | None,
    typer.Option(
        "--overlay", metavar="FILE.json", help="Write node data for Model Explorer."
    ),
]
Annotate = Annotated[
    Path | None,
    typer.Option(
        "--annotate",
        metavar="COPY.onnx",
        help="Write the model with times as its nodes' metadata, as Netron shows them.",
    ),
]
ENDINGS = {
    "trace": (".json", ".pftrace"),
    "html": (".html", ".htm"),
    "overlay": (".json",),
    "annotate": (".onnx",),
}


@dataclass(frozen=True)
class ProfileFiles:
    """Where they are wanted, None for not."""

    trace: Path | None = None
    html: Path | None = None
    overlay: Path | None = None
    annotate: Path | None = None

    def check(self, model: Path) -> None:
        """Refuse now what could not be written after the measurement."""
        from nanoloom.cli import output_files

        for name, endings in ENDINGS.items():
            path: Path | None = getattr(self, name)
            if path is None:
                continue
            if path.suffix not in endings:
                reason = f"{path} does not end in {' or '.join(endings)}"
                raise typer.BadParameter(reason, param_hint=f"--{name}")
            output_files.check_replaceable(path, endings[0])
        wanted = {name: getattr(self, name) for name in ENDINGS}
        output_files.require_apart(
            (f"--{name}", path) for name, path in wanted.items() if path is not None
        )
        if self.annotate is not None and model.suffix != ".onnx":
            reason = f"{model} is no ONNX file, whose nodes have metadata"
            raise typer.BadParameter(reason, param_hint="--annotate")
        if self.annotate is not None and self.annotate.resolve() == model.resolve():
            reason = f"{model} is the model itself; name a copy"
            raise typer.BadParameter(reason, param_hint="--annotate")

    def write(
        self,
        found: Profile,
        model: Path,
        explained: Callable[[], Explanation],
        table: LayerTable,
    ) -> None:
        """All of them.  explained: makes the report of the page."""
        from nanoloom.cli.output_files import write_text, written
        from nanoloom.explain import node_times, trace
        from nanoloom.explain.page import page

        if self.trace is not None and self.trace.suffix == ".json":
            write_text(self.trace, json.dumps(trace.trace(found, model.name)))
        elif self.trace is not None:
            made = trace.perfetto_trace(found, model.name)
            with written(self.trace) as file:
                file.write(made)
        if self.overlay is not None:
            write_text(self.overlay, json.dumps(node_times.overlay(found)))
        if self.annotate is not None:
            copy = node_times.annotated(model, found, self.annotate)
            with written(self.annotate) as file:
                file.write(copy.SerializeToString())
        if self.html is not None:
            write_text(self.html, page(explained(), table))
