"""A model is made by one process, whoever asks for it at the same time."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from multiprocessing.connection import Connection
from pathlib import Path

from nanoloom.cache import Cache
from nanoloom.cache.one_maker import one_maker

FORK = multiprocessing.get_context("fork")
KEY = "a" * 64


def made(cache: Cache, log: Path) -> bytes:
    """What is under KEY, by one line in the log if this process made it."""

    def build(folder: Path) -> None:
        with log.open("a") as file:
            file.write(f"{os.getpid()}\n")
        time.sleep(0.2)  # the others come meanwhile
        (folder / "model.so").write_bytes(b"code")

    with cache.making(KEY), cache.folder(KEY, build) as folder:
        return (folder / "model.so").read_bytes()


def _ask(wire: Connection, root: Path, log: Path) -> None:
    wire.send(made(Cache(root), log))


def test_of_four_processes_one_makes_it(tmp_path: Path) -> None:
    wires: list[Connection] = []
    for _ in range(4):
        here, there = FORK.Pipe()
        FORK.Process(
            target=_ask, args=(there, tmp_path / "cache", tmp_path / "log"), daemon=True
        ).start()
        wires.append(here)
    assert [wire.recv() for wire in wires] == [b"code"] * 4
    assert len((tmp_path / "log").read_text().splitlines()) == 1
    assert not list((tmp_path / "cache" / "tmp").iterdir())


def test_of_four_threads_one_makes_it(tmp_path: Path) -> None:
    cache, log = Cache(tmp_path / "cache"), tmp_path / "log"
    threads = [threading.Thread(target=made, args=(cache, log)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(log.read_text().splitlines()) == 1


def _hang(wire: Connection, root: Path) -> None:
    with Cache(root).making(KEY):
        wire.send("inside")
        wire.recv()


def test_a_killed_maker_is_followed_by_the_next(tmp_path: Path) -> None:
    here, there = FORK.Pipe()
    process = FORK.Process(target=_hang, args=(there, tmp_path / "cache"), daemon=True)
    process.start()
    assert here.recv() == "inside" and process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    assert made(Cache(tmp_path / "cache"), tmp_path / "log") == b"code"


def test_nobody_waits_for_ever(tmp_path: Path) -> None:
    entry, inside = tmp_path / "models" / KEY, threading.Event()
    with one_maker(tmp_path / "tmp", entry):

        def ask() -> None:
            with one_maker(tmp_path / "tmp", entry, patience=0.05):
                inside.set()

        thread = threading.Thread(target=ask)
        thread.start()
        thread.join(30)
    assert inside.is_set()


def test_what_is_there_needs_no_lock(tmp_path: Path) -> None:
    entry = tmp_path / "models" / KEY
    entry.mkdir(parents=True)
    with one_maker(tmp_path / "tmp", entry), one_maker(tmp_path / "tmp", entry):
        assert not (tmp_path / "tmp").exists()


def test_where_nothing_can_be_written_all_go_in(tmp_path: Path) -> None:
    (tmp_path / "tmp").write_text("a file in the way")
    with one_maker(tmp_path / "tmp", tmp_path / "models" / KEY):
        assert (tmp_path / "tmp").is_file()
