"""AgentGym's five HTTP protocols: `server.py` is our server of them, `client.py` our client.

`ids.py` has AgentGym's task indices, `textcraft_emulator.py` the replies of AgentGym's TextCraft. `docs/agentgym.md`
lists what is reproduced.

Source: AgentGym (arXiv 2406.04151), AgentGym-RL (arXiv 2509.08755).
"""
