"""Constants that become an object without a compiler: as C lays them out."""

from __future__ import annotations

import ctypes
import re
import struct
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from nanoloom.binary import program_data, sizes_data
from nanoloom.binary.data_object import ABSOLUTE, Array, At, data_object
from nanoloom.binary.elf import Machine
from nanoloom.binary.link import Source, compile_c, link_shared
from nanoloom.binary.objects import emit
from nanoloom.cache import Cache
from nanoloom.target.by_name import FAMILIES
from tests.runtime.native import TRIPLE

STRUCTS = {
    "nanoloom_buffer": program_data.BUFFER,
    "nanoloom_step": program_data.STEP,
    "nanoloom_check": program_data.CHECK,
    "nanoloom_number": program_data.NUMBER,
    "nanoloom_room": program_data.ROOM,
    "nanoloom_move": program_data.MOVE,
    "nanoloom_repeat": program_data.REPEAT,
    "nanoloom_tensor": program_data.TENSOR,
    "nanoloom_program": program_data.WHOLE,
    "nanoloom_floor": sizes_data.FLOOR,
    "nanoloom_term": sizes_data.TERM,
    "nanoloom_open_buffer": sizes_data.OPEN_BUFFER,
    "nanoloom_open_step": sizes_data.OPEN_STEP,
    "nanoloom_open_check": sizes_data.OPEN_CHECK,
    "nanoloom_range": sizes_data.RANGE,
    "nanoloom_sizes": sizes_data.SIZES,
}


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache")


def drawn(fields: str, random: np.random.Generator) -> list[int]:
    """A number for each field; addresses are numbers, too."""
    bits = {"i": 31, "q": 63, "Q": 63}
    kinds = re.findall(r"(\d*)([iqQ])", fields)
    every = [kind for count, kind in kinds for _ in range(int(count or 1))]
    return [int(random.integers(1, 1 << bits[kind])) for kind in every]


def test_structs_are_as_c_has_them(cache: Cache, tmp_path: Path) -> None:
    """clang's initializers of the same numbers, in the order of the fields, are the
    same bytes."""
    random = np.random.default_rng(5)
    rows = {name: drawn(fields, random) for name, fields in STRUCTS.items()}
    arrays = [
        Array(f"ours_{name}", fields, [tuple(rows[name])], shown=True)
        for name, fields in STRUCTS.items()
    ]
    lines = ['#include "sizes.h"', '#pragma clang diagnostic ignored "-Weverything"']
    for name, row in rows.items():
        numbers = ", ".join(f"{x}" for x in row)
        lines += [
            f"extern const char ours_{name}[];",
            f"static const struct {name} theirs_{name} = {{{numbers}}};",
        ]
    differ = " | ".join(
        f"(!!__builtin_memcmp(ours_{x}, &theirs_{x}, sizeof theirs_{x}) << {i})"
        for i, x in enumerate(rows)
    )
    lines += [
        '__attribute__((visibility("default"))) int differing(void);',
        f"int differing(void) {{ return {differ}; }}",
    ]
    source = Source("check", "\n".join(lines))
    assert loaded(source, arrays, cache, tmp_path).differing() == 0


def loaded(
    source: Source, arrays: list[Array], cache: Cache, folder: Path
) -> ctypes.CDLL:
    """C and an object of these arrays as one library, which shows all."""
    code = compile_c([source], triple=TRIPLE, cache=cache)
    made = data_object(Machine.of(code[0][:64]), arrays)
    link_shared([*code, made], folder / "made.so", exports=["*"], cache=cache)
    return ctypes.CDLL(str(folder / "made.so"))


def test_pointers_lead_to_arrays_texts_and_functions(
    cache: Cache, tmp_path: Path
) -> None:
    arrays = [
        Array("numbers", "i", [(3,), (-4,)]),  # 8 bytes; the next begins on such
        Array("odd", "i", [(7,)]),
        Array(
            "table",
            "i4x4Q",
            [
                (5, At("odd"), "né", At("own"), At("")),
                (6, "né", "", At("numbers"), At("")),
            ],
            shown=True,
        ),
    ]
    text = """
    #include <stdint.h>
    struct row { int32_t number; const void *first; const void *second;
                 const void *third; const void *last; };
    extern const struct row table[];
    int own(void);
    __attribute__((visibility("default"))) const void *row(int i);
    int own(void) { return 42; }
    const void *row(int i) { return &table[i]; }
    """

    class Row(ctypes.Structure):
        _fields_ = (
            ("number", ctypes.c_int32),
            *((name, ctypes.c_void_p) for name in ("first", "second", "third", "last")),
        )

    library = loaded(Source("rows", text), arrays, cache, tmp_path)
    library.row.restype = ctypes.POINTER(Row)
    first, second = library.row(0)[0], library.row(1)[0]
    assert (first.number, second.number) == (5, 6)
    assert ctypes.c_int32.from_address(first.first).value == 7
    assert ctypes.string_at(first.second).decode() == "né"
    assert first.second == second.first  # once
    assert ctypes.string_at(second.second) == b""
    assert ctypes.CFUNCTYPE(ctypes.c_int)(first.third)() == 42
    both = (ctypes.c_int32 * 2).from_address(second.third)
    assert [*both] == [3, -4]
    assert first.last is None


@pytest.mark.parametrize("family", FAMILIES, ids=lambda x: x.ISA.name)
def test_every_machine_has_a_pointer(family: ModuleType) -> None:
    """As LLVM has them: of what a table is made for, all others would be none."""
    target = family.TARGETS[0]
    ir = "@there = external global i8\n@here = constant ptr @there\n"
    code = emit(ir, triple=target.triple, cpu=target.cpu)
    (pointer,) = relocations(code)
    assert pointer == ABSOLUTE[Machine.of(code[:64]).number]


def relocations(code: bytes) -> list[int]:
    """The types of those of an object, of all sections that have any."""
    at, entries = struct.unpack_from("<Q", code, 40)[0], code[60]
    found: list[int] = []
    for number in range(entries):
        _, kind, _, _, begin, size = struct.unpack_from(
            "<IIQQQQ", code, at + 64 * number
        )
        places = range(begin, begin + size, 24) if kind == 4 else ()
        found += [struct.unpack_from("<QI", code, place)[1] for place in places]
    return found
