"""What an episode on the web is worth, by kinds of evidence."""
