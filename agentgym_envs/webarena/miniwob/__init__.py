"""MiniWoB++: small tasks on small pages."""
