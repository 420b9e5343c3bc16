"""What is known of open sizes stays as it was where a trace of a torch rule fails."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager, nullcontext
from typing import Any

from torch._subclasses.fake_tensor import FakeTensor

KNOWN = ("replacements", "replacements_slocs", "var_to_range", "var_to_range_sloc",
         "axioms", "divisible")  # fmt: skip

VERSIONS = {"_version_counter", "_replacements_version_counter"}


@contextmanager
def kept_sizes(examples: list[Any]) -> Generator[list[Any], None, None]:
    """A trace with these, in their mode: behind it, what it asked of open sizes.

    One that fails leaves nothing: another one would take its sizes for fixed.
    """
    asked: list[Any] = []
    mode = next((x.fake_mode for x in examples if isinstance(x, FakeTensor)), None)
    env = mode.shape_env if mode else None
    if mode is None or env is None:
        with mode or nullcontext():
            yield asked
        return
    count, before = len(env.guards), {n: getattr(env, n).copy() for n in KNOWN}
    try:
        with mode:
            yield asked
    except Exception:  # whatever a rule of torch raises, and it is raised again
        del env.guards[count:]
        for name, known in before.items():
            now = getattr(env, name)
            now.clear()
            now.update(known)
        for counter in VERSIONS & vars(env).keys():  # of what torch keeps of answers
            setattr(env, counter, getattr(env, counter) + 1)
        raise
    asked += [guard.expr for guard in env.guards[count:]]
