"""The wheels of nanoloom and nanoloom-runtime, from one tree.

    python wheels/build.py dist

The runtime is what `nanoloom.load` imports, and what that imports, under the same
names: `import nanoloom` is the same in both, and both may be installed together.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE = "nanoloom"
LOADS = f"{PACKAGE}.api.loaded"  # what the runtime begins with
BESIDE = ("__init__.py", "py.typed")  # of the package itself
COMPILER = ("nanoloom", "pyproject.toml", "README.md", "LICENSE")
MOMENT = "946684800"  # seconds: the same files make the same wheel


def main(output: Path) -> None:
    """Write both wheels into a folder; a commit with a tag has its version."""
    if why := mistagged(tags(), version()):
        sys.exit(why)
    output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        for stage in (compiler(Path(scratch, "all")), runtime(Path(scratch, "part"))):
            built(stage, output)


def compiler(stage: Path) -> Path:
    """A folder with all of nanoloom."""
    stage.mkdir()
    ignored = shutil.ignore_patterns("__pycache__", "*.pyc")
    for name in COMPILER:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, stage / name, ignore=ignored)
        else:
            shutil.copy(ROOT / name, stage)
    return stage


def runtime(stage: Path) -> Path:
    """A folder with what programs need to run."""
    files = {*needed(), *(ROOT / PACKAGE / name for name in BESIDE)}
    for file in sorted(files):
        place = stage / file.relative_to(ROOT)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, place)
    shutil.copy(ROOT / "LICENSE", stage)
    text = Path(__file__).with_name("runtime.toml").read_text("utf-8")
    (stage / "pyproject.toml").write_text(text.replace("VERSION", version()), "utf-8")
    return stage


def tags() -> list[str]:
    """Of this commit; none where there is no repository."""
    command = ["git", "-C", str(ROOT), "tag", "--points-at", "HEAD"]
    try:
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return []
    return ran.stdout.split()


def mistagged(tags: list[str], version: str) -> str:
    """What is wrong with the tags of a version; "" where they are right, or none is."""
    named = [tag for tag in tags if re.fullmatch(r"v\d+(\.\d+)+", tag)]
    if not named or f"v{version}" in named:
        return ""
    return f"pyproject.toml: version is {version}, and the commit's tag {named[0]}"


def version() -> str:
    """Of nanoloom, as pyproject.toml has it."""
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    found = re.search(r'^version = "(.+)"$', text, re.MULTILINE)
    assert found is not None, "pyproject.toml has no version"
    return found[1]


def needed() -> set[Path]:
    """The files that loading a program may import, now or later."""
    waiting, found = [LOADS], set[Path]()
    while waiting:
        file = file_of(waiting.pop())
        if file is None or file in found:
            continue
        found.add(file)
        if file != ROOT / PACKAGE / "__init__.py":  # imports what is asked for
            waiting += imported(ast.parse(file.read_text("utf-8")))
    return found


def file_of(module: str) -> Path | None:
    """The file of a module or package of nanoloom's; None for a name in a module."""
    path = ROOT.joinpath(*module.split("."))
    files = (path.with_suffix(".py"), path / "__init__.py")
    return next((file for file in files if file.is_file()), None)


def imported(tree: ast.AST) -> Iterator[str]:
    """Modules of nanoloom's that code imports when it runs, and their packages."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        names: list[str] = []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module, *(f"{node.module}.{x.name}" for x in node.names)]
        elif isinstance(node, ast.Import):
            names = [x.name for x in node.names]
        for name in names:
            parts = name.split(".")
            if parts[0] == PACKAGE:
                yield from (".".join(parts[: n + 1]) for n in range(len(parts)))
        yield from imported(node)


def built(stage: Path, output: Path) -> None:
    """Make a wheel of a folder; what setuptools says of an error is shown."""
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"]
    command += ["--no-build-isolation", "--disable-pip-version-check"]
    command += ["--wheel-dir", str(output), str(stage)]
    environment = {**os.environ, "SOURCE_DATE_EPOCH": MOMENT}
    subprocess.run(command, check=True, env=environment)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "dist"))
