"""Where the questions of the search environments come from."""
