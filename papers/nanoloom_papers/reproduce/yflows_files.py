"""Rows of the dataflow paper's figures as records, in CSV and JSON."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from nanoloom.schedule.dataflow.dataflow import parse
from nanoloom_papers.reproduce.flow_layers import FlowLayer
from nanoloom_papers.reproduce.flow_search import Ranked
from nanoloom_papers.reproduce.tables import csv_of
from nanoloom_papers.reproduce.yflows import Row, findings, ratio

SIZES = ("filter", "size", "filters", "stride", "registers", "channels")
LAYER = (*SIZES, "element")
FIELDS = (*LAYER, "dataflow", "anchor", "median_seconds", "of_basic", "of_output",
          "note")  # fmt: skip


def records(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """A flat record for each layer and dataflow, in FIELDS' order."""
    made: list[dict[str, Any]] = []
    for row in rows:
        for x in row.ranked:
            anchor = x.flow.anchor
            values = (
                *asdict(row.layer).values(), str(x.flow), anchor, x.seconds,
                ratio(x.seconds, row.basic(anchor)),
                ratio(x.seconds, row.best("output")), x.absent,
            )  # fmt: skip
            made.append(dict(zip(FIELDS, values, strict=True)))
    return made


def as_csv(rows: Sequence[Row]) -> str:
    return csv_of(FIELDS, records(rows))


def from_csv(text: str) -> list[Row]:
    """The rows that `as_csv` wrote, none of a file with other columns."""
    reader = csv.DictReader(text.splitlines())
    if tuple(reader.fieldnames or ()) != FIELDS:
        return []
    found: dict[FlowLayer, list[Ranked]] = {}
    for each in reader:
        sizes = (int(each[name]) for name in SIZES)
        layer = FlowLayer(*sizes, element=each["element"])
        seconds = float(each["median_seconds"]) if each["median_seconds"] else None
        ranked = Ranked(parse(each["dataflow"]), seconds, each["note"])
        found.setdefault(layer, []).append(ranked)
    return [Row(layer, tuple(ranked)) for layer, ranked in found.items()]


def as_dict(rows: Sequence[Row], target: str) -> dict[str, Any]:
    """What `--json` prints."""
    told = [asdict(finding) for finding in findings(rows)]
    return {"target": target, "results": records(rows), "findings": told}
