"""Install the wheels into a bare environment of each Python that is here, and use them.

    python wheels/pythons.py dist [PYTHON...]

`dist` is what `make wheels` wrote: a local index.  What the wheels need comes from
where pip finds it.  Of each Python, one environment gets nanoloom, which compiles a
model, and another one nanoloom-runtime, which runs it.  Without names, all Pythons that
are found.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

OLDEST, NEWEST = (3, 11), (3, 14)
NAME = re.compile(r"python3\.(\d+)")

COMPILE = """
import sys, numpy, onnx.parser, nanoloom
model = onnx.parser.parse_model('''<ir_version: 8, opset_import: ["": 17]>
    g (float[n, 3] x) => (float[n, 3] y) { y = Softmax(x) }''')
program = nanoloom.compile(model, cache=sys.argv[1] + "/cache")
y = program({"x": numpy.eye(3, dtype="f")})["y"]
assert abs(y.sum(axis=1) - 1).max() < 1e-6
program.save(sys.argv[1] + "/model.so")
"""
RUN = """
import sys, numpy, nanoloom
y = nanoloom.load(sys.argv[1] + "/model.so")({"x": numpy.eye(3, dtype="f")})["y"]
assert abs(y.sum(axis=1) - 1).max() < 1e-6
"""


def main(words: list[str]) -> int:
    """0 where all is right; what fails is said, and the next Python is tried."""
    index = Path(words[0] if words else "dist").resolve()
    if not list(index.glob("nanoloom-*.whl")):
        print(f"{index}: no wheel of nanoloom; make wheels writes it", file=sys.stderr)
        return 1
    chosen = words[1:] or found(os.environ.get("PATH", "").split(os.pathsep))
    failed = 0
    for python in chosen:
        with tempfile.TemporaryDirectory() as folder:
            why = tried(python, index, Path(folder))
        print(f"{python}: {why or 'nanoloom and nanoloom-runtime work'}", flush=True)
        failed += bool(why)
    if not chosen:
        print("no Python from 3.11 on is here", file=sys.stderr)
    return int(bool(failed) or not chosen)


def found(folders: Iterable[str], versions: Path | None = None) -> list[str]:
    """A Python of each supported version: of these folders, of pyenv, of uv."""
    home = versions or Path.home()
    places = [Path(folder) for folder in folders if folder]
    places += sorted(home.glob(".pyenv/versions/3.*/bin"))
    places += sorted(home.glob(".local/share/uv/python/cpython-3.*/bin"))
    made: dict[int, str] = {}
    for place in places:
        for file in sorted(place.glob("python3.*")):
            named = NAME.fullmatch(file.name)
            minor = int(named[1]) if named else 0
            if OLDEST <= (3, minor) <= NEWEST and minor not in made and runs(file):
                made[minor] = str(file)
    return [made[minor] for minor in sorted(made)]


def runs(python: Path) -> bool:
    """Whether it is one: a shim of pyenv's may stand for none."""
    command = [python, "-c", "import venv, ensurepip"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def tried(python: str, index: Path, folder: Path) -> str:
    """What goes wrong with a Python; "" where nothing does."""
    for package, script in (("nanoloom", COMPILE), ("nanoloom-runtime", RUN)):
        place = folder / package
        own = str(place / "bin" / "python")
        install = [own, "-m", "pip", "install", "--quiet", "--find-links", str(index)]
        for command in (
            [python, "-m", "venv", str(place)],
            [*install, "--disable-pip-version-check", package],
            [own, "-c", script, str(folder)],
        ):
            ran = subprocess.run(
                command, capture_output=True, text=True, check=False, cwd=folder
            )
            if ran.returncode:
                lines = (ran.stderr or ran.stdout).strip().splitlines()
                return f"{package}: {lines[-1] if lines else 'failed'}"
        shutil.rmtree(place)
    return ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
