"""The table of operators says what the node tests say."""

from __future__ import annotations

from nanoloom.cli.operators import load, markdown
from tests.conformance.records import PAGE, rows
from tests.conformance.unsupported import unsupported

UPDATE = "write it anew: python -m tests.conformance.update"


def test_table_is_up_to_date() -> None:
    assert load() == rows(unsupported()), UPDATE


def test_page_is_up_to_date() -> None:
    assert PAGE.read_text("utf-8") == markdown(load()), UPDATE
