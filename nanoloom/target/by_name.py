"""Targets by name: a CPU of the table, or one with features, as riscv64+v, aarch64+sve.

A feature has LLVM's name.  One that widens the vectors brings another vector unit; the
others are added to what LLVM may use and to what decides between nanokernels.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from nanoloom.errors import Error
from nanoloom.target import aarch64, powerpc, riscv, x86
from nanoloom.target.facts import MOST_VECTORS, Shared, Target

FAMILIES = (x86, aarch64, riscv, powerpc)
TARGETS = tuple(target for family in FAMILIES for target in family.TARGETS)
INSTRUCTION_SETS = {family.ISA.name: family.ISA for family in FAMILIES}
_BY_NAME = {target.name: target for target in TARGETS}

# Files for any CPU of a kind.
LEVELS: Mapping[str, str] = {
    "x86-64": "x86-64-v2,x86-64-v3,x86-64-v4,x86-64-v4+avx512bf16+avx512vnni"
}
# Short words for LLVM's features.  Products of bytes are AVX-512's or AVX's.
_SHORT: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "x86_64": {
        "bf16": ("avx512bf16",),
        "vnni": ("avx512vnni", "avxvnni"),
        "amx": ("amx-bf16", "amx-int8"),
    }
}
_EITHER = frozenset({"vnni"})  # of these words the first that a target can have
# What a name that promises no vectors of its own becomes with the feature for them.
_BASES: Mapping[str, Mapping[str, str]] = {"riscv64": {"v": "rv64gcv"}}
_CORES = frozenset(core.cpu for core in riscv.CORES)
_LENGTHS = {f"zvl{bits}b": bits for bits in (128, 256, 512, 1024)}


def by_name(name: str) -> Target:
    """The known target of this name, with the features behind each `+` added.

    Raises:
        Error: there is none; the message lists the names that come near.
    """
    base, *features = name.lower().split("+")
    if base in _BASES:
        base = _widened(base, features)
    found = _BY_NAME.get(base)
    if found is None:
        raise _unknown(name, base)
    for word in features:
        for feature in meant(found, word):
            found = with_feature(found, feature)
    return found


def meant(target: Target, word: str) -> tuple[str, ...]:
    """LLVM's features for a word behind a `+`."""
    features = _SHORT.get(target.arch, {}).get(word, (word,))
    if word not in _EITHER:
        return features
    known = _features(target)
    return tuple(x for x in features if target.has(x) or x in known)[:1] or (word,)


def aliases_of(target: Target) -> tuple[str, ...]:
    """The target's other names: with a feature for the vectors that its base has, and
    with short words for LLVM's features.  The order of features is any."""
    base, *features = target.name.split("+")
    bases = [base]
    for plain, wide in _BASES.items():
        for feature, name in wide.items():
            if base == name or base.startswith(f"{name}-"):
                length = base[len(name) :].replace("-", "+")
                bases += [f"{name}{length}", f"{plain}+{feature}{length}"]
                bases += [f"{plain}{length}"] if length else []
    words = list(features)
    for word, several in _SHORT.get(target.arch, {}).items():
        there = [name for name in several if name in words]
        if there and (word in _EITHER or len(there) == len(several)):
            words = [*(name for name in words if name not in there), word]
    found = ["+".join([one, *each]) for one in bases for each in (features, words)]
    return tuple(name for name in dict.fromkeys(found) if name != target.name)


def levels(names: str) -> tuple[Target, ...]:
    """Targets of one file, from names with commas between, those of LEVELS among them;
    the least first.

    Raises:
        Error: a name is unknown, or they are of several instruction sets.
    """
    given = (LEVELS.get(word.lower(), word) for word in names.split(","))
    words = [word for each in given for word in each.split(",") if word]
    found = {target.name: target for target in map(by_name, words)}
    kinds = {target.triple for target in found.values()}
    if len(kinds) > 1:
        raise Error(
            f"{names}: a file has code for CPUs of one kind",
            hint="compile a file for each kind",
        )
    order = sorted(found.values(), key=lambda x: (x.vector.min_bits, len(x.extensions)))
    return tuple(replace(target, shared=shared_by(order)) for target in order)


def shared_by(targets: Sequence[Target]) -> Shared | None:
    """How weights lie for several targets; None for one alone."""
    if len(targets) == 1:
        return None
    return Shared(targets[-1], MOST_VECTORS * targets[0].vector.bits)


def with_feature(target: Target, feature: str) -> Target:
    """The target with one more of LLVM's features; the same one if it has it.

    Raises:
        Error: nanoloom knows no such feature of the target.
    """
    if target.has(feature):
        return target
    known = _features(target)
    if feature not in known:
        known = [*known, *_BASES.get(target.name, ())]
        near = difflib.get_close_matches(feature, known, n=3, cutoff=0.4)
        raise Error(
            f"the target {target} has no feature {feature!r} to add",
            hint=f"known: {', '.join(near or sorted(known))}",
        )
    return _as_known(known[feature](target, feature))


def _widened(base: str, features: list[str]) -> str:
    """The table's name of a base with the first feature that gives it vectors, which
    is taken from the list; the base where none does."""
    wide = _BASES[base]
    for feature in features:
        if feature in wide:
            features.remove(feature)
            return wide[feature]
    if any(feature.startswith("zv") for feature in features) and "v" in wide:
        return wide["v"]  # lengths of vectors, and arithmetic of theirs
    return base


def _as_known(target: Target) -> Target:
    """The row of the table with the same facts, if there is one: one name, one key."""
    for known in TARGETS:
        if replace(target, name=known.name) == known:
            return known
    return target


def _unknown(name: str, base: str) -> Error:
    names = [*_BY_NAME, *(f"{b}+{f}" for b, wide in _BASES.items() for f in wide)]
    near = difflib.get_close_matches(base, names, n=3, cutoff=0.4)
    hint = f"did you mean {' or '.join(near)}?" if near else "known: "
    return Error(
        f"there is no target named {name!r}",
        hint=hint if near else hint + ", ".join(_BY_NAME),
    )


# ---- what each machine may be given

Adding = Callable[[Target, str], Target]


def _features(target: Target) -> dict[str, Adding]:
    """What may be added to a target, and how."""
    bits = target.vector.bits
    wider = {128: ("avx", "amx"), 256: ("avx512", "avx10", "amx")}.get(bits, ())
    plain = [x for x in target.isa.adds if not x.startswith(wider)]
    made = _each(plain, _added) | _WIDER.get(target.arch, {})
    if target.cpu in _CORES:  # whose vectors have one length
        made = {name: adding for name, adding in made.items() if name not in _LENGTHS}
    return made


def _each(names: Iterable[str], adding: Adding) -> dict[str, Adding]:
    return dict.fromkeys(names, adding)


def _added(target: Target, feature: str) -> Target:
    words = [word for word in target.features.split(",") if word]
    matrix = x86.AMX if feature.startswith("amx") else target.matrix
    more = {feature, "amx-tile"} if matrix and not target.matrix else {feature}
    return replace(
        target,
        name=f"{target.name}+{feature}",
        features=",".join([*words, *(f"+{x}" for x in sorted(more))]),
        extensions=target.extensions | more,
        matrix=matrix,
    )


_BELOW = {"sve2": frozenset({"sve"}), "sve2p1": frozenset({"sve", "sve2"})}


def _scalable(target: Target, feature: str) -> Target:
    """Arm's scalable vectors, of any length, in place of NEON's."""
    made = _added(target, feature)
    made = replace(made, extensions=made.extensions | _BELOW.get(feature, frozenset()))
    if target.vector.scalable:
        return made
    return replace(made, vector=aarch64.SVE_ANY)


def _longer(target: Target, feature: str) -> Target:
    """RISC-V's vectors of at least so many bits."""
    bits = _LENGTHS[feature]
    if target.vector.min_bits >= bits:
        return target
    made = replace(riscv.of_length(f"rv64gcv-{feature}", bits), caches=target.caches)
    for other in sorted(target.extensions & target.isa.adds):
        made = _added(made, other)
    return made


def _outer(target: Target, feature: str) -> Target:
    """Arm's outer products, beside whatever vectors the target has."""
    return replace(_added(target, feature), matrix=aarch64.SME)


# Features that bring other vectors, or a matrix unit.
_WIDER: Mapping[str, dict[str, Adding]] = {
    "riscv64": _each(_LENGTHS, _longer),
    "aarch64": _each(("sve", *_BELOW), _scalable) | _each(("sme",), _outer),
}
