"""Samples: files of a folder, or arrays, each as the inputs of one call.

An archive .npz has an array for each input.  A file .npy is of a model's only input.
An array of many rows is many samples: where it has an axis more than the input, where
it is a multiple of a fixed batch, or where it is the only one and the batch is open.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np

from nanoloom.errors import InputError
from nanoloom.frontend.inputs import InputSpec, random_inputs
from nanoloom.frontend.npy import load_npy
from nanoloom.interface.check_inputs import check_inputs, listing

Array = np.ndarray[Any, np.dtype[Any]]
SUFFIXES = (".npy", ".npz")
SAVE = "save one sample a file with numpy.save, or numpy.savez for several inputs"


@dataclass(frozen=True)
class Sample:
    """The inputs of one call.  where: the file, or the place in a list."""

    where: str
    arrays: Mapping[str, Array]


def samples_of(given: object, specs: Sequence[InputSpec]) -> list[Sample]:
    """From a folder, an array of many rows, or a sequence of dicts (or arrays).

    Raises InputError for what does not fit the model, with the file and the input.
    """
    if isinstance(given, str | Path):
        return from_folder(Path(given), specs)
    if isinstance(given, np.ndarray):
        parts = [("samples", cast("Array", given))]
    elif isinstance(given, Mapping):
        parts = [("samples", cast("Mapping[str, Array]", given))]
    elif isinstance(given, Iterable):
        parts = [(f"sample {i}", each) for i, each in enumerate(given)]
    else:
        kind = type(given).__name__
        hint = "give a folder, an array of many rows, or a sequence of dicts"
        raise InputError(f"are a {kind}", where="samples", hint=hint)
    return checked(parts, specs, "samples")


def from_folder(folder: Path, specs: Sequence[InputSpec]) -> list[Sample]:
    """One sample or many for each .npy and .npz file, by name."""
    if not folder.is_dir():
        reason = "is a file" if folder.exists() else "is not there"
        raise InputError(f"{reason}; samples are files in a folder", where=str(folder))
    files = sorted(each for each in folder.iterdir() if each.suffix in SUFFIXES)
    if not files:
        raise InputError(
            "holds no samples: there is no .npy or .npz file",
            where=str(folder),
            hint=f"{SAVE}; or take random numbers with --random N, for speed only",
        )
    return checked([(str(each), read(each)) for each in files], specs, str(folder))


def read(path: Path) -> object:
    """The array of a .npy, or the arrays of a .npz by name."""
    if path.suffix == ".npy":
        return load_npy(path)
    try:
        with np.load(path, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except Exception as error:  # noqa: BLE001 - zip, zlib, struct, numpy: its own each
        reason = f"is no archive of arrays ({type(error).__name__})"
        raise InputError(reason, where=str(path), hint=SAVE) from None


def checked(
    parts: Sequence[tuple[str, object]], specs: Sequence[InputSpec], where: str
) -> list[Sample]:
    """All samples, each of which the model takes."""
    found: list[Sample] = []
    for place, given in parts:
        arrays = by_name(given, specs, place)
        for sample in rows(Sample(place, arrays), specs, alone=len(parts) == 1):
            found.append(fitting(sample, specs))
    if not found:
        raise InputError("there are no samples", where=where, hint=SAVE)
    return found


def by_name(
    given: object, specs: Sequence[InputSpec], where: str
) -> Mapping[str, Array]:
    """The arrays of one file by the inputs' names."""
    if isinstance(given, Mapping):
        named = cast("Mapping[str, object]", given)
        return {name: np.asarray(value) for name, value in named.items()}
    if len(specs) != 1:
        raise InputError(
            f"is one array, and the model takes {len(specs)}: {listing(specs)}",
            where=where,
            hint="save them by name with numpy.savez",
        )
    return {specs[0].name: np.asarray(given)}


def rows(sample: Sample, specs: Sequence[InputSpec], *, alone: bool) -> list[Sample]:
    """A file's samples: itself, or the parts of its arrays."""
    counts = {
        count
        for spec in specs
        if spec.name in sample.arrays
        for count in [parts_of(sample.arrays[spec.name], spec, alone)]
    }
    if counts == {0}:
        reason = "has arrays without rows"
        raise InputError(reason, where=sample.where, hint=SAVE)
    if len(counts) != 1 or counts == {None}:
        return [sample]
    (count,) = counts
    assert count is not None
    taller = {
        spec.name: sample.arrays[spec.name].ndim > len(spec.shape)
        for spec in specs
        if spec.name in sample.arrays
    }
    return [
        Sample(
            f"{sample.where}, row {row}",
            {
                name: array[row]
                if taller.get(name)
                else array[row * len(array) // count : (row + 1) * len(array) // count]
                for name, array in sample.arrays.items()
            },
        )
        for row in range(count)
    ]


def parts_of(array: Array, spec: InputSpec, alone: bool) -> int | None:
    """How many samples an array holds; None if it is one."""
    if array.ndim == len(spec.shape) + 1:
        return len(array)
    if array.ndim != len(spec.shape) or not array.ndim:
        return None
    batch = spec.shape[0]
    if isinstance(batch, str):
        return len(array) if alone else None
    several = batch > 0 and len(array) % batch == 0 and len(array) != batch
    return len(array) // batch if several else None


def fitting(sample: Sample, specs: Sequence[InputSpec]) -> Sample:
    """A sample of names, types, shapes that the model takes, of finite numbers."""
    try:
        arrays = check_inputs(specs, sample.arrays)
    except InputError as error:
        place = f"{sample.where}: {error.where}" if error.where else sample.where
        raise InputError(error.reason, where=place, hint=error.hint) from None
    for name, array in arrays.items():
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            kind = "NaN" if np.isnan(array).any() else "infinite"
            raise InputError(
                f"has numbers that are {kind}",
                where=f"{sample.where}: input {name}",
                hint="leave the file out, or mend what wrote it",
            )
    return Sample(sample.where, arrays)


def random_samples(count: int, specs: Sequence[InputSpec], seed: int) -> list[Sample]:
    """Made-up numbers; specs: with sizes that are known."""
    return [
        Sample(f"random {index}", random_inputs(specs, seed + index))
        for index in range(count)
    ]
