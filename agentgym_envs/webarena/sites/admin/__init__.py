"""The administration of the shop. It works on the shop's tables and has none of its own."""
