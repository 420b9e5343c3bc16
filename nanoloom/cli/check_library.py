"""nanoloom check model.so: what a library says of itself, and whether it is whole."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nanoloom.cli.failures import AT_FAULT, DONE


def said_by(path: Path) -> Mapping[str, Any] | None:
    """The manifest of a library; None for what is none."""
    from nanoloom import manifest

    try:
        return manifest.read(path)
    except OSError:
        return None  # whoever opens it as a model says why


def check_library(path: Path, said: Mapping[str, Any], *, json: bool) -> int:
    """Say what a library is; the status is that of a fault where it cannot run here."""
    from nanoloom.api.loaded import load
    from nanoloom.cli.arrays import as_json
    from nanoloom.errors import Error

    problem = ""
    try:
        with load(path, threads=1):
            pass
    except Error as error:
        problem = str(error)
    if json:
        print(as_json({"library": str(path), "problem": problem, **said}))
    else:
        show(path, said, problem)
    return AT_FAULT if problem else DONE


def show(path: Path, said: Mapping[str, Any], problem: str) -> None:
    """The same for readers."""
    from nanoloom.cli.terminal import indented, out

    screen = out()
    verdict = "does not run here" if problem else "whole, runs here"
    screen.print(f"{path}: {verdict}", markup=False, style="bold", soft_wrap=True)
    if problem:
        screen.print(indented(problem, 2))
    model = said["model"]
    rows = {
        "model": f"{model['name']} ({model['digest'][:12]})",
        "compiled by": f"nanoloom {said['nanoloom']}, format {said['format']}",
        "code for": ", ".join(said["targets"]),
        "precision": said["precision"],
        "weights": f"{said['parameter_bytes']:,} bytes",
        **{f"input {x['name']}": tensor(x) for x in said["inputs"]},
        **{f"output {x['name']}": tensor(x) for x in said["outputs"]},
        **{f"dimension {x}": n for x, n in said["dimensions"].items()},
    }
    if said["session"]:
        rows["session"] = "keeps keys and values between calls"
    width = max(map(len, rows))
    for name, text in rows.items():
        screen.print(f"  {name:<{width}}  {text}", markup=False, soft_wrap=True)


def tensor(said: Mapping[str, Any]) -> str:
    """f32 nx16."""
    return f"{said['element']} {'x'.join(map(str, said['shape'])) or 'scalar'}"
