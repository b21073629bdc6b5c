"""TextCraft: craft one of 544 goal items from recipes, with the real item names or in worlds with other names."""
