"""Every environment as a taskset of verifiers 0.4 (its `verifiers.v1` stack), and so of prime-rl.

`vf-eval agentgym_verifiers` finds the three plug-ins by the names in `__all__`: the tasks, the episode, and the program
that sends a conversation to the model. The only package that imports verifiers.
"""

from agentgym_envs.errors import missing_extra

try:
    import verifiers.v1  # noqa: F401
except ModuleNotFoundError as error:
    raise missing_extra("agentgym_verifiers", error.name or "verifiers", "verifiers") from None

from agentgym_verifiers.env import EpisodeEnv
from agentgym_verifiers.harness import AgentGymHarness
from agentgym_verifiers.taskset import AgentGymTaskset

__all__ = ["AgentGymHarness", "AgentGymTaskset", "EpisodeEnv"]
