"""What a case is: a kind and a seed; where it runs, and what comes of it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from nanoloom.cache import Cache

CACHE, CACHE_BYTES = "cache", 200 << 20


@dataclass(frozen=True)
class Finding:
    """What must not be.

    kind: crash, hang, foreign (exception), memory, difference; refused is none of these
    but counted.
    """

    kind: str
    text: str


@dataclass
class Outcome:
    """How a case ended: passed, refused, empty or finding."""

    status: str
    finding: Finding | None = None
    operators: list[str] = field(default_factory=list[str])

    def to_line(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_line(cls, line: str) -> Outcome:
        facts: dict[str, Any] = json.loads(line)
        found = facts["finding"]
        finding = Finding(**found) if found else None
        return cls(facts["status"], finding, facts["operators"])


class Bench:
    """Where a worker's cases run: a folder with the cache and the case at hand.

    A case says where it is, so that whoever finds the process dead knows; and keeps the
    model and the arrays before they are used.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.case = folder / "case"
        self.journal = folder / "journal"
        folder.mkdir(parents=True, exist_ok=True)
        self.cache = Cache(folder / CACHE, CACHE_BYTES)
        self.label = ""

    def begin(self, label: str) -> None:
        """Forget the case before."""
        shutil.rmtree(self.case, ignore_errors=True)
        self.case.mkdir()
        self.label = label
        self.at("start")

    def at(self, place: str) -> None:
        self.journal.write_text(f"{self.label}\n{place}\n")

    def keep(
        self,
        name: str,
        model: onnx.ModelProto | bytes,
        arrays: Mapping[str, np.ndarray],
    ) -> Path:
        """Write the model and its inputs into the case's folder."""
        content = model if isinstance(model, bytes) else model.SerializeToString()
        path = self.case / f"{name}.onnx"
        path.write_bytes(content)
        for key, array in arrays.items():
            safe = "".join(c if c.isalnum() else "_" for c in key)
            if array.dtype.kind in "iubfV":
                np.save(self.case / f"{name}.{safe}.npy", array)
        return path
