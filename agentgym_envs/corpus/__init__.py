"""The facts and the prose of a small encyclopedia of the real world, which several scenarios use."""
