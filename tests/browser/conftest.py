"""These tests are collected only where Playwright and Chromium are: `make browser`."""

from __future__ import annotations

import shutil
from importlib.util import find_spec

there = find_spec("playwright") and shutil.which("chromium")
collect_ignore_glob = [] if there else ["test_with_*.py"]
