"""`textcraft_coop_v0` in PettingZoo's convention: `parallel_env(...)`, `env(...)` and `raw_env(...)`.

The arguments of all three are those of `CoopTextCraftEnv`. Its own form is the parallel one. In the other form (AEC)
the agents are asked one after the other, and the round is played when the last has answered; each sees what came of
the round before. `tasks`, `task`, `grammar`, `instructions_for`, `oracle`, `random_command` and `status` are there in
both forms; what `oracle` gives are rounds, from the last one that was played.
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
"""What of the parallel form is told by the other one too."""


def parallel_env(**kwargs: Any) -> CoopTextCraftEnv:
    """All agents act at once."""
    return CoopTextCraftEnv(**kwargs)


def raw_env(**kwargs: Any) -> AECEnv[str, str, str]:
    """The agents act one after the other; PettingZoo's own conversion, which also enforces the order of calls."""
    return OrderEnforcingWrapper(_OneByOne(CoopTextCraftEnv(**kwargs)))


class _OneByOne(parallel_to_aec_wrapper):  # type: ignore[misc]  # PettingZoo is not typed
    """PettingZoo's conversion, which keeps actions until a round is full. A wrong one must never get that far."""

    def __getattr__(self, name: str) -> Any:
        if name not in _SHARED:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self.env, name)

    def observe(self, agent: str) -> str:
        """What the agent saw last. Raises UsageError if there is no such agent."""
        check_agent(agent, self.possible_agents)
        return self._observations[agent]  # type: ignore[no-any-return]

    def step(self, action: str | None) -> None:
        """The selected agent's action; None from one whose episode is over. Raises UsageError for what is no string."""
        over = self.terminations[self.agent_selection] or self.truncations[self.agent_selection]
        if not over and not isinstance(action, str):
            raise UsageError(f"an action is a string, got {type(action).__name__}: {action!r:.80}")
        super().step(action)


env = raw_env
