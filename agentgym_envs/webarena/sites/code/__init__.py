"""The site for hosting code: projects with files, commits, issues and merge requests."""
