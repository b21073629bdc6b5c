"""AgentGym's five HTTP protocols: `server.py` speaks them as a server does, `client.py` as a client does.

`ids.py` holds AgentGym's numberings of tasks, `texts.py` TextCraft's replies in AgentGym's words. What is reproduced
and what is not is told in `docs/agentgym.md`.

Source: AgentGym (arXiv 2406.04151), AgentGym-RL (arXiv 2509.08755).
"""
