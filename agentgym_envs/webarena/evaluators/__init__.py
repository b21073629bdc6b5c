"""Evaluators that score web episodes, one module per kind of evidence."""
