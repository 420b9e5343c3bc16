"""The remembered machine: equal to the one looked at, told apart from others."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from nanoloom.cache import Cache
from nanoloom.target import TARGETS, Target, cached_host
from nanoloom.target.host import host

CPUINFO = """\
processor\t: 0
vendor_id\t: GenuineIntel
model\t\t: 143
cpu MHz\t\t: {mhz}
flags\t\t: {flags}
core id\t\t: {core}
"""


def identity(folder: Path, **facts: str) -> tuple[str, ...]:
    """The identity of a machine with these lines in its cpuinfo."""
    defaults = {"mhz": "2600.0", "flags": "avx2 fma", "core": "0"}
    (folder / "cpuinfo").write_text(CPUINFO.format(**defaults | facts))
    return cached_host.identity(folder / "cpuinfo", folder / "caches", folder / "sve")


@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_targets_survive_json(target: Target) -> None:
    text = json.dumps(cached_host.to_dict(target))
    assert cached_host.from_dict(json.loads(text)) == target


def test_a_second_look_is_the_first(tmp_path: Path) -> None:
    assert cached_host.host(Cache(tmp_path)) == host()
    assert cached_host.host(Cache(tmp_path)) == host()


def test_the_second_process_loads_no_llvm(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from nanoloom.cache import Cache\n"
        "from nanoloom.target.cached_host import host\n"
        "print(host(Cache(Path(sys.argv[1]))).name, 'llvmlite' in sys.modules)"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    said = [
        subprocess.run(command, capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    ]
    assert said == [f"{host().name} True\n", f"{host().name} False\n"]


def test_identity_is_that_of_the_cpu(tmp_path: Path) -> None:
    here = identity(tmp_path)
    assert identity(tmp_path, mhz="800.0", core="7") == here
    assert identity(tmp_path, flags="avx2 fma avx512f") != here
    level = tmp_path / "caches" / "index2"
    level.mkdir(parents=True)
    (level / "size").write_text("2048K\n")
    assert identity(tmp_path) != here


def test_a_machine_without_these_files_has_an_identity(tmp_path: Path) -> None:
    nowhere = tmp_path / "nowhere"
    assert cached_host.identity(nowhere, nowhere, nowhere) == ("",)
