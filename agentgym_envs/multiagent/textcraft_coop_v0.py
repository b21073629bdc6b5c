"""`textcraft_coop_v0` in PettingZoo's convention: `parallel_env(...)`, `env(...)` and `raw_env(...)`.

The arguments of all three are those of `CoopTextCraftEnv`. Its own form is the parallel one. In the other form (AEC)
the agents are asked one after the other, and the round is played when the last has answered; each sees what came of
the round before.
"""

from __future__ import annotations

from typing import Any

from agentgym_envs.multiagent.coop import CoopTextCraftEnv  # isort: skip  (first: it names the extra that is missing)

from pettingzoo import AECEnv
from pettingzoo.utils.conversions import parallel_to_aec

__all__ = ["env", "parallel_env", "raw_env"]


def parallel_env(**kwargs: Any) -> CoopTextCraftEnv:
    """All agents act at once."""
    return CoopTextCraftEnv(**kwargs)


def raw_env(**kwargs: Any) -> AECEnv[str, str, str]:
    """The agents act one after the other; PettingZoo's own conversion, which also enforces the order of calls."""
    return parallel_to_aec(CoopTextCraftEnv(**kwargs))


env = raw_env
