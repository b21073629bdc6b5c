"""Teams of LLM agents on PettingZoo: cooperative TextCraft, and any scenario as a planner and an actor.

    from agentgym_envs.multiagent import textcraft_coop_v0

    env = textcraft_coop_v0.parallel_env(num_agents=2)
    observations, infos = env.reset(seed=0)

Importing this package needs PettingZoo (the extra `multiagent`); nothing else of the suite does.
"""

from importlib.util import find_spec

from agentgym_envs.errors import missing_extra

if find_spec("pettingzoo") is None:
    raise missing_extra("The multi-agent part", "pettingzoo", "multiagent")
