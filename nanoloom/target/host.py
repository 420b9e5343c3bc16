"""This machine as a target: the only file that asks what it runs on.

Virtual machines report a family and model that belong to another CPU, so the name
that LLVM guesses from them is not used: the features decide.
"""

from __future__ import annotations

import ctypes
import functools
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from nanoloom.errors import Error, Unsupported
from nanoloom.target import TARGETS, by_name
from nanoloom.target.facts import Cache, Target

_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
_CPUINFO = Path("/proc/cpuinfo")
# Linux, asm/prctl.h: dynamically enabled state components, and the one of tile data.
_SYS_ARCH_PRCTL, _ARCH_REQ_XCOMP_PERM, _XFEATURE_XTILEDATA = 158, 0x1023, 18
_PR_SVE_GET_VL, _SVE_LENGTH_MASK = 51, 0xFFFF


HOST_VARIABLE = "NANOLOOM_HOST"


@functools.cache
def host() -> Target:
    """The target that programs are made for where nobody names one: this machine, or
    what the variable NANOLOOM_HOST names in its place (`held_to`).

    Raises:
        Unsupported: nanoloom does not know the machine, or it lacks what is named.
    """
    return held_to(this_machine())


def held_to(machine: Target, name: str | None = None) -> Target:
    """The target of this name, the machine itself without one.

    name: as --target takes it; by default what NANOLOOM_HOST says.  The code is the
    same as with --target: it does not depend on which machine made it.

    Raises:
        Unsupported: the machine lacks what the name promises.
        Error: there is no such target.
    """
    name = os.environ.get(HOST_VARIABLE, "") if name is None else name
    if not name:
        return machine
    try:
        target = by_name(name)
    except Error as error:
        raise Error(error.reason, where=HOST_VARIABLE, hint=error.hint) from None
    if target.arch != machine.arch:
        missing = f"is {machine.arch}"
    elif lacking := sorted(target.extensions - machine.extensions):
        missing = f"has no {', '.join(lacking)}"
    else:
        return target
    raise Unsupported(
        f"{HOST_VARIABLE} is {name}, and this CPU {missing}",
        hint="name a target that this CPU can run; `nanoloom targets` lists them",
    )


@functools.cache
def this_machine() -> Target:
    """The target that describes this machine.

    The facts are those of the known CPU with the best matching features, the caches and
    features those of the machine itself: what it lacks is switched off for LLVM, too.
    The tile unit is there only when the kernel grants it, and the permission is asked
    for here; a process that does not call this calls `enable_amx`.

    Raises:
        Unsupported: the machine is none of x86-64, AArch64 with NEON and RISC-V with V.
    """
    import llvmlite.binding as llvm  # 0.1 s: not for those who only name a target

    features = dict(llvm.get_host_cpu_features())
    return describe(
        llvm.get_process_triple(),
        features,
        cpu=llvm.get_host_cpu_name(),
        vendor=_vendor(),
        vscale=_sve_length() // 128,
        caches=_caches(_CACHES),
        amx=bool(features.get("amx-tile")) and enable_amx(),
    )


def describe(
    triple: str,
    features: Mapping[str, bool],
    *,
    cpu: str = "",
    vendor: str = "",
    vscale: int = 0,
    caches: Cache | None = None,
    amx: bool = False,
) -> Target:
    """The target of a machine with these LLVM features: `host` without the looking.

    `cpu` is LLVM's guess, `vendor` as in /proc/cpuinfo, `vscale` the SVE length over
    128 (0: unknown), `amx` whether the kernel grants tile registers.

    Raises:
        Unsupported: no known CPU has a subset of these features.
    """
    present = {name for name, there in features.items() if there}
    if not amx:
        present = {name for name in present if not name.startswith("amx-")}
    arch = triple.split("-")[0].replace("arm64", "aarch64")  # as Apple writes it
    maker = vendor if arch == "x86_64" else cpu
    known = _closest(arch, present, maker, vscale)
    # On x86 every feature is reported, as there or not; elsewhere only some of those
    # there, so that a CPU's name promises more than is known: it must be LLVM's, too.
    sure = known.arch != "aarch64" or cpu == known.cpu
    every = frozenset().union(*(t.extensions for t in TARGETS if t.arch == known.arch))
    # LLVM reports V alone on RISC-V; what it promises goes without saying.
    promised = known.extensions if known.arch == "riscv64" else frozenset[str]()
    return replace(
        known,
        name=f"host-{known.name}",
        triple=triple,
        cpu=known.cpu if sure else "generic",
        features=_switches(known, present, known.extensions | features.keys()),
        caches=caches or known.caches,
        matrix=known.matrix if amx else None,
        extensions=(every & present) | promised,
    )


def _switches(known: Target, present: set[str], asked: frozenset[str]) -> str:
    """LLVM's feature string: every feature asked about, switched on or off."""
    ready = known.features.split(",") if known.features else []
    if known.arch == "aarch64":  # names an architecture that the machine may lack
        ready = []
    on = [f"+{name}" for name in sorted(present)]
    # Last, so that nothing above brings back by implication what a hypervisor hides.
    absent = asked - present - {word[1:] for word in ready}
    return ",".join([*ready, *on, *(f"-{name}" for name in sorted(absent))])


def enable_amx() -> bool:
    """Ask the kernel to let this process use tile registers; False when it refuses.

    The permission holds for all threads and for children made by fork, not across
    exec.  Without it the first tile instruction raises SIGILL.
    """
    if os.uname().sysname != "Linux" or os.uname().machine != "x86_64":
        return False
    words = _SYS_ARCH_PRCTL, _ARCH_REQ_XCOMP_PERM, _XFEATURE_XTILEDATA
    return _own_process().syscall(*words) == 0


@functools.cache
def _own_process() -> ctypes.CDLL:
    """What is loaded; looking for it takes a hundred times as long as a call."""
    return ctypes.CDLL(None)


def _closest(arch: str, present: set[str], maker: str, vscale: int) -> Target:
    """The known CPU nearest in features: the largest part in common of all in both."""
    family = [t for t in TARGETS if t.arch == arch]
    every = set[str]().union(*(t.extensions for t in family))

    def likeness(target: Target) -> float:
        union = target.extensions | (present & every)
        return len(target.extensions & present) / max(1, len(union))

    fitting = [
        target
        for target in family
        if _width_fits(target, present, vscale) and _made_by(target, maker)
    ]
    if not fitting:
        raise Unsupported(
            f"this machine ({arch}) has none of the vector units that nanoloom knows",
            hint="name a target that it can run with --target",
        )
    return max(fitting, key=lambda target: (likeness(target), target.cpu == maker))


def _width_fits(target: Target, present: set[str], vscale: int) -> bool:
    """Whether the machine has registers as wide as the facts of `target` say."""
    if target.arch == "riscv64":
        # Nothing reports the vector length: take the row that promises the least, or
        # the core that LLVM names.
        plain = target.cpu.startswith("generic")
        scalable = target.vector.scalable == ("v" in present)
        return scalable and not (plain and target.has("zvl256b"))
    if target.arch == "aarch64":
        vector = target.vector
        length_fits = vector.vscale_min <= vscale <= vector.vscale_max
        return not vector.scalable or ("sve" in present and length_fits)
    if target.arch != "x86_64":
        return target.extensions <= present
    needs = {128: {"sse4.2"}, 256: {"avx2", "fma"}, 512: {"avx512f", "avx512vl"}}
    return needs[target.vector.bits] <= present


def _made_by(target: Target, maker: str) -> bool:
    """Whether `maker` (x86: the vendor; else LLVM's name of the CPU) may have made it.

    A level of the psABI and Arm's designs are anybody's but Apple's; a RISC-V core is
    one that LLVM names, as its features say little.
    """
    if target.arch == "riscv64":
        return target.cpu == maker or target.cpu.startswith("generic")
    if "apple" in (target.name[:5], maker[:5]):
        return target.name[:5] == maker[:5]
    if target.arch != "x86_64" or target.name.startswith("x86-64-"):
        return True
    return target.name.startswith("znver") == (maker == "AuthenticAMD")


def _vendor() -> str:
    """The x86 vendor string, "" where there is none to read."""
    try:
        text = _CPUINFO.read_text()
    except OSError:
        return ""
    for line in text.splitlines():
        if line.startswith("vendor_id"):
            return line.partition(":")[2].strip()
    return ""


def _sve_length() -> int:
    """Bits of an SVE register, 0 where there is none."""
    if os.uname().sysname != "Linux" or os.uname().machine != "aarch64":
        return 0
    answer: int = ctypes.CDLL(None).prctl(_PR_SVE_GET_VL, 0, 0, 0, 0)
    return 8 * (answer & _SVE_LENGTH_MASK) if answer > 0 else 0


def _caches(folder: Path) -> Cache | None:
    """The data caches as the kernel reports them; None where it tells too little."""
    sizes: dict[int, int] = {}
    try:
        for index in sorted(folder.glob("index*")):
            if (index / "type").read_text().strip() != "Instruction":
                level = int((index / "level").read_text())
                sizes[level] = _bytes((index / "size").read_text().strip())
    except (OSError, ValueError):
        return None
    if not sizes.get(1) or not sizes.get(2):
        return None
    return Cache(sizes[1], sizes[2], sizes.get(3, 0))


def _bytes(size: str) -> int:
    """48K -> 49152, as the kernel writes it."""
    units = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
    unit = units.get(size[-1:])
    return int(size[:-1]) * unit if unit else int(size)
