"""What is known of open sizes stays as it was where a trace of a torch rule fails."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from torch._subclasses.fake_tensor import FakeTensor

KNOWN = ("replacements", "replacements_slocs", "var_to_range", "var_to_range_sloc",
         "axioms", "divisible")  # fmt: skip

VERSIONS = {"_version_counter", "_replacements_version_counter"}


def shape_env(examples: list[Any]) -> Any:
    """Where torch notes what it knows of the sizes of these; None for fixed ones."""
    mode = next((x.fake_mode for x in examples if isinstance(x, FakeTensor)), None)
    return mode.shape_env if mode else None


@contextmanager
def kept_sizes(env: Any) -> Generator[None, None, None]:
    """A trace that fails leaves nothing: another one would take its sizes for fixed."""
    if env is None:
        yield
        return
    count, before = len(env.guards), {n: getattr(env, n).copy() for n in KNOWN}
    try:
        yield
    except Exception:  # whatever a rule of torch raises, and it is raised again
        del env.guards[count:]
        for name, known in before.items():
            now = getattr(env, name)
            now.clear()
            now.update(known)
        for counter in VERSIONS & vars(env).keys():  # of what torch keeps of answers
            setattr(env, counter, getattr(env, counter) + 1)
        raise
