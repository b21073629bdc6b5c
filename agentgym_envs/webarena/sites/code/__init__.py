"""The code hosting site: projects with files, commits, issues and merge requests."""
