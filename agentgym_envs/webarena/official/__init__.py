"""The 812 tasks of WebArena, on sites that the user runs."""
