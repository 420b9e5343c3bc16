"""What docs/engines.md tells a reader to type."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.docs.test_pages import ROOT, blocks


def test_the_page_of_engines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    names: dict[str, object] = {}
    found = [b for b in blocks(ROOT / "docs/engines.md") if b.language == "python"]
    assert len(found) == 4
    for block in found:
        exec(compile(block.text, "engines.md", "exec"), names)
