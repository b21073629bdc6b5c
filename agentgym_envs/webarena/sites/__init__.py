"""The five embedded sites of `AgentGym/WebArena-v0`: shop, administration, forum, code hosting and map."""
