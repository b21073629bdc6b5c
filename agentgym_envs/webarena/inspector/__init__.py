"""A desk for people: the five sites in an ordinary browser, beside a task and what it would score now."""
