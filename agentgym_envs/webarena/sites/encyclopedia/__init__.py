"""The encyclopedia: linked articles about the real world and about the invented country of a world. It is read-only."""
