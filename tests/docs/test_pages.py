"""What the pages tell a reader to type is typed here, in an empty folder."""

from __future__ import annotations

import os
import platform
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from nanoloom.cache import Cache
from nanoloom.cli.main import main, verbs
from tests.c_libraries import lend
from tests.sources import python

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#]+)(?:#[^)]*)?\)")
ANCHORED = re.compile(r"\]\(([\w./-]*)#([^)]+)\)")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
MODULE = re.compile(r"`((?:[\w-]+/)*\w+\.(?:py|c))`")
PAGES = sorted(ROOT.glob("*.md")) + sorted((ROOT / "docs").glob("*.md"))
RUNNABLE = (
    "add-a-target.md",
    "binary.md",
    "chapter-h.md",
    "computations.md",
    "convolutions.md",
    "custom-operators.md",
    "dataflows.md",
    "decoding.md",
    "deploying.md",
    "executables.md",
    "explain.md",
    "from-onnxruntime.md",
    "fusion.md",
    "getting-started.md",
    "kernels.md",
    "profiling.md",
    "quantize.md",
    "schedules.md",
    "scoring.md",
    "sizes.md",
)

# Of which machines a page makes executables.
EXECUTABLES = {
    "add-a-target.md": ["powerpc64le"],
    "executables.md": sorted({platform.machine(), "riscv64"}),
    "sizes.md": [platform.machine()],
}


@dataclass(frozen=True)
class Block:
    """A fenced block of a page: its language and its text."""

    language: str
    text: str


def blocks(page: Path) -> list[Block]:
    return [Block(*found) for found in FENCE.findall(page.read_text("utf-8"))]


def commands(block: Block) -> list[list[str]]:
    """The words of every line behind a prompt."""
    lines = block.text.splitlines()
    return [shlex.split(line[2:]) for line in lines if line.startswith("$ ")]


def nanoloom(words: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the command in a folder, with a cache of the folder's own."""
    return run([sys.executable, "-m", "nanoloom", *words], folder)


def cache_of(folder: Path) -> Path:
    """Where Python finds it too, once the folder holds the caches of the user."""
    return folder / "user" / "nanoloom"


def run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=folder,
        env=os.environ | {"NANOLOOM_CACHE": str(cache_of(folder))},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize("name", RUNNABLE)
def test_what_a_page_says_works(
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Commands in this process, which has loaded the compiler already."""
    for arch in EXECUTABLES.get(name, ()):
        lend(arch, Cache(cache_of(tmp_path)))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user"))
    monkeypatch.setenv("NANOLOOM_CACHE", str(cache_of(tmp_path)))
    monkeypatch.delenv("NANOLOOM_DEBUG", raising=False)
    names: dict[str, object] = {}
    for block in blocks(ROOT / "docs" / name):
        if block.language == "python":
            exec(compile(block.text, name, "exec"), names)
        for program, *words in commands(block):
            if program.startswith("./"):
                done = run([program, *words], tmp_path)
                assert done.returncode == 0, f"{words}: {done.stderr}"
            else:
                assert program == "nanoloom"
                assert main(words) == 0, f"{words}: {capfd.readouterr().err}"


def test_a_command_that_fails_is_seen(tmp_path: Path) -> None:
    assert nanoloom(["run", "nothing.onnx"], tmp_path).returncode == 1


def test_the_readme_lists_the_verbs_that_exist() -> None:
    text = "".join(b.text for b in blocks(ROOT / "README.md"))
    listed = set(re.findall(r"^nanoloom (\w+)", text, re.MULTILINE))
    assert listed | {"demo"} == {verb.name for verb in verbs()}


def test_the_python_of_the_readme_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import numpy as np
    import onnx

    model = onnx.parser.parse_model(
        '<ir_version: 10, opset_import: ["": 21]> '
        "g (int64[n] ids, float[n] mask) => (float[n] y) "
        "{ f = Cast<to=1>(ids)  y = Mul(f, mask) }"
    )
    onnx.save(model, tmp_path / "model.onnx")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user"))
    names: dict[str, object] = {
        "ids": np.array([1, 2, 3]),
        "mask": np.array([1, 0, 2], np.float32),
    }
    python = [b for b in blocks(ROOT / "README.md") if b.language == "python"]
    assert python
    for block in python:
        exec(compile(block.text, "README.md", "exec"), names)
    outputs = names["outputs"]
    assert isinstance(outputs, dict)
    assert outputs["y"].tolist() == [1, 0, 6]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    targets = [t for t in LINK.findall(page.read_text("utf-8")) if "://" not in t]
    missing = [target for target in targets if not (page.parent / target).exists()]
    assert not missing


def anchors(page: Path) -> set[str]:
    """Of a page's headings, as GitHub makes them."""
    text = FENCE.sub("", page.read_text("utf-8"))
    words = (re.sub(r"[^\w -]", "", each.lower()) for each in HEADING.findall(text))
    return {each.replace(" ", "-") for each in words}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_headings(page: Path) -> None:
    found = ANCHORED.findall(page.read_text("utf-8"))
    targets = [(page.parent / name if name else page, anchor) for name, anchor in found]
    assert not [t for t in targets if t[1] not in anchors(t[0])]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_code_that_a_page_names_is_there(page: Path) -> None:
    """By a path, or by the last parts of one."""
    known = {f"/{each.path}" for each in python()}
    known |= {f"/{each}" for each in (ROOT / "nanoloom/runtime").glob("*.c")}
    named = set(MODULE.findall(page.read_text("utf-8")))
    assert not {n for n in named if not any(k.endswith(f"/{n}") for k in known)}
