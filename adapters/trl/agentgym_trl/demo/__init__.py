"""The quick start: a small untrained language model learns TextCraft on two CPU cores in about ten minutes."""
