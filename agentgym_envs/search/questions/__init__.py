"""Questions of the Search scenario: the embedded ones, the published sets, and your own files."""
