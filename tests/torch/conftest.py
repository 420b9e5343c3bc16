"""These tests are collected only where PyTorch is installed: `make torch`."""

from __future__ import annotations

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("torch") else ["test_with_*.py"]
