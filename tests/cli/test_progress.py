"""What is shown while it takes long, and what never is."""

from __future__ import annotations

import io
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from nanoloom.cli import output_files, progress, terminal
from nanoloom.cli.progress import Watch
from nanoloom.errors import Error
from nanoloom.explain.units import seconds


class Terminal(io.StringIO):
    """A stderr that is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "PATIENCE", 0.0)


def shown(watch: Watch) -> None:
    """Wait until the timer has done its work."""
    timer = watch._timer
    assert timer is not None
    timer.join()


def test_a_bar_on_a_terminal(hasty: None, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "xterm")
    with Watch() as watch:
        shown(watch)
        with watch.stage("schedule"):
            watch.advance("kernels", 3, 7)
            assert watch._bar is not None
            watch._bar.refresh()
    assert "compiling kernels" in terminal.getvalue() and "3/7" in terminal.getvalue()
    assert "schedule" in watch.seconds
    assert threading.active_count() < 50


def test_a_line_elsewhere(
    hasty: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("FORCE_COLOR", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    with Watch(doing="reading the model") as watch:
        shown(watch)
    said = capsys.readouterr()
    assert said.err == "nanoloom: reading the model ...\n" and said.out == ""


def test_nothing_when_it_is_quick(capsys: pytest.CaptureFixture[str]) -> None:
    with Watch() as watch:
        watch.say("something", 1, 2)
    assert capsys.readouterr() == ("", "")


def test_stages_add_up() -> None:
    watch = Watch()
    for _ in range(2):
        with watch.stage("llvm"):
            pass
    assert list(watch.seconds) == ["llvm"] and watch.seconds["llvm"] > 0


def test_tables_escape_what_names_hold() -> None:
    made = terminal.table("", ("~name", ">n"), [["[red]x\x1b[0m", "1"]])
    out = io.StringIO()
    terminal.Console(file=out, width=80).print(made)
    assert "[red]x\\x1b[0m" in out.getvalue() and "\x1b" not in out.getvalue()


def test_times_are_readable() -> None:
    given = (12.3456, 0.0123456, 12.3456e-6)
    assert [seconds(x) for x in given] == ["12.35 s", "12.35 ms", "12.3 us"]


# ---- places


def test_a_file_is_whole_or_not_there(tmp_path: Path) -> None:
    path = tmp_path / "x"
    with pytest.raises(KeyboardInterrupt), output_files.written(path) as file:
        file.write(b"half")
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []
    output_files.write_text(path, "whole")
    assert path.read_text() == "whole" and list(tmp_path.iterdir()) == [path]


def test_a_pipe_is_written_to_as_it_is() -> None:
    code = (
        "from pathlib import Path; from nanoloom.cli.output_files import write_text;"
        "write_text(Path('/dev/stdout'), 'text')"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert ran.stdout == b"text"


def test_folders(tmp_path: Path) -> None:
    assert output_files.folder(tmp_path / "a").is_dir() and output_files.folder(
        tmp_path / "a"
    )
    with pytest.raises(Error, match="mkdir -p"):
        output_files.folder(tmp_path / "b" / "c")


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("y", "y"),
        ("/encoder/layer.0/Add_output_0", "_encoder_layer.0_Add_output_0"),
        ("../../etc/passwd", "_.._etc_passwd"),
        ("...", "value"),
        ("", "value"),
        ("x" * 500, "x" * 100),
    ],
)
def test_names_of_files(name: str, file: str) -> None:
    assert output_files.file_name(name) == file
