"""Damaged caches and libraries: the cache may fail, the work may not."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
import onnx

import nanoloom
from nanoloom.cache import Cache
from nanoloom.errors import Error, InternalError
from tests.fuzz.cases import Bench, Finding, Outcome
from tests.fuzz.oracle import Array, Arrays

ROUNDS = 3
# In a cache, beside what is compiled for one model, are the runtime's objects, which
# take seconds to make: most cases leave them as they are.
OBJECTS = 0.1


def check_cache(
    content: bytes, feeds: Arrays, rng: np.random.Generator, bench: Bench
) -> Outcome:
    """A cache that is damaged between two runs changes no result."""
    root = bench.case / "cache"
    bench.keep("whole", content, feeds)
    (root / "kernels").mkdir(parents=True)
    if (bench.cache.root / "kernels").exists():  # no case before had any
        shutil.copytree(
            bench.cache.root / "kernels", root / "kernels", dirs_exist_ok=True
        )
    before = {path.name for path in (root / "kernels").iterdir()}
    bench.at("cache: first run")
    first = nanoloom.compile(content, threads=1, cache=Cache(root))(feeds)
    for _ in range(ROUNDS):
        kept = set() if rng.random() < OBJECTS else before
        told = damage_some(root, kept, rng)
        bench.at(f"cache: {told}")
        again = run(content, feeds, root)
        for name, array in first.items():
            if array.tobytes() != again[name].tobytes():
                text = f"cache, {told}: {name} is another result"
                return Outcome("finding", Finding("difference", text))
    return Outcome("passed")


def run(content: bytes, feeds: Arrays, root: Path) -> dict[str, Array]:
    """Compile with what the cache has, and run; an Error is a finding here."""
    cache = Cache(root, warn=lambda text: None)
    try:
        return nanoloom.compile(content, threads=1, cache=cache)(feeds)
    except Error as error:
        raise AssertionError(f"a damaged cache stops the work: {error}") from error


def damage_some(root: Path, kept: set[str], rng: np.random.Generator) -> str:
    """Damage one to three files or folders; says how."""
    told: list[str] = []
    for _ in range(int(rng.integers(1, 4))):
        paths = sorted(p for p in root.rglob("*") if p.name not in kept)
        if not paths:
            break
        path = paths[int(rng.integers(len(paths)))]
        told.append(f"{path.relative_to(root)} {damage(path, rng)}")
    return ", ".join(told)


def damage(path: Path, rng: np.random.Generator) -> str:
    """One file or folder; files are replaced, as programs may run from the old ones."""
    if path.is_dir():
        shutil.rmtree(path)
        if rng.random() < 0.3:
            path.write_bytes(b"no folder")
            return "is a file"
        return "is gone"
    if rng.random() < 0.2:
        path.unlink()
        return "is gone"
    name, content = changed(path.read_bytes(), rng)
    draft = path.with_name("draft")
    draft.write_bytes(content)
    os.replace(draft, path)
    return name


def changed(content: bytes, rng: np.random.Generator) -> tuple[str, bytes]:
    """Some bits turned over, an end cut off, nothing at all, or more than there was."""
    way = int(rng.integers(6))
    made = bytearray(content)
    if way == 0 or not made:
        return "is longer", content + rng.bytes(9)
    if way == 1:
        return "is empty", b""
    if way == 2:
        return "is cut off", content[: int(rng.integers(len(content)))]
    for _ in range(1 if way == 3 else int(rng.integers(1, 30))):
        made[int(rng.integers(len(made)))] ^= 1 << int(rng.integers(8))
    return "is changed", bytes(made)


def check_library(
    content: bytes, feeds: Arrays, rng: np.random.Generator, bench: Bench
) -> Outcome:
    """A damaged library is refused, or gives what the whole one gives."""
    bench.keep("whole", content, feeds)
    bench.at("library: compile")
    dims = named_dims(content, feeds)
    program = nanoloom.compile(content, threads=1, cache=bench.cache, dims=dims)
    first = program(feeds)
    whole = program.save(bench.case / "whole.so").read_bytes()
    for number in range(ROUNDS):
        name, damaged = changed(whole, rng)
        bench.at(f"library: {name}")
        path = bench.case / f"damaged{number}.so"
        path.write_bytes(damaged)
        try:
            made = nanoloom.load(path)(feeds)
        except InternalError:
            raise
        except Error:
            continue
        for key, array in first.items():
            if array.tobytes() != made[key].tobytes():
                text = f"library that {name}: {key} is another result"
                return Outcome("finding", Finding("difference", text))
    return Outcome("passed")


def named_dims(content: bytes, feeds: Arrays) -> dict[str, int]:
    """The sizes of the dimensions with a name."""
    found: dict[str, int] = {}
    for x in onnx.ModelProto.FromString(content).graph.input:
        sizes = feeds[x.name].shape if x.name in feeds else ()
        dims = x.type.tensor_type.shape.dim
        for dim, size in zip(dims, sizes, strict=False):
            if dim.dim_param:
                found[dim.dim_param] = size
    return found
