"""The map: towns, roads and points of interest of a country, directions, notes, and edits by contributors."""
