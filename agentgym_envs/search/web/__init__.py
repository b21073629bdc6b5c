"""Search engines of the web: their protocols, limits, and recordings with which runs repeat offline."""
