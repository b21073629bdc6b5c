"""What `agentgym eval` is made of: its settings, what is to be played, and playing it."""
