"""Teams of LLM agents on PettingZoo: cooperative TextCraft, and any scenario as a planner and an actor.

    from agentgym_envs.multiagent import textcraft_coop_v0

    env = textcraft_coop_v0.parallel_env(num_agents=2)
    observations, infos = env.reset(seed=0)

`textcraft_coop_v0` and `planner_actor` need PettingZoo (the extra `multiagent`), and so does making a team here;
reading records of teams, and playing teams behind a server, does not.
"""
