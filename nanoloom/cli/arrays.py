"""Arrays of a run: where they come from, where they go, what is said of them."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from zipfile import ZipFile

import numpy as np
import typer

from nanoloom.cli import output_files
from nanoloom.errors import InputError

if TYPE_CHECKING:
    from nanoloom.interface.check_inputs import Spec

Array = np.ndarray[Any, np.dtype[Any]]
FIRST = 8  # values of an array that are shown


def load_inputs(files: Mapping[str, str], specs: Sequence[Spec]) -> dict[str, Array]:
    """Arrays by input name; raises InputError for a name or file that is none."""
    from nanoloom.frontend.npy import load_npy
    from nanoloom.interface.check_inputs import listing

    names = {spec.name for spec in specs}
    for name in files:
        if name not in names:
            raise InputError(
                f"the model has no input {name}",
                hint=f"it takes {listing(specs)}" if names else "it takes none",
            )
    return {name: load_npy(file) for name, file in files.items()}


@dataclass(frozen=True)
class Destinations:
    """Where outputs are written: a file by output name, a folder or one file for all.

    archive: a file .npz.
    """

    files: Mapping[str, Path]
    folder: Path | None
    archive: Path | None = None

    @classmethod
    def of(
        cls, words: Sequence[str] | None, names: Sequence[str], model: Path
    ) -> Destinations:
        """From `--output` words; names: of the outputs.

        Without a name a file .npy takes the only output, and one .npz all.  Raises
        InputError for an unknown output, BadParameter for two folders, Error for one
        file for two outputs, and for the model's own.
        """
        files: dict[str, Path] = {}
        folder: Path | None = None
        archive: Path | None = None
        for word in words or ():
            name, equals, file = word.partition("=")
            require_file(word, file if equals else word)
            if not equals and is_file(Path(word), ".npz") and archive is None:
                archive = Path(word)
                continue
            if equals and name not in names:
                hint = f"it has {', '.join(names)}"
                raise InputError(f"the model has no output {name}", hint=hint)
            if name in files or (not equals and folder):
                reason = "an output or folder is given twice"
                raise typer.BadParameter(reason, param_hint="--output")
            if equals:
                files[name] = Path(file)
            elif is_file(Path(word), ".npy"):
                if len(names) != 1:
                    reason = f"{word} is one file, and there are {len(names)} outputs"
                    hint = f"{reason}: name one, as {names[0]}={word}, or a folder"
                    raise typer.BadParameter(hint, param_hint="--output")
                files[names[0]] = Path(word)
            else:
                folder = Path(word)
        made = cls(files, folder, archive)
        made.check(names, model)
        return made

    def check(self, names: Sequence[str], model: Path) -> None:
        """Refuse now what could not be written after the work, or would be lost."""
        for name in names:
            if name in self.files:
                with output_files.refusing(self.files[name]):
                    output_files.check_file(self.files[name], ".npy")
        if self.folder is not None:
            output_files.folder(self.folder)
        if self.archive is not None:
            with output_files.refusing(self.archive):
                output_files.check_file(self.archive, ".npz")
        found = [
            (f"output {name}", path) for name in names if (path := self.path(name))
        ]
        for _, path in found:
            output_files.require_other(path, model)
        output_files.require_apart(x for x in found if x[1] != self.archive)

    def path(self, name: str) -> Path | None:
        """The file for an output, if it is to be written."""
        if name in self.files:
            return self.files[name]
        if self.folder is not None:
            return self.folder / f"{output_files.file_name(name)}.npy"
        return self.archive

    def write(self, arrays: Mapping[str, Array]) -> None:
        """Write what is to be written; raises Error if the disk refuses."""
        for name, array in arrays.items():
            path = self.path(name)
            if path is not None and path != self.archive:
                with output_files.written(path) as file:
                    np.save(file, array, allow_pickle=False)
        if self.archive is not None:
            with output_files.written(self.archive) as file, ZipFile(file, "w") as made:
                for name, array in arrays.items():
                    with made.open(f"{name}.npy", "w", force_zip64=True) as part:
                        np.save(part, array, allow_pickle=False)


def is_file(path: Path, ending: str) -> bool:
    """Whether a word after `--output` is a file of this ending, no folder."""
    return path.suffix == ending and not path.is_dir()


def require_file(word: str, path: str) -> None:
    """Raise BadParameter for what no array can be written to, whatever the model is."""
    reason = ""
    if path == "-":
        reason = f"{word}: an array is not printed; name a file .npy"
    elif word != path and Path(path).suffix == ".npz":
        reason = f"{word}: a file .npz is for all outputs; name it alone"
    if reason:
        raise typer.BadParameter(reason, param_hint="--output")


def described(name: str, array: Array) -> dict[str, Any]:
    """Name, type, shape and a summary of the values, as JSON takes them."""
    return {
        "name": name,
        "dtype": array.dtype.name,
        "shape": list(array.shape),
        **summary(array),
    }


def summary(array: Array) -> dict[str, Any]:
    """Extremes and mean of the finite values, how many are not, the first few."""
    first = [number(v) for v in array.reshape(-1)[:FIRST]]
    if array.size == 0 or array.dtype.kind == "c":
        return {"min": None, "max": None, "mean": None, "first": first}
    if array.dtype.kind in "iub":
        mean = number(array.mean(dtype=np.float64))
        low, high = (number(x) for x in (array.min(), array.max()))
        return {"min": low, "max": high, "mean": mean, "first": first}
    wide = array.astype(np.float64)
    finite = wide[np.isfinite(wide)]
    found = {"min": None, "max": None, "mean": None, "first": first}
    if finite.size:
        values = (finite.min(), finite.max(), finite.mean())
        found |= dict(zip(("min", "max", "mean"), map(number, values), strict=True))
    nan = int(np.isnan(wide).sum())
    return found | {"nan": nan, "inf": int(array.size - finite.size - nan)}


def number(value: Any) -> Any:
    """A numpy scalar as JSON takes it; NaN and infinities, which it lacks, as text."""
    plain = value.item() if value.dtype.kind in "iubfc" else float(value)
    if isinstance(plain, complex):
        return str(plain)
    if isinstance(plain, float) and not math.isfinite(plain):
        return str(plain)
    return plain


def as_json(value: object, indent: str = "") -> str:
    """JSON for readers, too: indented, but a list of numbers or words is one line."""
    inner = indent + "  "
    match value:
        case dict() if value:
            items = cast("dict[str, object]", value).items()
            lines = [f"{json.dumps(k)}: {as_json(v, inner)}" for k, v in items]
            opening, closing = "{}"
        case list() | tuple() if any(isinstance(v, dict | list) for v in value):
            lines = [as_json(v, inner) for v in cast("list[object]", value)]
            opening, closing = "[]"
        case _:
            return json.dumps(value, ensure_ascii=False, allow_nan=False)
    body = ",\n".join(inner + line for line in lines)
    return f"{opening}\n{body}\n{indent}{closing}"


def short(value: object) -> str:
    """A number for a table's cell: three digits, integers whole."""
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.3g}"
    return str(value)


def dims_text(shape: Sequence[int | str]) -> str:
    """2x384, or `scalar`."""
    return "x".join(str(d) for d in shape) or "scalar"
