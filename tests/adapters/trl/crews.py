"""Teams whose members get different scores, so that an untrained policy has something to learn."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from agentgym_envs.errors import EnvError
from agentgym_envs.multiagent.joint import RoundResult
from agentgym_envs.multiagent.joint_envs import TextCraftCoopEnv
from agentgym_trl.dataset import make_dataset
from tests.adapters.trl.small import make_trainer

COOP = "AgentGym/TextCraftCoop-v0"
EASY = ["agents-2/depth-1"]
OPTIONS: dict[str, Any] = {"instructions": "", "max_distractors": 0}
AGENTS = ("crafter_0", "crafter_1")


class ScoredCoop(TextCraftCoopEnv):
    """Pays each member for its spelling. `dull` tasks pay nothing, and the member `poor` gets nothing."""

    def __init__(self, dull: frozenset[str] = frozenset(), poor: str = "") -> None:
        super().__init__(**OPTIONS)
        self._dull, self._poor = dull, poor

    def _play_round(self, actions: Mapping[str, str | None]) -> RoundResult:
        assert self.task
        found = super()._play_round(actions)
        pays = {agent: sum((text or "").encode()) % 7 / 28 for agent, text in actions.items()}
        if self.task.id in self._dull:
            pays = dict.fromkeys(pays, 0.0)
        return found._replace(rewards={**pays, **({self._poor: 0.0} if self._poor else {})})


class BrokenCoop(ScoredCoop):
    """Fails in the second round of the episodes for which `broken` is true, counted over all environments."""

    def __init__(self, broken: Callable[[int], bool], counter: Any) -> None:
        super().__init__()
        self._broken, self._counter, self._number = broken, counter, -1

    def _start_game(self, task: Any) -> RoundResult:
        self._number = next(self._counter)
        return super()._start_game(task)

    def _play_round(self, actions: Mapping[str, str | None]) -> RoundResult:
        if self._turn > 0 and self._broken(self._number):
            raise EnvError("the workshop burns")
        return super()._play_round(actions)


def broken_coop(broken: Callable[[int], bool]) -> Callable[[], BrokenCoop]:
    counter = itertools.count()
    return lambda: BrokenCoop(broken, counter)


def team_tasks(count: int = 16) -> Any:
    return make_dataset(TextCraftCoopEnv(**OPTIONS), count, groups=EASY)


def team_trainer(out: Path, tokenizer: Any, env: Any = ScoredCoop, **more: Any) -> Any:
    """Two tasks per step; by default eight rows per group, which are four episodes of two agents."""
    sizes = {"num_generations": 8, "per_device_train_batch_size": 16}
    return make_trainer(out, tokenizer, env, data=team_tasks(), **{**sizes, **more})
