"""The tasks of `AgentGym/WebArena-v0`: templates that create them for a world, with evaluators and oracles."""
