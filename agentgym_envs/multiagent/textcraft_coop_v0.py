"""`textcraft_coop_v0` in PettingZoo's convention: `parallel_env(...)`, `env(...)` and `raw_env(...)`.

The arguments of all three are those of `CoopTextCraftEnv`, which has the parallel API. In the AEC API the agents act
one after the other, and the round is played when the last has acted; each agent sees the results of the round before.
Both have `tasks`, `task`, `grammar`, `instructions_for`, `oracle`, `random_command` and `status`. In the AEC API
`oracle` yields whole rounds that continue the last complete round.
"""

from __future__ import annotations

from typing import Any

from agentgym_envs.errors import UsageError

from agentgym_envs.multiagent.coop import CoopTextCraftEnv  # isort: skip  (first: it names the extra that is missing)
from pettingzoo import AECEnv
from pettingzoo.utils import OrderEnforcingWrapper
from pettingzoo.utils.conversions import parallel_to_aec_wrapper

from agentgym_envs.multiagent.joint import check_agent

__all__ = ["env", "parallel_env", "raw_env"]

_SHARED = frozenset({"tasks", "task", "grammar", "instructions_for", "oracle", "random_command", "status"})
"""Attributes of the parallel API that the AEC API has as well."""


def parallel_env(**kwargs: Any) -> CoopTextCraftEnv:
    """Make the environment with the parallel API: all agents act at once."""
    return CoopTextCraftEnv(**kwargs)


def raw_env(**kwargs: Any) -> AECEnv[str, str, str]:
    """Make the environment with the AEC API by PettingZoo's conversion, with checks of the order of calls."""
    return OrderEnforcingWrapper(_SequentialCoop(CoopTextCraftEnv(**kwargs)))


class _SequentialCoop(parallel_to_aec_wrapper):  # type: ignore[misc]  # PettingZoo is not typed
    """PettingZoo's conversion, which collects the actions of a round, with checks of each action."""

    def __getattr__(self, name: str) -> Any:
        if name not in _SHARED:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self.env, name)

    def observe(self, agent: str) -> str:
        """The agent's last observation. Raises UsageError for an unknown agent."""
        check_agent(agent, self.possible_agents)
        return self._observations[agent]  # type: ignore[no-any-return]

    def step(self, action: str | None) -> None:
        """Take the selected agent's action; None if its episode is over. Raises UsageError for other types."""
        over = self.terminations[self.agent_selection] or self.truncations[self.agent_selection]
        if not over and not isinstance(action, str):
            raise UsageError(f"an action is a string, got {type(action).__name__}: {action!r:.80}")
        super().step(action)


env = raw_env
