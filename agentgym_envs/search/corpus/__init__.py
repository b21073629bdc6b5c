"""The corpus that is shipped: pages about countries, cities, airports and elements."""
