"""How many threads suit this process.

nanoloom/runtime/cpus.c counts the same way, but for NANOLOOM_THREADS, which is a word
to Python and the command alone.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import PurePosixPath

from nanoloom.errors import Error

MOST_THREADS = 1024  # as on the command line
ReadText = Callable[[str], str | None]


def default_threads(
    *,
    cpus: int | None = None,
    environment: Mapping[str, str] = os.environ,
    read: ReadText | None = None,
) -> int:
    """NANOLOOM_THREADS; or the affinity's CPUs, at most the quota and OMP_NUM_THREADS.

    At least 1.  The keyword arguments replace what is asked of the system: `cpus` the
    affinity mask, `read` the files (None for one that is not there).  Raises Error for
    a variable that is no number of threads.
    """
    if given := environment.get("NANOLOOM_THREADS", "").strip():
        number = int(given) if given.isdecimal() and len(given) < 10 else given
        return checked_threads(number, "NANOLOOM_THREADS")
    count = cpus if cpus is not None else _affinity()
    count = min([count, *_quotas(read or _read)])
    wish = environment.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    if wish:  # a list holds one number for each nesting
        number = int(wish) if wish.isdecimal() and len(wish) < 10 else wish
        count = min(count, checked_threads(number, "OMP_NUM_THREADS"))
    return max(1, count)


def assigned_threads(cpus: float | None = None) -> int:
    """Threads of a worker that an engine has assigned so many CPUs, a half for one.

    NANOLOOM_THREADS; or the affinity's CPUs, at most the quota and `cpus`.  Engines set
    OMP_NUM_THREADS for libraries that would take all CPUs, also where a worker has
    several: it is not asked.
    """
    said = os.environ.get("NANOLOOM_THREADS", "").strip()
    if said:
        return default_threads(environment={"NANOLOOM_THREADS": said})
    count = default_threads(environment={})
    return count if cpus is None else max(1, min(count, int(cpus)))


def thread_count(given: object) -> int:
    """The threads asked for; those that suit the process, for None.

    Raises Error for what is no number of threads.
    """
    return default_threads() if given is None else checked_threads(given, "threads")


def checked_threads(given: object, name: str) -> int:
    try:
        number = operator.index(given)  # type: ignore[arg-type]
    except TypeError:
        number = 0
    if isinstance(given, bool) or not 1 <= number <= MOST_THREADS:
        raise Error(
            f"{name} is {given!r}", hint=f"give a whole number from 1 to {MOST_THREADS}"
        )
    return number


def _affinity() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _read(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, UnicodeDecodeError):
        return None


def _quotas(read: ReadText) -> Iterator[int]:
    """CPUs that each enclosing cgroup grants; nothing for those without a limit.

    Rounded down: a thread that the quota stops in the middle of a step holds up all
    others.  A container often sees its group's path but not the folders above it, so
    every level up to the mount point is looked at and missing ones are passed over.
    """
    for line in (read("/proc/self/cgroup") or "").splitlines():
        _, _, rest = line.partition(":")
        controllers, _, group = rest.partition(":")
        if not controllers:
            for folder in _levels("/sys/fs/cgroup", group):
                yield from _cpus((read(f"{folder}/cpu.max") or "").split())
        elif "cpu" in controllers.split(","):
            for folder in _levels("/sys/fs/cgroup/cpu", group):
                quota = read(f"{folder}/cpu.cfs_quota_us") or ""
                period = read(f"{folder}/cpu.cfs_period_us") or ""
                yield from _cpus(f"{quota} {period}".split())


def _levels(mount: str, group: str) -> Iterator[str]:
    path = PurePosixPath(group)
    for level in (path, *path.parents):
        yield mount + str(level).rstrip("/")


def _cpus(words: list[str]) -> Iterator[int]:
    """From quota and period in microseconds; "max" and -1 are no limit."""
    if len(words) >= 2 and words[0].isdecimal() and words[1].isdecimal():
        quota, period = int(words[0]), int(words[1])
        if quota > 0 and period > 0:
            yield max(1, quota // period)
