"""The page about PyTorch runs, and the backend is found by its name."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch  # pyright: ignore[reportMissingImports]

from tests.docs.test_pages import blocks
from tests.sources import ROOT

NAMED = """
import torch
f = torch.compile(torch.nn.Linear(3, 2).eval(), backend="nanoloom")
with torch.no_grad():
    assert f(torch.ones(1, 3)).shape == (1, 2)
"""


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def test_what_the_page_says_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NANOLOOM_CACHE", str(tmp_path))
    names: dict[str, object] = {}
    for block in blocks(ROOT / "docs/from-pytorch.md"):
        if block.language == "python":
            exec(compile(block.text, "from-pytorch.md", "exec"), names)
    assert "fast" in names


def test_the_backend_has_its_name(tmp_path: Path) -> None:
    """As pip writes an entry point beside a package."""
    facts = tmp_path / "beside-1.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: beside\nVersion: 1\n")
    project = (ROOT / "pyproject.toml").read_text("utf-8")
    section = project.split("[project.entry-points.torch_dynamo_backends]\n")[1]
    line = section.splitlines()[0].replace('"', "")
    (facts / "entry_points.txt").write_text(f"[torch_dynamo_backends]\n{line}\n")
    path = os.pathsep.join([str(tmp_path), str(ROOT), *filter(None, sys.path)])
    done = subprocess.run(
        [sys.executable, "-c", NAMED],
        env=os.environ | {"PYTHONPATH": path, "NANOLOOM_CACHE": str(tmp_path / "c")},
        capture_output=True,
        text=True,
    )
    assert not done.returncode, done.stderr
