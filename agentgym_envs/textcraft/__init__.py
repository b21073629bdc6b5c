"""TextCraft: craft a goal item by recipes, in a world of 544 goals or in a million worlds with other names."""
