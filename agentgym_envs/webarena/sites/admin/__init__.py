"""The administration of the shop. It uses the tables of the shop and has none of its own."""
