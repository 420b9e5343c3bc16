"""nanoloom demo: a trained model, start to end."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Annotated, cast

import typer

from nanoloom.cli import options as words

EXAMPLE = "Example: nanoloom demo"
EXTRA = "pip install 'nanoloom[demo]'"
Folder = Annotated[
    Path | None,
    typer.Option(
        "--folder", metavar="DIR", help="Where the model is built (default: the cache)."
    ),
]


def demo(
    folder: Folder = None,
    threads: words.Threads = None,
    cache: words.CacheFolder = None,
    debug: words.Debug = False,
) -> int:
    """Find the sentences that mean the same: a trained model, compiled."""
    del debug
    from nanoloom.cache import default_root
    from nanoloom.errors import Error
    from nanoloom.runtime.threads import thread_count

    if folder is not None and folder.exists() and not folder.is_dir():
        raise Error("is a file", where=str(folder), hint="name a folder")
    place = folder or (cache or default_root()) / "demo"
    return minilm()(place, thread_count(threads))


def minilm() -> Callable[[Path, int], int]:
    """The example's function; raises Error if it, or a package it needs, is missing."""
    import nanoloom
    from nanoloom.errors import Error

    tree = Path(nanoloom.__file__).parent.parent
    if not (tree / "examples" / "minilm" / "demo.py").is_file():
        raise Error(
            "the demo is a part of nanoloom's source tree and not installed",
            hint="run it in a clone of the source",
        )
    sys.path.insert(0, str(tree))
    try:
        found = import_module("examples.minilm.demo")
    except ModuleNotFoundError as error:
        raise Error(f"the demo needs the package {error.name}", hint=EXTRA) from None
    finally:
        sys.path.remove(str(tree))
    return cast("Callable[[Path, int], int]", found.demo)
