"""An executable for another machine, run by qemu-user on this one."""

from __future__ import annotations

import functools
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from nanoloom.errors import Error, InputError
from nanoloom.target.by_name import by_name
from nanoloom.target.facts import Target

Array = np.ndarray[Any, np.dtype[Any]]
_HINT = "install it: apt-get install qemu-user"


@dataclass(frozen=True)
class Machine:
    """A machine to run on: the target to compile for, and the emulator's words.

    asked: extensions for which the emulator is asked as well, where it knows them.
    """

    target: Target
    command: tuple[str, ...]
    asked: tuple[str, ...] = ()

    def call(self) -> list[str]:
        """The emulator and its words, in front of a program.

        An extension that the emulator does not know is left out: most programs for a
        core that has it do without (qemu 7.2 has no 16-bit floats of RISC-V).
        Raises:
            Error: the emulator is not installed.
        """
        name, option, cpu, *words = self.command
        tool = emulator(name)
        known = (f",{x}=true" for x in self.asked if _knows(tool, cpu, x))
        return [tool, option, cpu + "".join(known), *words]


def machine(spec: str) -> Machine:
    """riscv64+v:vlen=256, aarch64+sve:sve=512, aarch64, x86-64-v3: bits of a vector.

    The length alone says which vectors: riscv64:vlen=256 is riscv64+v:vlen=256.  Of a
    matrix unit whose vectors have a length of their own: aarch64+sme:sme=512.
    Raises:
        Error: there is no such target, or it has no vectors of that length.
    """
    name, _, behind = spec.partition(":")
    key = behind.partition("=")[0]
    target = by_name(name)
    known = target.isa.emulator
    if key and (name, key) == (target.arch, known.length):
        target = by_name(f"{name}+{known.brings}")
    words, bits = "", target.vector.min_bits
    tiles = known.matrix if target.matrix else None
    if tiles and key == tiles.length:
        length = _length(target, behind, spec, known.lengths)
        words = tiles.cpu.format(bytes=length // 8)
    elif behind:
        bits = _length(target, behind, spec, _of_vectors(target, key, spec))
    cpu = known.scalable if target.vector.scalable else known.cpu
    cpu = cpu.format(bits=bits, bytes=bits // 8) + words
    asked = tuple(x for x in known.asked if target.has(x))
    return Machine(target, (known.program, "-cpu", cpu), asked)


def _of_vectors(target: Target, key: str, spec: str) -> tuple[int, ...]:
    """The bits that a target's vectors may have."""
    emulator, vector = target.isa.emulator, target.vector
    if not vector.scalable or key != emulator.length:
        raise Error(
            f"{spec}: {key!r} says nothing about {target}",
            hint="like riscv64+v:vlen=256 or aarch64+sve:sve=512",
        )
    most = vector.bits * vector.vscale_max
    return tuple(x for x in emulator.lengths if vector.min_bits <= x <= most)


def _length(target: Target, behind: str, spec: str, lengths: Sequence[int]) -> int:
    key, _, value = behind.partition("=")
    fitting = [str(x) for x in lengths]
    if value not in fitting:
        raise Error(
            f"{spec}: vectors of {value or 'no'} bits cannot be emulated for {target}",
            hint=f"{key} is one of {', '.join(fitting)}",
        )
    return int(value)


def emulator(command: str) -> str:
    """The path of an emulator; raises Error where it is not installed."""
    found = shutil.which(command) or shutil.which(f"{command}-static")
    if found is None:
        raise Error(f"{command} is not installed", hint=_HINT)
    return found


@functools.cache
def _knows(tool: str, cpu: str, extension: str) -> bool:
    """Whether an emulator's CPU has an extension: it says at once where it has none."""
    words = [tool, "-cpu", f"{cpu},{extension}=true", "/"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return "Property" not in done.stderr


def run_emulated(
    machine: Machine,
    executable: Path,
    inputs: Sequence[Array],
    outputs: Collection[str],
    threads: int = 1,
) -> dict[str, Array]:
    """What an executable gives for arrays in the order of its inputs.

    outputs: their names, in its order.
    Raises:
        InputError: the executable's own sentence, where it refuses.
        Error: there is no emulator, or the program does not end by itself.
    """
    call = machine.call()
    with tempfile.TemporaryDirectory(prefix="nanoloom-") as scratch:
        given = [str(Path(scratch, f"input{i}.npy")) for i in range(len(inputs))]
        made = [str(Path(scratch, f"output{i}.npy")) for i in range(len(outputs))]
        for path, array in zip(given, inputs, strict=True):
            np.save(path, array, allow_pickle=False)
        words = [*given, *(f"--out={path}" for path in made), f"--threads={threads}"]
        done = subprocess.run(
            [*call, str(executable), *words],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise failed(done, executable.name)
        arrays = [np.load(path, allow_pickle=False) for path in made]
    # A file has no word for bf16: only its size.  What a model declares of an output's
    # type is not asked, as it may say nothing.
    halves = (x.view(ml_dtypes.bfloat16) if x.dtype.kind == "V" else x for x in arrays)
    return dict(zip(outputs, halves, strict=True))


def failed(done: subprocess.CompletedProcess[str], name: str) -> Error:
    """What went wrong under the emulator."""
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    told = lines[-1] if lines else ""
    if done.returncode == 1 and told.startswith(f"{name}: "):
        return InputError(told.removeprefix(f"{name}: "))
    if told.startswith("qemu-"):  # 7.2 ends at some conversions of RISC-V's vectors
        return Error(f"the emulator failed: {told}", hint="a newer qemu-user may not")
    if done.returncode == -signal.SIGILL:
        return Error(
            "the emulator does not know an instruction of the program",
            hint="a newer qemu-user may, or a target with fewer features",
        )
    behind = f": {told}" if told else ""
    return Error(f"the emulated program ended with status {done.returncode}{behind}")
