"""What of torch a model is given as, found out without importing torch."""

from __future__ import annotations

import zipfile
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from nanoloom.errors import Error, ModelError

if TYPE_CHECKING:
    import onnx_ir as ir

INSTALL = "pip install 'nanoloom[torch]'"
MODULE = "torch.nn.modules.module", "Module"
EXPORTED = "torch.export.exported_program", "ExportedProgram"


def is_a(model: object, kind: tuple[str, str]) -> bool:
    return any((c.__module__, c.__name__) == kind for c in type(model).__mro__)


def is_module(model: object) -> bool:
    return is_a(model, MODULE)


def is_exported(model: object) -> bool:
    return is_a(model, EXPORTED)


def is_archive(path: Path) -> bool:
    """Whether a file is what torch.export.save writes (.pt2)."""
    try:
        with zipfile.ZipFile(path) as archive:
            return any(n.endswith("archive_format") for n in archive.namelist())
    except (OSError, zipfile.BadZipFile, ValueError):
        return False


def versions() -> tuple[str, ...]:
    """Of what imports an archive: the same file may become another graph."""
    found: list[str] = []
    for name in ("torch", "onnxscript"):
        try:
            found.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            continue
    return tuple(found)


def require_torch(where: str) -> None:
    """Raises Error, in a sentence that says what to install."""
    if find_spec("torch") is None:
        reason = "is a program of PyTorch, which is not installed"
        raise Error(reason, where=where, hint=INSTALL)


def read_archive(path: Path, via: str = "graph") -> ir.Model:
    """The model in a file that torch.export.save wrote.  via: as of `imported`."""
    require_torch(str(path))
    import torch

    from nanoloom.frontend.torch.archives import load

    try:
        exported = load(path)
    except Exception as error:
        lines = str(error).splitlines() or [type(error).__name__]
        raise ModelError(
            f"cannot be read by torch.export.load: {lines[0][:160]}",
            where=str(path),
            hint=f"save it again with torch {torch.__version__}",
        ) from error
    return imported(exported, via)


def imported(exported: object, via: str = "graph") -> ir.Model:
    """The model of an ExportedProgram.  via: "onnx" for torch's own exporter."""
    if via == "onnx":
        from nanoloom.frontend.torch.whole_model import import_whole

        return import_whole(exported).model
    from nanoloom.frontend.torch.exported import import_exported

    return import_exported(exported, counted=True).model
