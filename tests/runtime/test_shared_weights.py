"""Variants of a program: weights once on disk and in memory, the last ones kept."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import nanoloom
from nanoloom.api import program as programs
from nanoloom.api.program import Program
from nanoloom.cache import Cache
from nanoloom.errors import InputError
from nanoloom.options import CompileOptions
from nanoloom.target.cached_host import host
from nanoloom.weights.weight import Weight
from tests.c_libraries import lend_runtime

DEPTH, WIDTH = 300, 500
W = np.random.default_rng(5).standard_normal((DEPTH, WIDTH)).astype(np.float32)
V = np.random.default_rng(6).standard_normal((1, WIDTH)).astype(np.float32)
ROWS = (64, 128)  # that read the same panels


def network(second: str = "Add") -> bytes:
    """(x @ W) + V, or another operation."""
    graph = helper.make_graph(
        [
            helper.make_node("MatMul", ["x", "w"], ["m"]),
            helper.make_node(second, ["m", "v"], ["y"]),
        ],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", DEPTH])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", WIDTH])],
        [numpy_helper.from_array(W, "w"), numpy_helper.from_array(V, "v")],
    )
    opset = [helper.make_opsetid("", 17)]
    model = helper.make_model(graph, opset_imports=opset, ir_version=8)
    return model.SerializeToString()


def made(root: Path, model: bytes | None = None, threads: int = 1) -> Program:
    cache = Cache(root)
    options = CompileOptions(host(cache), layout="last")  # a variant for each size
    return nanoloom.compile(
        model or network(), threads=threads, options=options, cache=cache
    )


def check(program: Program, rows: int) -> None:
    x = np.random.default_rng(rows).standard_normal((rows, DEPTH)).astype(np.float32)
    wanted = x.astype(np.float64) @ W + V
    bound = (DEPTH + 3) * np.finfo(np.float32).eps * (np.abs(x) @ np.abs(W) + np.abs(V))
    y = program({"x": x})["y"]
    assert (np.abs(y - wanted) <= bound).all() and (np.abs(wanted) > bound).any()


def weights(root: Path) -> list[Path]:
    return sorted((root / "weights").iterdir())


def mapped(root: Path) -> list[tuple[str, int]]:
    """(inode, bytes) of each mapping of a weight in this process."""
    rows = re.findall(
        rf"^(\w+)-(\w+) r--s \w+ \S+ (\d+) +{root}/weights/\w{{64}}$",
        Path("/proc/self/maps").read_text(),
        re.MULTILINE,
    )
    return [(inode, int(end, 16) - int(begin, 16)) for begin, end, inode in rows]


@pytest.fixture
def packings(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Bytes of the large weights that were packed."""
    found: list[int] = []
    written: Callable[[Weight], object] = Weight.written

    def counted(weight: Weight) -> object:
        if weight.changes and weight.nbytes >= W.nbytes:
            found.append(weight.nbytes)
        return written(weight)

    monkeypatch.setattr(Weight, "written", counted)
    return found


def test_two_sizes_share_a_weight(tmp_path: Path, packings: list[int]) -> None:
    program = made(tmp_path)
    for rows in ROWS:
        check(program, rows)
    (file,) = weights(tmp_path)
    assert W.nbytes <= file.stat().st_size <= 1.1 * W.nbytes
    assert len(packings) == 1, "what is packed already is not packed again"
    (mapping,) = mapped(tmp_path)
    assert mapping[0] == str(file.stat().st_ino)
    parts = [path for path in (tmp_path / "models").rglob("*") if path.is_file()]
    assert len(list((tmp_path / "models").iterdir())) == 2
    for path in parts:
        assert path.stat().st_size < W.nbytes or path.name == "program.so"
        assert W[0].tobytes() not in path.read_bytes()
    for rows in ROWS:
        check(program, rows)
    del program
    assert not mapped(tmp_path), "and it goes with the last one"


def test_any_size_and_a_known_one_share_a_weight(
    tmp_path: Path, packings: list[int]
) -> None:
    cache = Cache(tmp_path)
    any_size = nanoloom.compile(network(), threads=1, cache=cache)
    known = nanoloom.compile(network(), dims={"n": 8}, threads=1, cache=cache)
    for program in (any_size, known):
        check(program, 8)
    assert not any_size.open.reason and known.variants
    assert len(weights(tmp_path)) == len(packings) == 1
    assert len({inode for inode, _ in mapped(tmp_path)}) == 1


def test_another_model_with_the_same_weight(
    tmp_path: Path, packings: list[int]
) -> None:
    one, two = made(tmp_path), made(tmp_path, network("Sub"))
    check(one, ROWS[0])
    x = np.ones((ROWS[0], DEPTH), np.float32)
    np.testing.assert_allclose(two({"x": x})["y"], x @ W - V, rtol=1e-4, atol=1e-4)
    assert len(weights(tmp_path)) == len(mapped(tmp_path)) == len(packings) == 1


def test_a_kept_variant_packs_nothing(tmp_path: Path, packings: list[int]) -> None:
    check(made(tmp_path), ROWS[0])
    packings.clear()
    check(made(tmp_path), ROWS[0])
    assert not packings


@pytest.mark.parametrize("how", ["lost", "damaged", "emptied"])
def test_a_weight_that_is_gone_is_made_again(tmp_path: Path, how: str) -> None:
    for rows in ROWS:
        check(made(tmp_path), rows)
    (file,) = weights(tmp_path)
    content = bytearray(file.read_bytes())
    file.unlink()
    if how != "lost":
        content[W.nbytes // 2] ^= 1
        file.write_bytes(content if how == "damaged" else b"")
    program = made(tmp_path)
    for rows in ROWS:
        check(program, rows)
    assert len(weights(tmp_path)) == 1
    assert len(list((tmp_path / "models").iterdir())) == 2


def test_a_cache_without_room(tmp_path: Path) -> None:
    """A weight that is discarded stays where it is mapped."""
    program = nanoloom.compile(network(), threads=1, cache=Cache(tmp_path, 1000))
    for rows in (*ROWS, ROWS[0]):
        check(program, rows)


# ---- letting go ----------------------------------------------------------------------


THE_POOLS = 1  # the library whose code the threads of all programs run


def loaded(root: Path) -> int:
    """Programs of a cache that are loaded in this process."""
    words = Path("/proc/self/maps").read_text().split()
    return len({w for w in words if w.endswith("program.so") and str(root) in w})


def test_the_variants_used_last_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs, "MOST_VARIANTS", 2)
    program = made(tmp_path)
    for rows in (1, 2, 3, 1):
        check(program, rows)
        assert loaded(tmp_path) <= 2 + THE_POOLS and len(program.variants) <= 2
    x = np.zeros((1, DEPTH), np.float32)
    first = program.variant({"x": x})
    assert program.variant({"x": x}) is first
    check(program, 2)
    check(program, 3)
    assert program.variant({"x": x}) is not first, "it was let go, and came back"
    assert first({"x": x})["y"].shape == (1, WIDTH), "who has it can go on with it"


def test_working_memory_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs, "MOST_BYTES", 1)
    program = made(tmp_path)
    for rows in (1, 2, 1):
        check(program, rows)
        assert len(program.variants) == 1


def test_calls_in_variants_that_are_let_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs, "MOST_VARIANTS", 1)
    program, failures = made(tmp_path), list[BaseException]()
    for rows in (1, 2, 3):
        check(program, rows)

    def work(rows: int) -> None:
        try:
            for _ in range(20):
                check(program, rows)
        except BaseException as error:  # noqa: BLE001 - for the test to see
            failures.append(error)

    threads = [threading.Thread(target=work, args=(rows,)) for rows in (1, 2, 3)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not failures and len(program.variants) == 1


def test_shapes_that_are_refused_are_not_kept(tmp_path: Path) -> None:
    program = made(tmp_path)
    with pytest.raises(InputError):
        program({"x": np.zeros((1, DEPTH + 1), np.float32)})
    assert not len(program.variants)


MANY = """
import os, sys
from pathlib import Path
from nanoloom.api import program as programs
from tests.runtime.test_shared_weights import THE_POOLS, check, loaded, made, mapped

programs.MOST_VARIANTS = 3
root = Path(sys.argv[1])
program = made(root, threads=2)

def anonymous():
    status = Path("/proc/self/status").read_text()
    return int(status.split("RssAnon:")[1].split()[0])

for rows in range(1, 7):
    check(program, rows)
assert len(program.variants) == 3
assert loaded(root) <= 3 + THE_POOLS
before, mappings = anonymous(), len(mapped(root))
for rows in range(1, 7):
    check(program, rows)
assert len(os.listdir("/proc/self/task")) <= 40
assert anonymous() <= before + 40_000, (before, anonymous())
assert len(set(mapped(root))) == len(mapped(root)) <= mappings + 1
"""


def test_many_sizes_one_after_the_other(tmp_path: Path) -> None:
    lend_runtime(Cache(tmp_path))
    done = subprocess.run(
        [sys.executable, "-c", MANY, str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    # One copy for each width of panels that these numbers of rows have.
    assert sum(f.stat().st_size for f in weights(tmp_path)) <= 6.5 * W.nbytes
