"""Tests of pages in a browser: `make browser`."""
