"""The quick start: a small language model learns TextCraft on two CPU cores, from nothing, in about ten minutes."""
