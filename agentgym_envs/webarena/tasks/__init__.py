"""The tasks of `AgentGym/WebArena-v0`: templates that make them of a world, each with evaluators and an oracle."""
