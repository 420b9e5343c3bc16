"""Tools end with whoever waits for them, and by nobody's signal but ours."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import pytest

from nanoloom.binary import shared, toolchain
from nanoloom.binary.link import Source, compile_c
from nanoloom.binary.toolchain import Run
from nanoloom.cache import Cache
from nanoloom.errors import Error


@pytest.fixture
def slow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tool that works until somebody ends it, or for 20 s; the second one fails."""
    tool = tmp_path / "zig"
    begun = tmp_path / "begun"
    first = f"[ ! -e {begun} ] && echo $$ > {begun} && exec sleep 20"
    tool.write_text(f"#!/bin/sh\n{first}\nexit 1\n")
    tool.chmod(0o755)
    monkeypatch.setattr(toolchain, "zig", lambda: tool)
    return begun


def number_in(file: Path) -> int:
    end = time.monotonic() + 60
    while not (file.exists() and file.read_text().endswith("\n")):
        assert time.monotonic() < end, "no tool was started"
        time.sleep(0.01)
    return int(file.read_text())


def is_gone(number: int) -> bool:
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return True
    return False


def interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def test_an_interrupted_wait_ends_the_tool(slow: Path, tmp_path: Path) -> None:
    run = Run([], "working", tmp_path)
    number = number_in(slow)
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(KeyboardInterrupt):
            run.wait()
    finally:
        signal.signal(signal.SIGALRM, before)
    assert is_gone(number)


def test_what_a_terminal_sends_is_not_for_the_tool(slow: Path, tmp_path: Path) -> None:
    run = Run([], "working", tmp_path)
    assert os.getpgid(number_in(slow)) != os.getpgrp()
    run.stop()


def test_what_fails_meanwhile_waits_for_no_tool(
    slow: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def objects(triple: str, cache: Cache, **_: object) -> list[bytes]:
        """Of a source that no other test has compiled."""
        new = Source.of_runtime(shared.RUNTIME_SOURCES[0], f"OF={tmp_path.name}")
        return compile_c([new], triple=triple, cache=cache)

    monkeypatch.setattr(shared, "runtime_objects", objects)
    number = 0
    with (
        pytest.raises(Error, match="the model is at fault"),
        shared.runtime_meanwhile("x86_64-linux-gnu", Cache(tmp_path / "cache")),
    ):
        number = number_in(slow)
        raise Error("the model is at fault")
    assert not is_gone(number)
    Run.end_all()
    for thread in threading.enumerate():
        if thread.name == "nanoloom runtime":
            thread.join()


def test_who_tries_again_takes_the_tools_that_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As for each of the samples that stand for a model's sizes, until some do."""
    asked, goes_on = list[str](), threading.Event()

    def objects(triple: str, *_: object, **__: object) -> None:
        asked.append(triple)
        goes_on.wait(60)

    monkeypatch.setattr(shared, "runtime_objects", objects)
    given = "x86_64-linux-gnu", Cache(tmp_path)
    for _ in range(2):
        with pytest.raises(Error, match="other"), shared.runtime_meanwhile(*given):
            raise Error("other sizes are computed otherwise")
    with shared.runtime_meanwhile(*given):
        goes_on.set()
    assert len(asked) == 1
