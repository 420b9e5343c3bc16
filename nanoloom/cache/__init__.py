"""The disk cache of compiled kernels and models, and the keys that name its entries."""

from __future__ import annotations

from nanoloom.cache.digest import key
from nanoloom.cache.digest import of_file as file_digest
from nanoloom.cache.store import CACHE_VARIABLE, DEFAULT_LIMIT, Cache, default_root

__all__ = [
    "CACHE_VARIABLE",
    "DEFAULT_LIMIT",
    "Cache",
    "default_root",
    "file_digest",
    "key",
]
