"""Ticks of the processor are as long as the clock says."""

from __future__ import annotations

import ctypes
from pathlib import Path

from nanoloom.binary.link import Source, compile_c, link_shared
from nanoloom.cache import Cache
from tests.runtime.native import TRIPLE

WAITING = """
#define _GNU_SOURCE
#include "clock.h"
#include <unistd.h>
/* A wait in ticks, and the least and most nanoseconds that it may have taken. */
__attribute__((visibility("default"))) void waiting(int64_t *found)
{
    nanoloom_prepare_ticks();
    int64_t first = nanoloom_now(), begin = nanoloom_ticks(), behind = nanoloom_now();
    usleep(20000);
    int64_t last = nanoloom_now(), end = nanoloom_ticks(), after = nanoloom_now();
    found[0] = nanoloom_nanoseconds(end - begin);
    found[1] = last - behind;
    found[2] = after - first;
}
"""


def test_ticks_are_nanoseconds_in_the_end(tmp_path: Path, cache: Cache) -> None:
    sources = [Source.of_runtime("clock"), Source("waiting", WAITING)]
    objects = compile_c(sources, triple=TRIPLE, cache=cache)
    link_shared(objects, tmp_path / "a.so", exports=["waiting"], cache=cache)
    found = (ctypes.c_int64 * 3)()
    ctypes.CDLL(str(tmp_path / "a.so")).waiting(found)
    ticks, least, most = found
    assert 0.99 * least <= ticks <= 1.01 * most and least >= 20_000_000
