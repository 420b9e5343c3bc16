"""nanoloom licences: what is part of the files that it writes."""

from __future__ import annotations

from typing import Annotated

import typer

from nanoloom.cli import options as words
from nanoloom.cli.failures import DONE

EXAMPLE = "Example: nanoloom licences --form executable --json"
Form = Annotated[
    str,
    typer.Option(
        "--form",
        metavar="FORM",
        help="Of one form of output: shared, static, bare, executable.",
    ),
]
Text = Annotated[bool, typer.Option("--text", help="Print the licences themselves.")]


def licences(
    form: Form = "",
    text: Text = False,
    json: words.Json = False,
    debug: words.Debug = False,
) -> int:
    """Say what is part of compiled files, and under which licence."""
    del debug
    from nanoloom.cli.arrays import as_json
    from nanoloom.cli.terminal import out
    from nanoloom.inspect.licences import FORMS, bill, components

    if form and form not in FORMS:
        reason = f"{form} is none of {', '.join(FORMS)}"
        raise typer.BadParameter(reason, param_hint="--form")
    found = components(form)
    if json:
        print(as_json(bill(form)))
    elif text:
        for each in found:
            title = f"{each.name} {each.version} ({each.licence})"
            print(f"{title}\n{'=' * len(title)}\n\n{each.licence_text()}")
    else:
        rows = [(f"{x.name} {x.version}", x.licence, ", ".join(x.forms)) for x in found]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        for row in rows:
            cells = zip(row, widths, strict=True)
            line = "  ".join(f"{cell:<{width}}" for cell, width in cells)
            out().print(line.rstrip(), markup=False, highlight=False, soft_wrap=True)
        note = "The generated code is yours.  --text prints the licences."
        out().print(note, markup=False, style="dim", soft_wrap=True)
    return DONE
