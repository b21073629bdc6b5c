"""The map: a country's towns, roads and places, directions over its network, notes and edits of its contributors."""
