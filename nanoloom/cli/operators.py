"""nanoloom operators: which ONNX operators compile, for which element types."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from nanoloom.cli import options as words
from nanoloom.cli.failures import DONE

EXAMPLE = "Example: nanoloom operators Conv Gemm"
FILE = Path(__file__).with_name("operators.json")
COLUMNS = ("operator", "since", "opsets tested", "element types", "status", "note")
# On a terminal: 80 columns hold it, and the last is folded between words.
SHOWN = ("operator", "since", "opsets", "status", "~element types; note")
INTRODUCTION = """\
# Operators

What becomes of ONNX's own node tests, each compiled and run like any other model. The
table is written by the tests that run them (`python -m tests.conformance.update`), and
`nanoloom operators` shows it on the terminal. `nanoloom check MODEL` says what is wrong
with a certain model; with `--deep` it compiles every kernel, too.

Operators of other domains are refused, unless the model itself defines them as
functions or they stand at the end of this page.

- **since**: the operator set that changed the operator last.
- **opsets tested**: those that its node tests ask for. Others are read too.
- **element types**: seen passing, of the operator's first type parameter.
- **status**: *all* node tests pass, *part* of them, or *none*; *untested* operators are
  known to nanoloom and have no node test.
"""
MICROSOFT = """
## ONNX Runtime's own

Its optimizer and its quantizers write operators of the domain `com.microsoft`. Nodes of
ONNX's operators take the place of these, whatever the model's operator set is. What a
node has beyond what is known here is refused by its name. Files in the layout of one
machine (`com.microsoft.nchwc`) are refused: save them with the graph optimization level
extended or lower.

"""
Names = Annotated[
    list[str] | None,
    typer.Argument(metavar="[NAME]...", help="Show these operators only."),
]
Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="FILE", help="Write Markdown to a file."),
]


@dataclass(frozen=True)
class Operator:
    """A line of the table.

    since: its newest version.  opsets: of its tests.  types: seen passing.
    passed: of `tests` node tests.
    """

    name: str
    since: int
    opsets: tuple[int, ...]
    types: tuple[str, ...]
    passed: int
    tests: int
    is_known: bool
    note: str = ""

    @property
    def domain(self) -> str:
        """Empty for ONNX's own."""
        return self.name.rpartition(".")[0]

    @property
    def short_name(self) -> str:
        """Without the domain."""
        return self.name.rpartition(".")[2]

    @property
    def status(self) -> str:
        if not self.tests:
            return "untested" if self.is_known else "none"
        if self.passed == self.tests:
            return "all"
        return "part" if self.passed else "none"

    def cells(self) -> tuple[str, ...]:
        """The line's words, in the order of COLUMNS."""
        count = f" ({self.passed} of {self.tests})" if self.status == "part" else ""
        return (
            self.name,
            str(self.since),
            ranges(self.opsets),
            ", ".join(self.types),
            self.status + count,
            self.note,
        )


def operators(
    names: Names = None,
    output: Output = None,
    json: words.Json = False,
    debug: words.Debug = False,
) -> int:
    """List the ONNX operators, and what of each is known to work."""
    del debug
    from nanoloom.errors import Error

    asked = set(names or ())
    rows = [row for row in load() if not asked or asked & {row.name, row.short_name}]
    own = [name for name in of_onnx_runtime() if not asked or name in asked]
    known = {each for row in rows for each in (row.name, row.short_name)}
    if unknown := asked - known - set(own):
        raise Error(
            "ONNX has no such operator",
            where=", ".join(sorted(unknown)),
            hint="nanoloom operators lists them all",
        )
    if output is not None:
        write(output, rows)
    elif json:
        show_json(rows)
    else:
        show(rows)
        if own:
            from nanoloom.cli.terminal import out

            said = f"of ONNX Runtime (com.microsoft): {', '.join(own)}"
            out().print(said, markup=False)
    return DONE


def show(rows: Sequence[Operator]) -> None:
    """A table for each domain, ONNX's own first: names are short without theirs."""
    from nanoloom.cli.terminal import out, table

    domains: dict[str, list[Operator]] = {}
    for row in sorted(rows, key=lambda row: bool(row.domain)):
        domains.setdefault(row.domain, []).append(row)
    screen = out()
    for number, (domain, own) in enumerate(domains.items()):
        if number:
            screen.print()
        screen.print(table(domain, SHOWN, map(shown, own)))


def shown(row: Operator) -> tuple[str, ...]:
    """The line's words, in the order of SHOWN."""
    _, since, opsets, types, status, note = row.cells()
    about = "; ".join(words for words in (types, note) if words)
    return row.short_name, since, opsets, status, about


def of_onnx_runtime() -> list[str]:
    """Operators of ONNX Runtime's own that ONNX's stand for."""
    from nanoloom.frontend.microsoft.operators import OPERATORS

    return sorted(OPERATORS)


def load() -> list[Operator]:
    """The table as the conformance tests wrote it."""
    from json import loads

    made: list[Operator] = []
    for row in loads(FILE.read_text("utf-8")):
        # JSON has lists where a frozen value has tuples.
        facts: dict[str, Any] = {
            k: tuple(v) if isinstance(v, list) else v for k, v in row.items()
        }
        made.append(Operator(**facts))
    return made


def show_json(rows: Sequence[Operator]) -> None:
    from dataclasses import asdict

    from nanoloom.cli.arrays import as_json

    print(as_json([{**asdict(row), "status": row.status} for row in rows]))


def write(output: Path, rows: Sequence[Operator]) -> None:
    """The Markdown page.  Raises Error where the file cannot be written."""
    from nanoloom.errors import Error

    try:
        output.write_text(markdown(rows), "utf-8")
    except OSError as error:
        reason = f"cannot be written: {error.strerror}"
        raise Error(reason, where=str(output)) from error


def markdown(rows: Sequence[Operator]) -> str:
    """The page docs/operators.md."""
    passed, tests = sum(r.passed for r in rows), sum(r.tests for r in rows)
    lines = [
        INTRODUCTION,
        f"{passed} of the {tests} node tests of single operators pass.\n",
        f"| {' | '.join(COLUMNS)} |",
        "|" + "---|" * len(COLUMNS),
    ]
    lines += ["| " + " | ".join(row.cells()) + " |" for row in rows]
    own = textwrap.fill(", ".join(of_onnx_runtime()) + ".", 88)
    return "\n".join(lines) + "\n" + MICROSOFT + own + "\n"


def ranges(numbers: Sequence[int]) -> str:
    """1, 2, 3, 7 as "1-3, 7"."""
    parts: list[list[int]] = []
    for number in sorted(set(numbers)):
        if parts and number == parts[-1][-1] + 1:
            parts[-1].append(number)
        else:
            parts.append([number])
    return ", ".join(
        f"{part[0]}-{part[-1]}" if len(part) > 1 else str(part[0]) for part in parts
    )
