"""One cache of compiled C for all tests of a session."""

from __future__ import annotations

import pytest

from nanoloom.binary.shared import Folders


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Folders:
    return Folders.under(tmp_path_factory.mktemp("native"))
