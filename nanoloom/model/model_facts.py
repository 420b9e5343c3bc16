"""What a model says of itself: its file's name, and its metadata."""

from __future__ import annotations

from pathlib import Path

from nanoloom.model.source import Entering, Source


def name_of(source: Source) -> str:
    """Of a model's file, "" where there is none."""
    return Path(source.given).name if isinstance(source.given, str | Path) else ""


def metadata_of(source: Source) -> dict[str, str]:
    """Its producer, versions, descriptions, and the properties that it was saved with;
    nothing of a computation."""
    if isinstance(source, Entering):
        return {}
    model = source.model()
    said = {
        "producer_name": model.producer_name,
        "producer_version": model.producer_version,
        "domain": model.domain,
        "description": model.doc_string,
        "version": model.model_version,
        "graph_name": model.graph.name,
    }
    known = {name: str(value) for name, value in said.items() if value}
    return dict(model.metadata_props) | known
