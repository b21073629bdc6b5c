"""The embedded corpus: its facts, the pages written from them, and its index."""
