"""A model before its shapes are known, and with them."""
