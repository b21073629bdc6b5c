"""BabyAI: a grid world of rooms, doors and objects, described in text."""
