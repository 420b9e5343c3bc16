"""Make docs/performance.md, docs/speed.svg and the table of README.md.

    python -m benchmarks page

They hold what benchmarks/results has, which `python -m benchmarks NAME ... --record`
writes.  Nothing is measured.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from statistics import geometric_mean

from benchmarks.arguments import parser_of
from benchmarks.chart import Bars
from benchmarks.results import ROOT, Machine, Result, read_machines
from benchmarks.show import Sheet

OWN = "nanoloom ms"
HEAD = """# Performance

Made by `python -m benchmarks page` from the files in `benchmarks/results/`:
change those, not this page.

"""
LAST = "How it is measured"
TAIL = f"""## {LAST}

- Models have random weights, batch 1, a sequence of 128 or an image of 224 x 224.
  U-Net has 256 x 256, the detector 320 x 320.
- nanoloom and each peer run in a process of their own and take turns.
  A figure is the median of its turns.
- Outputs are compared first. A system with a wrong result is named and not timed.
- "nanoloom is ... times as fast as the faster peer" is the geometric mean over the
  rows of a table.
- "measured" names the commit that was compiled. "stated" names the commit that put the
  figures into a page; they may be of a few commits earlier.

To add a table, or to measure one again:

```
python -m benchmarks NAME [options] --record [FILE]
python -m benchmarks page
```

The first writes `benchmarks/results/MACHINE/FILE.json`, the second this page.
"""
SPEED = ("sapphirerapids", "transformers")  # the table of README.md
PLOT = ("sapphirerapids", "convolutional_networks")  # docs/speed.svg
MARKS = "<!-- made by python -m benchmarks page -->\n", "<!-- end -->\n"


def page(machines: Sequence[Machine]) -> str:
    """The text of docs/performance.md."""
    sections = [section(machine) for machine in machines]
    titles = [machine.title for machine in machines] + [LAST]
    contents = "".join(f"- [{title}](#{anchor(title)})\n" for title in titles)
    return "\n".join([HEAD + contents, *sections, TAIL])


def anchor(title: str) -> str:
    """A heading's name in links, as GitHub makes it."""
    return re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")


def section(machine: Machine) -> str:
    """All tables of a machine."""
    parts = [part(result) for result in machine.results.values()]
    return "\n".join([f"## {machine.title}\n\n{machine.facts}\n", *parts])


def part(result: Result) -> str:
    """The tables of a command, which stands in front of them."""
    first, *more = result.tables
    texts = [f"### {first.title}\n\n{source(result)}\n{table(first)}{below(first)}"]
    texts += [f"#### {each.title}\n\n{table(each)}{below(each)}" for each in more]
    return "\n".join(texts)


def source(result: Result) -> str:
    """The command, the day and the commit."""
    verb = "stated" if result.stated else "measured"
    return f"`{result.command}`\\\n{verb} {result.date} at commit {result.commit}\n"


def table(sheet: Sheet) -> str:
    """A sheet in Markdown, `>` in front of a column being to the right."""
    heads = [column.lstrip(">~-") for column in sheet.columns]
    rules = ["---:" if column.startswith(">") else "---" for column in sheet.columns]
    rows = [line(heads), f"|{'|'.join(rules)}|", *(line(row) for row in sheet.rows)]
    return "\n".join(rows) + "\n"


def line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def below(sheet: Sheet) -> str:
    """The means and the notes of a table."""
    notes = [*means(sheet), *sheet.notes]
    return "\n" + "".join(f"- {note}\n" for note in notes) if notes else ""


def means(sheet: Sheet) -> list[str]:
    """How many times as fast nanoloom is, of each type and number of threads."""
    heads = [column.lstrip(">~-") for column in sheet.columns]
    if OWN not in heads or "model" not in heads:
        return []
    groups: dict[str, list[float]] = {}
    for row in sheet.rows:
        cells = dict(zip(heads, row, strict=True))
        times = ratios(cells)
        if times:
            words = [cells.get("type", ""), f"threads: {cells.get('threads', '1')}"]
            groups.setdefault(", ".join(filter(None, words)), []).append(min(times))
    return [
        f"nanoloom is {geometric_mean(found):.2f} times as fast as the faster peer "
        f"({words}; {len(found)} models)"
        for words, found in groups.items()
        if len(found) > 1
    ]


def ratios(cells: dict[str, str]) -> list[float]:
    """Each peer's time over nanoloom's."""
    peers = [cells[k] for k in cells if k.endswith(" ms") and k != OWN and cells[k]]
    return [float(peer) / float(cells[OWN]) for peer in peers] if cells[OWN] else []


def find(machines: Sequence[Machine], place: tuple[str, str]) -> Result:
    """A result by machine and name."""
    key, name = place
    (machine,) = [each for each in machines if each.key == key]
    return machine.results[name]


def plot(sheet: Sheet) -> str:
    """docs/speed.svg: the peers' times over nanoloom's, with one thread."""
    heads = [column.lstrip(">~-") for column in sheet.columns]
    peers = [head for head in heads if head.endswith(" ms") and head != OWN]
    rows = [dict(zip(heads, row, strict=True)) for row in sheet.rows]
    groups = {row["model"]: ratios(row) for row in rows if row["threads"] == "1"}
    names = [peer.removesuffix(" ms") for peer in peers]
    return Bars("time over nanoloom's, one thread", names, groups).to_svg()


def with_table(text: str, result: Result) -> str:
    """A page whose marked part is the result's first table."""
    made = f"{source(result)}\n{table(result.tables[0])}"
    begin, end = MARKS
    pattern = re.compile(f"(?<={re.escape(begin)}).*(?={re.escape(end)})", re.DOTALL)
    return pattern.sub(lambda _: made, text)


def written(machines: Sequence[Machine]) -> dict[str, str]:
    """The files that this command writes, by their paths."""
    readme = (ROOT / "README.md").read_text("utf-8")
    return {
        "docs/performance.md": page(machines),
        "docs/speed.svg": plot(find(machines, PLOT).tables[0]),
        "README.md": with_table(readme, find(machines, SPEED)),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    parser_of("page", __doc__).parse_args(arguments)
    for path, text in written(read_machines()).items():
        (ROOT / path).write_text(text, "utf-8")
