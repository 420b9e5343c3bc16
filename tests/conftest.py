"""C is compiled once in a process of tests, though most have a cache of their own.

The runtime's few files are the same in all of them and take half a second each time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from nanoloom.binary import link
from nanoloom.binary.link import Source


@pytest.fixture(scope="session", autouse=True)
def compiled_c_is_kept() -> Iterator[None]:
    kept: dict[tuple[Source, tuple[str, ...]], bytes] = {}
    compiled = link._compiled

    def looked_up(
        sources: Sequence[Source], command: Sequence[str], scratch: Path
    ) -> list[bytes]:
        words = tuple(command)
        new = [source for source in sources if (source, words) not in kept]
        for source, code in zip(new, compiled(new, command, scratch), strict=True):
            kept[source, words] = code
        return [kept[source, words] for source in sources]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(link, "_compiled", looked_up)
        yield
