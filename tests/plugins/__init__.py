"""Plugins for pytest that the whole suite runs with; `tests/conftest.py` registers them."""
