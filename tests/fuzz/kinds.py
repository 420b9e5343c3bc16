"""The kinds of cases."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from functools import partial

from tests.fuzz.cases import Bench, Outcome
from tests.fuzz.classical.check import check_classical
from tests.fuzz.damage import check_damage
from tests.fuzz.families import FAMILIES, check_family
from tests.fuzz.graphs import check_graph


def broken(seed: int, bench: Bench) -> Outcome:
    """Ends in every way that a case must not: what the tests of this fuzzer need."""
    bench.at("nowhere")
    if seed == 0:
        os.kill(os.getpid(), signal.SIGSEGV)
    if seed == 1:
        time.sleep(1000)
    raise ZeroDivisionError


def module(seed: int, bench: Bench) -> Outcome:
    """Imports torch when such a case is there."""
    from tests.fuzz.modules.check import check_module

    return check_module(seed, bench)


def written(seed: int, bench: Bench) -> Outcome:
    """Imports torch when such a case is there."""
    from tests.fuzz.written.check import check_written

    return check_written(seed, bench)


KINDS: dict[str, Callable[[int, Bench], Outcome]] = {
    "graph": check_graph,
    "broken": broken,
    "damage": check_damage,
    "classical": check_classical,
    "module": module,
    "written": written,
    "old": partial(check_graph, old=True),
    "types": partial(check_graph, even=True),
    **{name: partial(check_family, name) for name in FAMILIES},
}
