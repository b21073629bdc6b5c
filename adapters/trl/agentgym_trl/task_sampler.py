"""`TaskSampler`: chooses the tasks of a rollout by the success rates of earlier ones."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from agentgym_envs.errors import UsageError
from agentgym_envs.rollout import EpisodeSpec
from agentgym_trl.agent_trajectories import Episode
from agentgym_trl.samplers import Rates, TaskWeights, parse_sampler

PRIOR_EPISODES = 4.0
"""The weight of the group's success rate in that of a task, in episodes."""
HALF_LIFE = 20.0
"""Rollouts after which an outcome counts half, since the policy changes."""
EXPLORATION = 0.1
"""The share of draws that ignore the success rates, so that every task can come back."""


class TaskKey(NamedTuple):
    """A task of the run. Rows of one task differ by their seed, and share their success rate."""

    env: str
    task: str
    group: str


class Outcome(NamedTuple):
    """The result of an episode that counts."""

    env: str
    task: str
    success: bool


class TaskSampler:
    """Draws tasks with probability (1 - e) w_i / sum(w) + e / N among the N tasks of an environment.

    The weights w come from estimated success rates. With s successes in n episodes of a task, outcomes of earlier
    rollouts counting less, and the rate p of its group,

        p_task = (s + k p_group) / (n + k),    p_group = (s_group + 1) / (n_group + 2).

    So the rate of a task that was never played is that of its group, and 1/2 in a group that was never played. A task
    that is not drawn returns to the rate of its group. A drawn task is not drawn again before its outcome is known, as
    long as there are others. A draw depends on the seed, its number, and the outcomes recorded before it, so it is the
    same in every process and in a resumed run.
    """

    def __init__(
        self, keys: Sequence[TaskKey], prompt: Callable[[int], Any], weights: TaskWeights, *, seed: int = 0
    ) -> None:
        """`keys` has the task of every row of the dataset; `prompt` returns the prompt of a row."""
        self._prompt, self._weights, self._seed = prompt, weights, seed
        self._rows: dict[TaskKey, list[int]] = {}
        for row, key in enumerate(keys):
            self._rows.setdefault(key, []).append(row)
        self._keys = list(self._rows)
        self._index = {(key.env, key.task): index for index, key in enumerate(self._keys)}
        self._task_of_row = [self._index[key.env, key.task] for key in keys]
        groups = {pair: index for index, pair in enumerate(dict.fromkeys((key.env, key.group) for key in self._keys))}
        self._group = np.array([groups[key.env, key.group] for key in self._keys])
        self._of_env = {
            env: np.array([index for index, key in enumerate(self._keys) if key.env == env])
            for env in dict.fromkeys(key.env for key in self._keys)
        }
        self._won, self._played = np.zeros(len(self._keys)), np.zeros(len(self._keys))
        self._draws = np.zeros(len(self._keys), np.int64)
        self._known = np.zeros(len(self._keys), bool)
        self._pending: dict[int, int] = {}
        self._next = 0
        self._drawn_rates: list[float] = []

    def draw(self, env: str, number: int | None = None) -> Any:
        """The prompt of the next group, in the environment `env`.

        Args:
            env: the environment, whose share of the tasks stays as it is.
            number: the number of the group, if the caller counts: the same number gives the same prompt until its
                outcome is recorded.
        """
        number = self._next if number is None else number
        self._next = max(self._next, number + 1)
        if number not in self._pending:
            self._pending[number] = self._choose(self._of_env[env], number)
        return self._prompt(self._pending[number])

    def record(self, outcomes: Iterable[Outcome], numbers: Collection[int] | None = None) -> None:
        """Add the outcomes of a rollout; `numbers` are its groups, by default all that were drawn."""
        decay = 0.5 ** (1 / HALF_LIFE)
        self._won *= decay
        self._played *= decay
        for env, task, success in outcomes:
            index = self._index[env, task]
            self._won[index] += success
            self._played[index] += 1
            self._known[index] = True
        for number in list(self._pending) if numbers is None else numbers:
            self._pending.pop(number, None)

    def rates(self) -> Rates:
        """The estimated success rate of every task, (N,)."""
        size = int(self._group.max()) + 1
        won = np.bincount(self._group, self._won, size)
        played = np.bincount(self._group, self._played, size)
        group = ((won + 1) / (played + 2))[self._group]
        found: Rates = (self._won + PRIOR_EPISODES * group) / (self._played + PRIOR_EPISODES)
        return found

    def metrics(self) -> dict[str, float]:
        """The mean rate over all tasks and over the tasks drawn since the last call, and the sizes of pools."""
        rates, drawn, self._drawn_rates = self.rates(), self._drawn_rates, []
        return {
            "sampler/mean_p": float(rates.mean()),
            "sampler/drawn_p": float(np.mean(drawn)) if drawn else float(rates.mean()),
            "sampler/unseen": float((~self._known).sum()),
            **{f"sampler/{name}": size for name, size in self._weights.pools(rates).items()},
        }

    def state(self) -> dict[str, Any]:
        """The state for a checkpoint."""
        return {
            "won": self._won.tolist(),
            "played": self._played.tolist(),
            "draws": self._draws.tolist(),
            "known": self._known.tolist(),
            "pending": dict(self._pending),
            "next": self._next,
            "drawn_rates": list(self._drawn_rates),
        }

    def load(self, state: dict[str, Any]) -> None:
        """Continue from a state."""
        self._won, self._played = np.array(state["won"]), np.array(state["played"])
        self._draws, self._known = np.array(state["draws"], np.int64), np.array(state["known"], bool)
        self._pending, self._next = dict(state["pending"]), state["next"]
        self._drawn_rates = list(state["drawn_rates"])

    def _choose(self, tasks: Any, number: int) -> int:
        """A row of one of `tasks`, an array of indices."""
        rates = self.rates()[tasks]
        rng = np.random.default_rng((self._seed, number))
        place = int(rng.choice(len(tasks), p=self._probabilities(rates, self._waiting(tasks))))
        index = int(tasks[place])
        rows = self._rows[self._keys[index]]
        row = rows[int(self._draws[index]) % len(rows)]
        self._draws[index] += 1
        self._drawn_rates.append(float(rates[place]))
        return row

    def _waiting(self, tasks: Any) -> Any:
        """(N,) True for the tasks that were drawn and have no outcome yet; False for all if it would be all."""
        waiting = np.isin(tasks, [self._task_of_row[row] for row in self._pending.values()])
        return waiting & ~waiting.all()

    def _probabilities(self, rates: Rates, waiting: Any) -> Rates:
        weights = np.where(waiting, 0.0, self._weights.weights(rates))
        uniform = ~waiting / (~waiting).sum()
        if not weights.sum() > 0:
            return np.asarray(uniform)
        return np.asarray((1 - EXPLORATION) * weights / weights.sum() + EXPLORATION * uniform)


def make_task_sampler(text: str, dataset: Any, *, seed: int) -> TaskSampler | None:
    """The sampler of `--sampler` over the rows of a dataset; None for `uniform`. Raises UsageError."""
    weights = parse_sampler(text)
    if weights is None:
        return None
    if not {"env", "task", "group"} <= set(dataset.column_names or ()):
        raise UsageError(
            f"--sampler {text} needs a dataset of agentgym_trl.make_dataset, and this one has no columns "
            "env, task and group; use such a dataset, or --sampler uniform"
        )
    columns = (dataset[name][:] for name in ("env", "task", "group"))
    keys = [TaskKey(*row) for row in zip(*columns, strict=True)]
    return TaskSampler(keys, lambda row: dataset[row]["prompt"], weights, seed=seed)


def outcomes(specs: Sequence[EpisodeSpec], episodes: Sequence[Episode]) -> list[Outcome]:
    """The outcomes of the usable episodes."""
    return [
        Outcome(spec.env, episode.trajectory.task.id, bool(episode.trajectory.success))
        for spec, episode in zip(specs, episodes, strict=True)
        if episode.trajectory.usable
    ]
