"""The frozen table of tasks."""
