"""The lines at the head of a C header that let it be included twice, and no other."""

from __future__ import annotations

import zlib
from collections.abc import Sequence


def guard(name: str, digest: str, said: Sequence[str]) -> str:
    """What stands in front of the declarations of a model that C knows as `name`.

    Two models with one name have one set of functions: a program that includes both
    headers would link with the first of them and run it for both.  digest: of the
    model's files.  said: what the header says of its inputs and outputs.
    """
    word = f"NANOLOOM_MODEL_{name.upper()}_H"
    number = zlib.crc32("\n".join((name, digest, *said)).encode())
    return f"""\
#if defined {word} && {word} != {number}u
#error "two models have one name in C, {name}: compile one of them with another --name"
#endif
#ifndef {word}
#define {word} {number}u"""
