"""All exports of the zoo, by name; nothing is built before it is asked for."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.zoo import torchvision_stub
from benchmarks.zoo.entry import Entry


def entries() -> Iterator[Entry]:
    torchvision_stub.install()
    from benchmarks.zoo import classical_models, timm_models, transformers_models

    yield from classical_models.entries()
    yield from transformers_models.entries()
    yield from timm_models.entries()
