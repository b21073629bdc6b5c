"""Train on the suite's environments with stock verl, on Ray, from one GPU to many nodes.

verl finds this package by its entry point `verl.plugins`; a dataset row with `agent_name: agentgym` is then played by
`agentgym_verl.loop.GymAgentLoop`. `agentgym verl data` writes such rows, `agentgym verl train` composes verl's own
configuration and starts verl's own `main_ppo`.
"""

AGENT_NAME = "agentgym"
"""What rows of a dataset call our agent loop."""
