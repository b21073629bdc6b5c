"""Oracles of MiniWoB's pages; `solvers` has the table."""
