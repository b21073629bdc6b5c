"""The shop: its catalogue, customers and orders. The administration uses the same tables."""
