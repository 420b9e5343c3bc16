"""Tests of the crate for Rust."""
