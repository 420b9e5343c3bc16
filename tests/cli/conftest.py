"""The command as a user types it, with a cache of the tests' own."""

from __future__ import annotations

import platform
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from nanoloom.cache import Cache
from nanoloom.cli import progress
from nanoloom.cli.main import main
from tests.c_libraries import lend


@dataclass(frozen=True)
class Said:
    """What a command left behind."""

    status: int
    out: str
    err: str

    @property
    def told(self) -> str:
        """stderr as one line, without the frame around a usage error."""
        return " ".join(
            self.err.translate(dict.fromkeys(map(ord, "│╭╮╰╯─"), " ")).split()
        )


Command = Callable[..., Said]


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One cache for all tests: every kernel and the runtime are compiled once."""
    folder = tmp_path_factory.mktemp("cache")
    lend(platform.machine(), Cache(folder))
    return folder


@pytest.fixture
def nanoloom(
    cache: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Command:
    """`nanoloom(words...)`: run the command in this process, with 80 columns."""
    monkeypatch.setenv("NANOLOOM_CACHE", str(cache))
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("NANOLOOM_DEBUG", raising=False)
    monkeypatch.setattr(progress, "PATIENCE", 1e6)  # its line depends on the load

    def command(*words: object) -> Said:
        capfd.readouterr()
        status = main([str(word) for word in words])
        said = capfd.readouterr()
        return Said(status, said.out, said.err)

    return command
