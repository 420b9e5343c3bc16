"""docs/narrow.md: the files that know one narrow pattern; none is added quietly.

Which files there are is the tests' question; what a file is about, a reader's.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from tests.sources import ROOT

PAGE = ROOT / "docs/narrow.md"
ROOMS = ("fusion", "graph", "ir", "kernels", "memory", "vector")
WORDS = ("pair", "border", "shape", "type")
# Rows of the first table: it only loses some.  A new file goes into the second one.
AT_MOST = 45
LONGEST, SHORTEST_REASON = 12, 6  # words of a pattern, and of a reason
ROW = re.compile(r"^\| `([\w/]+\.py)` \| `(\w+)` \| ([^|]+) \|(?: ([^|]*) \|)?$", re.M)


class Row(NamedTuple):
    """A line of a table.  reason: of the second one, else empty."""

    file: str
    word: str
    pattern: str
    reason: str


def rows(text: str) -> list[Row]:
    return [Row(*(x or "" for x in found.groups())) for found in ROW.finditer(text)]


def tables(text: str) -> tuple[list[Row], list[Row]]:
    """The files there were, and those that were added."""
    first, heading, second = text.partition("## Added since")
    assert heading
    return rows(first), rows(second)


def wrong(text: str) -> list[str]:
    """Every sentence that the page has to answer for."""
    first, second = tables(text)
    found: list[str] = []
    if len(first) > AT_MOST:
        found.append(f"{len(first)} rows, at most {AT_MOST}: add to the second table")
    for row in (*first, *second):
        if row.file.split("/")[0] not in ROOMS:
            found.append(f"{row.file} is in none of {', '.join(ROOMS)}")
        if not (ROOT / "nanoloom" / row.file).is_file():
            found.append(
                f"{row.file} is not there: remove its row, or correct its path"
            )
        if row.word not in WORDS:
            found.append(f"{row.file}: {row.word} is none of {', '.join(WORDS)}")
        if len(row.pattern.split()) > LONGEST:
            found.append(f"{row.file}: its pattern has more than {LONGEST} words")
    for row in second:
        if len(row.reason.split()) < SHORTEST_REASON:
            found.append(f"{row.file}: why does no general mechanism carry it?")
    pairs = [(row.file, row.pattern) for row in (*first, *second)]
    found += [f"{x[0]} has two equal rows" for x in set(pairs) if pairs.count(x) > 1]
    lines = [x for x in text.splitlines() if x.startswith("| `") and ".py" in x]
    if len(lines) != len(pairs):
        found.append("a row does not have the form of the others")
    return found


def test_the_list_of_narrow_files_holds() -> None:
    found = wrong(PAGE.read_text("utf-8"))
    assert not found, "\n" + "\n".join(found)


def test_a_file_that_is_added_needs_a_reason() -> None:
    text = PAGE.read_text("utf-8")
    name = "vector/stage.py"
    row = f"| `{name}` | `type` | halves of bytes |"
    assert wrong(f"{text}{row}  |\n") == [
        f"{name}: why does no general mechanism carry it?"
    ]
    reason = "only two targets have the instruction, whose lanes differ"
    assert wrong(f"{text}{row} {reason} |\n") == []


def test_the_first_table_takes_no_more_files() -> None:
    first, heading, rest = PAGE.read_text("utf-8").partition("\n## Added since")
    more = "".join(
        f"| `vector/stage.py` | `type` | pattern {n} |\n" for n in range(AT_MOST)
    )
    (told,) = wrong(f"{first}{more}{heading}{rest}")
    assert told.endswith(f"at most {AT_MOST}: add to the second table")


def test_a_file_that_is_gone_is_seen() -> None:
    text = PAGE.read_text("utf-8")
    told = wrong(text.replace("`graph/sign_values.py`", "`graph/gone.py`", 1))
    assert told == ["graph/gone.py is not there: remove its row, or correct its path"]
