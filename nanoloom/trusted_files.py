"""Whose files may run: those of this user, of root, and of whom NANOLOOM_TRUST names.

A file is as safe as those who may write it, and the folder in which it lies.
"""

from __future__ import annotations

import errno
import grp
import os
import pwd
import stat
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

VARIABLE = "NANOLOOM_TRUST"  # names or numbers of users, with commas between
ROOT = 0


def others_of(path: Path) -> str:
    """Who else could have written a file, "" for nobody: a part of a sentence.

    Whoever writes its folder may put another file there.  Raises OSError.
    """
    found = others(os.stat(path))
    if found:
        return found
    around = others(os.stat(path.resolve().parent))
    return f"of its folder, {around}" if around else ""


def others(status: os.stat_result) -> str:
    """The same of a file or folder alone."""
    if status.st_uid not in trusted():
        return f"it belongs to {user(status.st_uid)}"
    is_shared = stat.S_ISDIR(status.st_mode) and status.st_mode & stat.S_ISVTX
    if is_shared:  # as of /tmp: nobody moves what is another's
        return ""
    if status.st_mode & stat.S_IWOTH:
        return "all users may write it"
    if status.st_mode & stat.S_IWGRP and not is_private(status.st_gid, status.st_uid):
        return f"group {group(status.st_gid)} may write it"
    return ""


def require_own(folder: Path) -> None:
    """Raise OSError for a folder that others may write: what is in it may be theirs.

    A folder is looked at once in a process; one that is missing yet is nobody's.
    """
    with suppress(FileNotFoundError):
        if found := _of_folder(folder, trusted()):
            reason = f"somebody else could write it: {found}"
            raise OSError(errno.EPERM, reason, str(folder))


@lru_cache(maxsize=64)
def _of_folder(folder: Path, _: frozenset[int]) -> str:
    return others(os.stat(folder))


def trusted() -> frozenset[int]:
    """The numbers of the users whose files may run."""
    return _named(os.environ.get(VARIABLE, "")) | {ROOT, os.geteuid()}


@lru_cache(maxsize=8)
def _named(words: str) -> frozenset[int]:
    """Users by name or number; of names that there are none of, nobody is trusted."""
    found: set[int] = set()
    for word in words.split(","):
        with suppress(ValueError, KeyError):
            name = word.strip()
            found.add(int(name) if name.isdigit() else pwd.getpwnam(name).pw_uid)
    return frozenset(found)


@lru_cache(maxsize=64)
def is_private(gid: int, uid: int) -> bool:
    """Whether a group is root's, or the one that a user has for himself alone."""
    if gid == ROOT:
        return True
    with suppress(KeyError):
        own = grp.getgrgid(gid)
        return own.gr_name == user(uid) and not {*own.gr_mem} - {user(uid)}
    return False


def user(uid: int) -> str:
    """A user's name, or the number where it has none."""
    with suppress(KeyError):
        return pwd.getpwuid(uid).pw_name
    return f"user {uid}"


def group(gid: int) -> str:
    """The same of a group."""
    with suppress(KeyError):
        return grp.getgrgid(gid).gr_name
    return str(gid)
