"""The parts of `agentgym eval`: options, settings, the plan of episodes, and playing it."""
