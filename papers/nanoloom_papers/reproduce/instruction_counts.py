"""How many instructions an executable runs for another machine, counted by qemu.

A plugin of qemu-user counts.  What a program does around its model, reading files for
one, is left out: what two runs execute more than one is one run of the model.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from nanoloom.binary.toolchain import Run
from nanoloom.errors import Error
from nanoloom.runtime.emulation import Machine

SOURCE = Path(__file__).with_name("count_instructions.c")
SECONDS = 1800  # long: under qemu each vector instruction is a loop in C
KINDS = ("instructions", "vectors", "loads", "stores")


@dataclass(frozen=True)
class Count:
    """Instructions of one run, and those of vectors (SVE and NEON, RVV) among them.

    Arm's scalar floats are counted with the vectors, whose registers they use.  loads,
    stores: of vectors, on RISC-V.
    """

    all: int
    vectors: int
    loads: int = 0
    stores: int = 0

    def __sub__(self, other: Count) -> Count:
        return Count(
            self.all - other.all,
            self.vectors - other.vectors,
            self.loads - other.loads,
            self.stores - other.stores,
        )

    def shared(self, runs: int) -> Count:
        """Of each of some equal runs."""
        numbers = (self.all, self.vectors, self.loads, self.stores)
        return Count(*(number // runs for number in numbers))


def build_plugin(folder: Path) -> Path:
    """Compile the plugin into a folder.

    Raises:
        Error: the C compiler refuses.
    """
    made = folder / "count_instructions.so"
    words = ["cc", "-shared", "-fPIC", "-nostdlib", "-O2"]
    given = [*words, "-o", str(made), str(SOURCE)]
    Run(given, "compiling the plugin that counts instructions", folder).wait()
    return made


def counted(
    plugin: Path, machine: Machine, program: Path, words: Sequence[str] = ()
) -> Count:
    """What a whole process executes.

    Raises:
        Error: the emulator is missing or has no plugins, or the program fails or takes
            longer than SECONDS.
    """
    name, (tool, *flags) = machine.command[0], machine.call()
    loaded = ["-plugin", f"file={plugin}", "-d", "plugin"]
    called = [tool, *loaded, *flags, str(program), *words]
    try:
        done = subprocess.run(
            called, capture_output=True, text=True, timeout=SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        late = f"{name} was not through with {program.name} in {SECONDS} seconds"
        raise Error(late) from None
    found = dict(re.findall(rf"^({'|'.join(KINDS)}) (\d+)$", done.stderr, re.M))
    if done.returncode or len(found) != len(KINDS):
        told = (done.stderr.strip() or "it said nothing").splitlines()[-1]
        raise Error(f"{name} counted no instructions of {program.name}: {told}")
    return Count(*(int(found[kind]) for kind in KINDS))


def of_one_run(
    plugin: Path, machine: Machine, program: Path, inputs: Sequence[Path], runs: int = 1
) -> Count:
    """What one run of an executable's model executes, by one thread.

    runs: of how many it is the mean; what a program does around them is not always the
    same, which is as much as small models are.
    """
    files = [str(path) for path in inputs]
    one, two = (
        counted(plugin, machine, program, [*files, "--threads=1", f"--repeat={n}"])
        for n in (1, 1 + runs)
    )
    return (two - one).shared(runs)
