"""Five sites with a world in them, for `AgentGym/WebArena-v0`: shop, administration, forum, code hosting, map."""
