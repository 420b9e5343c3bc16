"""The demo's model: all-MiniLM-L6-v2, a sentence encoder with trained weights."""
