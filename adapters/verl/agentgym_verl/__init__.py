"""Train on the suite's environments with stock verl, on Ray, from one GPU to many nodes.

verl finds this package by its entry point `verl.plugins`. `agentgym_verl.loop.GymAgentLoop` then plays the dataset rows
with `agent_name: agentgym`. `agentgym verl data` writes such rows, `agentgym verl train` composes verl's own
configuration and starts verl's own `main_ppo`.
"""

AGENT_NAME = "agentgym"
"""The name of our agent loop in the rows of a dataset."""
