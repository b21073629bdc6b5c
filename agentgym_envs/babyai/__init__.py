"""BabyAI: a grid world of rooms, doors and objects, told in words."""
