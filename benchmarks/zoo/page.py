"""docs/models.md: what became of each export of the zoo."""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import geometric_mean
from typing import Any

Row = dict[str, Any]
HEAD = """\
# Models

`make models` writes this page: architectures as their libraries and exporters write
them, with seeded weights, each compiled and compared with ONNX Runtime.

- When and where: {date}, {machine}, {threads} threads.
- With what: nanoloom at {commits}; {versions}.
- Right: every output differs by less than `nanoloom verify` allows, from what ONNX
  Runtime gives and from what PyTorch gives.
- Units: the largest difference, divided by that bound.
- Time ratio: the median time of ONNX Runtime, of PyTorch (the module as it is) or of
  what Inductor (`torch.compile`) makes of it, divided by nanoloom's, of runs in turns.
  Above 1, nanoloom is faster.
- Cold: CPU seconds, of all processes, to compile and run once, with nothing remembered.
  With \\*: while other programs worked as well, which lengthens them.
- Without times: measured while the machine did other things as well.

"""
PACKAGES = (
    "onnxruntime", "torch", "transformers", "timm", "scikit-learn", "lightgbm",
    "xgboost-cpu", "skl2onnx",
)  # fmt: skip
RATIOS = {
    "ONNX Runtime": "ratio", "PyTorch": "torch ratio", "Inductor": "inductor ratio",
}  # fmt: skip
OUTSIDE = ("not exported", "not run by ONNX Runtime", "runtime crashes")


def cpu() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = [x.partition(":")[2].strip() for x in lines if x.startswith("model name")]
    return names[0] if names else platform.machine()


def versions() -> str:
    found: list[str] = []
    for name in PACKAGES:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            continue
    return ", ".join(found)


def kind_of(row: Row) -> str:
    return row["name"].partition("/")[0]


def architecture_of(row: Row) -> str:
    return row["name"].partition("@")[0]


def summary(rows: Sequence[Row]) -> list[str]:
    lines = [
        "| library | architectures | exports | right | differ | refused | other "
        "| outside |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for kind in [*dict.fromkeys(map(kind_of, rows)), ""]:
        some = [row for row in rows if kind in ("", kind_of(row))]
        count = Counter(row["status"] for row in some)
        outside = sum(count[status] for status in OUTSIDE)
        known = count["right"], count["differs"], count["refused"]
        cells = [
            kind or "all", len(set(map(architecture_of, some))), len(some), *known,
            len(some) - sum(known) - outside, outside,
        ]  # fmt: skip
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return lines


def cells(row: Row) -> str:
    def number(key: str, form: str, scale: float = 1) -> str:
        return format(row[key] * scale, form) if key in row else ""

    parts = [
        f"`{row['name'].partition('/')[2]}`", row["status"], number("units", ".2g"),
        number("torch units", ".2g"), *(number(x, ".2f") for x in RATIOS.values()),
        number("cold", ".1f") + "\\*" * row.get("loaded", False),
        number("memory", ".0f", 1e-6),
    ]  # fmt: skip
    return f"| {' | '.join(parts)} |"


def speed(rows: Sequence[Row]) -> list[str]:
    """A line for each peer that something was timed beside."""
    lines = ["| timed beside | exports | slower by more than 5 % | geometric mean |"]
    lines += ["|---|---|---|---|"]
    for peer, key in RATIOS.items():
        ratios = [row[key] for row in rows if key in row]
        if ratios:
            slower = sum(ratio < 0.95 for ratio in ratios)
            mean = f"{geometric_mean(ratios):.2f}"
            lines.append(f"| {peer} | {len(ratios)} | {slower} | {mean} |")
    return lines


def write(rows: Sequence[Row], total: int, path: Path) -> None:
    """total: exports that there are, measured or not."""
    commits = dict.fromkeys(row["commit"] for row in rows if "commit" in row)
    head = HEAD.format(
        date=datetime.now(UTC).date(), machine=cpu(), threads=2, versions=versions(),
        commits=", ".join(commits),
    )  # fmt: skip
    path.write_text(head + body(rows, total))


def body(rows: Sequence[Row], total: int) -> str:
    """The page below its head, which says when, where and with what."""
    lines = [f"{len(rows)} of {total} exports are measured.", ""]
    lines += [*summary(rows), ""]
    lines += [*speed(rows), ""]
    lines += ["`outside`: not exported, or not run by ONNX Runtime either.", ""]
    lines += [
        "## What is not right",
        "",
        "| export | status | reason |",
        "|---|---|---|",
    ]
    for row in rows:
        if row["status"] != "right":
            reason = str(row.get("reason", "")).replace("|", "\\|").replace("`", "'")
            lines.append(f"| `{row['name']}` | {row['status']} | {reason[:160]} |")
    for kind in dict.fromkeys(map(kind_of, rows)):
        lines += [
            "", f"## {kind}", "",
            "| export | status | units | units to PyTorch | time ratio | to PyTorch "
            "| to Inductor | cold, CPU s | memory, MB |",
            "|---|---|---|---|---|---|---|---|---|",
        ]  # fmt: skip
        lines += [cells(row) for row in rows if kind_of(row) == kind]
    return "\n".join(lines) + "\n"
