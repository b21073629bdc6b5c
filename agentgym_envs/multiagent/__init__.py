"""Teams of LLM agents on PettingZoo: cooperative TextCraft, and any scenario for a planner and an actor.

    from agentgym_envs.multiagent import textcraft_coop_v0

    env = textcraft_coop_v0.parallel_env(num_agents=2)
    observations, infos = env.reset(seed=0)

`textcraft_coop_v0`, `planner_actor` and local teams need PettingZoo (the extra `multiagent`). Reading records of teams
and playing teams behind a server do not.
"""
