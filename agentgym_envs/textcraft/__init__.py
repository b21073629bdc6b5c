"""TextCraft: craft an item out of what can be had, by recipes, in a world of 544 goals or in worlds without end."""
