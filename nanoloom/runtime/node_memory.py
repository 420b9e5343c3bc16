"""Memory of chosen nodes, on machines that have several."""

from __future__ import annotations

import ctypes
import platform
from collections.abc import Set

# Numbers of the call mbind, and of its policies: <linux/mempolicy.h>.
MBIND = {"x86_64": 237, "aarch64": 235, "riscv64": 235, "ppc64le": 259}
PREFERRED, INTERLEAVE = 1, 3
_BITS = 64  # of a word of the mask

_system = ctypes.CDLL(None, use_errno=True)


def policy(nodes: Set[int]) -> int:
    """One node's own memory; that of several in turns, as all their cores read it."""
    return PREFERRED if len(nodes) == 1 else INTERLEAVE


def keep_on_nodes(address: int, size: int, nodes: Set[int]) -> bool:
    """Have the pages there on these nodes as they are first written; a wish.

    address: a page's first.  Whether the system takes it: refusal costs only speed.
    """
    number = MBIND.get(platform.machine())
    if number is None or not nodes:
        return False
    mask = (ctypes.c_uint64 * (max(nodes) // _BITS + 1))()
    for node in nodes:
        mask[node // _BITS] |= 1 << node % _BITS
    bits = len(mask) * _BITS + 1  # Linux looks at one less
    given = (address, size, policy(nodes), ctypes.addressof(mask), bits, 0)
    return _system.syscall(number, *map(ctypes.c_ulong, given)) == 0
