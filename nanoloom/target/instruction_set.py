"""What the CPUs of one instruction set share, as the stages and C ask for it."""

from __future__ import annotations

from dataclasses import dataclass

HWCAP, HWCAP2 = 16, 26  # Linux, auxvec.h: words that the kernel gives to a program


@dataclass(frozen=True)
class Frame:
    """How code makes room on the stack.

    code: a pattern of bytes, so that few others look alike; words: of assembly.  Of
    each match, the group "size" counts units of so many bytes.
    """

    code: bytes
    words: str
    unit: int


@dataclass(frozen=True)
class Streaming:
    """The length of a matrix unit's vectors, where that is not the others'.

    length: the word for it behind a target's name; cpu: what the emulator is told.
    """

    length: str
    cpu: str


@dataclass(frozen=True)
class Emulator:
    """qemu-user: its program, and what it calls a CPU that has all that code asks for.

    scalable: the same where registers have no fixed width; {bits} or {bytes} stand for
    it.  length: the word for it behind a target's name, lengths: the bits it may be,
    brings: the extension that it stands for behind the plain name.  matrix: the same
    lengths of a matrix unit.  asked: extensions that it has to be asked for.
    """

    program: str
    cpu: str
    scalable: str = ""
    length: str = ""
    lengths: tuple[int, ...] = ()
    brings: str = ""
    matrix: Streaming | None = None
    asked: tuple[str, ...] = ()


@dataclass(frozen=True)
class InstructionSet:
    """Facts that hold for every CPU of a kind, whatever the width of its vectors.

    name: the first word of the triple.  machine: its number in ELF files.
    register: a vector as inline assembly takes it, LLVM's constraint; whole_registers:
    only one of unknown length.
    adds: extensions that can be added to a target as they are.  hwcaps: of those that
    the system tells of, the word (AT_HWCAP, AT_HWCAP2) and the bit in it.

    Of instructions, each the extension that brings it, "" where every CPU has it:
    vectors; fma: a multiply-add; result_apart: a register of its own for a result.
    widens_f16: f16 to f32, rounds_bf16: f32 to bf16, several extensions, any one.
    keeps_nan: a minimum that passes NaN is one instruction, not three.
    widens_loads: a load widens narrow numbers to a whole register.  half_registers:
    registers that a conversion to f32 needs beside, as it makes half of one.
    selects_bf16: LLVM knows bf16; elsewhere it ends at a conversion.
    scalar_factors: a number multiplies a vector from a register of its own kind.
    strided_loads: one loads numbers that lie at one distance, as many as a vector has.
    lane_factors: bits of a vector any lane of which can multiply all of another one.
    exchanges_lanes: one exchanges every second number of two such vectors.
    asks_length: one says how many numbers a round of a loop takes.
    """

    name: str
    machine: int
    frame: Frame
    emulator: Emulator
    register: str
    whole_registers: bool = False
    adds: frozenset[str] = frozenset()
    hwcaps: tuple[tuple[str, int, int], ...] = ()
    vectors: str = ""
    fma: str = ""
    result_apart: str = ""
    widens_f16: frozenset[str] = frozenset()
    rounds_bf16: frozenset[str] = frozenset()
    keeps_nan: bool = True
    selects_bf16: bool = True
    widens_loads: bool = False
    half_registers: int = 0
    scalar_factors: bool = False
    strided_loads: bool = False
    lane_factors: int = 0
    exchanges_lanes: bool = False
    asks_length: bool = False
