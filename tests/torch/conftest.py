"""These tests are collected only where the extra `torch` is installed: `make torch`."""

from __future__ import annotations

from importlib.util import find_spec

IS_THERE = find_spec("torch") and find_spec("onnxscript")

collect_ignore_glob = [] if IS_THERE else ["test_with_*.py"]
