"""What a worker does with a job, in this process."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from nanoloom.workers import worker_main

EDITABLE = """
import importlib.util, sys
from importlib.machinery import ModuleSpec

class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "elsewhere":
            return importlib.util.spec_from_file_location(name, {place!r})

sys.meta_path.append(Finder)
"""


def test_jobs_of_packages_that_no_folder_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An editable package is found by what `site` runs; workers start without."""
    place = tmp_path / "hidden" / "of_a_package.py"
    place.parent.mkdir()
    place.write_text(
        "class Told:\n    def run(self, stage):\n        return 'was run'\n"
    )
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    asked = []

    def main() -> None:
        asked.append(None)
        exec(EDITABLE.format(place=str(place)), {})

    monkeypatch.setattr("site.main", main)
    frame = b"celsewhere\nTold\n(tR."  # what pickles such a job
    assert worker_main.answered(frame).value == "was run" and asked
    monkeypatch.delitem(sys.modules, "elsewhere")
    monkeypatch.setattr("site.main", lambda: None)
    sys.meta_path.pop()
    failure = worker_main.answered(frame).failure
    assert failure is not None and failure.kind == "ModuleNotFoundError"
