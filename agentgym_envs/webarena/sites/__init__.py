"""The six embedded sites of `AgentGym/WebArena-v0`: shop, administration, forum, code hosting, map, encyclopedia."""
