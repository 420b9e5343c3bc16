"""Whatever happens to the cache, programs are compiled and right."""

from __future__ import annotations

import errno
import os
import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import nanoloom
from nanoloom.cache import Cache
from nanoloom.errors import ModelError

A = np.random.default_rng(3).standard_normal((5, 7)).astype(np.float32)
WEIGHTS = np.random.default_rng(4).standard_normal((7, 9)).astype(np.float32)


def network() -> bytes:
    """max(a @ WEIGHTS, 0)"""
    graph = helper.make_graph(
        [
            helper.make_node("MatMul", ["a", "w"], ["m"]),
            helper.make_node("Relu", ["m"], ["y"]),
        ],
        "g",
        [helper.make_tensor_value_info("a", TensorProto.FLOAT, [5, 7])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [5, 9])],
        [numpy_helper.from_array(WEIGHTS, "w")],
    )
    opset = [helper.make_opsetid("", 17)]
    model = helper.make_model(graph, opset_imports=opset, ir_version=8)
    onnx.checker.check_model(model)
    return model.SerializeToString()


MODEL = network()


def works(root: Path, output: Path | None = None) -> list[str]:
    """Compile, run and write the model with a cache; the warnings on the way."""
    warnings: list[str] = []
    store = Cache(root, warn=warnings.append)
    program = nanoloom.compile(MODEL, threads=2, cache=store)
    found = [program({"a": A})["y"]]
    if output:
        found.append(nanoloom.load(program.save(output), threads=2)({"a": A})["y"])
    for y in found:
        np.testing.assert_allclose(y, np.maximum(A @ WEIGHTS, 0), rtol=1e-5, atol=1e-5)
    return warnings


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache with everything in it."""
    folder = tmp_path_factory.mktemp("filled")
    assert not works(folder / "cache", folder / "model.so")
    return folder / "cache"


@pytest.fixture
def root(filled: Path, tmp_path: Path) -> Path:
    """A copy of the filled cache."""
    return Path(shutil.copytree(filled, tmp_path / "cache"))


def inside(root: Path) -> list[Path]:
    return sorted(path for path in root.rglob("*") if path.is_file())


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) * 2 // 3] ^= 16
    path.write_bytes(content)


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def empty(path: Path) -> None:
    os.truncate(path, 0)


def lose(path: Path) -> None:
    path.unlink()


def become_a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()
    (path / "x").write_text("x")


def lead_nowhere(path: Path) -> None:
    path.unlink()
    path.symlink_to("nowhere")


DAMAGES = [flip, cut, empty, lose, become_a_folder, lead_nowhere]


@pytest.mark.parametrize("damage", DAMAGES)
def test_every_file_of_the_cache_damaged(
    root: Path, tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    for path in inside(root):
        damage(path)
    assert not works(root, tmp_path / "model.so")
    assert not works(root, tmp_path / "model.so")


@pytest.mark.drawn(one_in=2)
@pytest.mark.parametrize("damage", DAMAGES)
def test_each_file_of_the_cache_damaged(
    filled: Path, root: Path, tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    kinds = {path.parent.relative_to(filled).parts[:1] for path in inside(filled)}
    assert kinds == {(), ("kernels",), ("models",)}
    for path in inside(filled):
        name = path.relative_to(filled)
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        if not (root / name).is_file():
            shutil.copy(path, root / name)
        damage(root / name)
        assert not works(root, tmp_path / "model.so"), name


def folders(root: Path) -> list[Path]:
    found = [path for path in root.rglob("*") if path.is_dir()]
    return [root, *sorted(found)]


def test_each_folder_of_the_cache_deleted(filled: Path, tmp_path: Path) -> None:
    for number, folder in enumerate(folders(filled)):
        root = Path(shutil.copytree(filled, tmp_path / str(number)))
        shutil.rmtree(root / folder.relative_to(filled))
        assert not works(root, tmp_path / "model.so"), folder.name
        assert inside(root / "models"), "and is filled again"


def test_each_folder_of_the_cache_a_file(filled: Path, tmp_path: Path) -> None:
    for number, folder in enumerate(folders(filled)):
        root = Path(shutil.copytree(filled, tmp_path / str(number)))
        place = root / folder.relative_to(filled)
        shutil.rmtree(place)
        place.write_text("in the way")
        is_model = folder.parent.name == "models"
        warnings = works(root, tmp_path / "model.so")
        assert len(warnings) == (0 if is_model else 1), (folder.name, warnings)


WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
# The arguments that name what is changed.
EVENTS = {"os.mkdir": (0,), "os.rename": (0, 1), "os.link": (1,), "os.utime": (0,)}


class Disk:
    """Refuses, from a certain moment on, all that would change anything in a folder."""

    def __init__(self) -> None:
        self.folder: Path | None = None
        self.left = 0
        self.reason = errno.ENOSPC
        sys.addaudithook(self.hook)

    def hook(self, event: str, arguments: tuple[object, ...]) -> None:
        if self.folder is None:
            return
        touched: list[object] = []
        if event == "open" and isinstance(flags := arguments[2], int):
            touched = [arguments[0]] if flags & WRITES else []
        elif event in EVENTS:
            touched = [arguments[place] for place in EVENTS[event]]
        if any(str(each).startswith(str(self.folder)) for each in touched):
            self.left -= 1
            if self.left < 0:
                raise OSError(self.reason, os.strerror(self.reason), str(touched[0]))


@pytest.fixture(scope="module")
def only_disk() -> Disk:
    return Disk()


@pytest.fixture
def disk(only_disk: Disk) -> Iterator[Disk]:
    only_disk.left, only_disk.reason = 0, errno.ENOSPC
    yield only_disk
    only_disk.folder = None


@pytest.mark.parametrize("reason", [errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EIO])
def test_a_cache_that_cannot_be_written_to(
    disk: Disk, tmp_path: Path, reason: int
) -> None:
    disk.folder, disk.reason = tmp_path / "cache", reason
    (warning,) = works(tmp_path / "cache", tmp_path / "model.so")
    assert os.strerror(reason) in warning


def test_a_cache_that_can_only_be_read(disk: Disk, root: Path, tmp_path: Path) -> None:
    disk.folder, disk.reason = root, errno.EROFS
    assert not works(root), "nothing is to be written"
    disk.folder = None
    for path in inside(root):
        flip(path)
    disk.folder = root
    assert len(works(root, tmp_path / "model.so")) == 1


def test_a_disk_that_is_full_at_any_moment(disk: Disk, tmp_path: Path) -> None:
    moment = 0
    while moment == 0 or disk.left < 0:  # until all could be written
        disk.folder, disk.left = tmp_path / f"cache{moment}", moment
        assert len(works(disk.folder, tmp_path / "model.so")) <= 1
        moment += 23
    assert moment > 50


def test_threads_that_find_a_full_disk_together(disk: Disk, tmp_path: Path) -> None:
    warnings: list[str] = []
    for turn in range(8):
        store = Cache(tmp_path / f"cache{turn}", warn=warnings.append)
        disk.folder = store.root
        ready = threading.Barrier(8)

        def keep(number: int, store: Cache = store, ready: threading.Barrier = ready):
            def build(draft: Path) -> None:
                ready.wait()  # all have failed by now, or none
                (draft / "x").write_text(str(number))

            ready.wait()
            if number % 2:
                store.put(f"{number:064}", bytes([number]))
                ready.wait()
            else:
                with store.folder(f"{number:064}", build) as folder:
                    assert (folder / "x").read_text() == str(number)

        threads = [threading.Thread(target=keep, args=(each,)) for each in range(8)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        for number in range(1, 8, 2):
            assert store.get(f"{number:064}") == bytes([number])
        assert len(warnings) == turn + 1


def test_what_a_work_says_of_itself_is_told(tmp_path: Path) -> None:
    """Not that the cache, too, cannot be used."""
    (tmp_path / "tmp").write_text("in the way")
    warnings: list[str] = []

    def refuse(_: Path) -> None:
        raise ModelError("the model is refused")

    cache = Cache(tmp_path, warn=warnings.append)
    with (
        pytest.raises(ModelError, match="the model is refused"),
        cache.folder("0" * 64, refuse),
    ):
        raise AssertionError("there is nothing to use")
