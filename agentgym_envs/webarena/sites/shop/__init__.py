"""The shop: its catalogue, customers and orders, which the administration works on, too."""
