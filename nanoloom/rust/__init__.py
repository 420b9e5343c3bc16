"""For Rust: a crate over a model's C header, and what its `build.rs` links with."""

from pathlib import Path

FOLDER = Path(__file__).parent
