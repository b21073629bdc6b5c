"""These tests run in the virtual environment of the peers, by `tests/doors/test_peers.py`."""
