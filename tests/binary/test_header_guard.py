"""Headers of two models with one name are an error where both are included."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from nanoloom.binary.header_guard import guard
from tests.cpp.test_header import compiler

SAID = [" * input 0: x, f32[3], 12 bytes"]


@pytest.mark.parametrize(
    ("name", "digest", "said", "is_taken"),
    [
        ("bert", "1", SAID, True),
        ("bert", "2", SAID, False),
        ("bert", "1", [], False),
        ("Bert", "1", SAID, False),
        ("bert_2", "2", SAID, True),
    ],
)
def test_a_second_header(
    name: str, digest: str, said: list[str], is_taken: bool, tmp_path: Path
) -> None:
    """Models of one name in two folders, or of names that differ in their case."""
    (tmp_path / "one.h").write_text(guard("bert", "1", SAID) + "\n#endif\n")
    (tmp_path / "two.h").write_text(guard(name, digest, said) + "\n#endif\n")
    text = '#include "one.h"\n#include "one.h"\n#include "two.h"\n'
    (tmp_path / "both.cpp").write_text(text)
    words = ["-E", "-o", "both.i", "both.cpp"]
    done = subprocess.run(
        [*compiler(), *words], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode == 0) is is_taken
    assert ("compile one of them with another --name" in done.stderr) is not is_taken
