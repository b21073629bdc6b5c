"""An inspector for people: the sites in an ordinary browser, next to a task and its current score."""
