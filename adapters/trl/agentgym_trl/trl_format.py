"""Conversion between TRL and rollouts: dataset rows to episode specifications, episodes to columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agentgym_envs.errors import UsageError
from agentgym_envs.rollout import ChatCodec, EpisodeSpec, TokenTrajectory
from agentgym_envs.trajectory import Trajectory


def prompt_of(task: str, seed: int, goal: str, env: str = "") -> list[dict[str, Any]]:
    """The `prompt` cell of a dataset row. It has task and seed, as TRL passes only this column to a rollout.

    `env` is the name of the environment, if a run has several.
    """
    return [{"role": "user", "content": goal, "task": task, "seed": seed, "env": env}]


def spec_of(prompt: Any, meta: Mapping[str, Any]) -> EpisodeSpec:
    """The episode specification of a `prompt` cell. Raises UsageError if `prompt_of` did not make the cell."""
    try:
        cell = prompt[0]
        return EpisodeSpec(cell["task"], int(cell["seed"]), meta, cell.get("env") or "")
    except (KeyError, TypeError, IndexError, AttributeError):
        raise UsageError(
            f"the dataset was not made by agentgym_trl.make_dataset: no task in prompt {prompt!r:.100}"
        ) from None


def columns(
    specs: Sequence[EpisodeSpec],
    episodes: Sequence[TokenTrajectory],
    codec: ChatCodec,
    *,
    mask_truncated_answers: bool = False,
) -> dict[str, list[Any] | None]:
    """Convert episodes to the columns that TRL expects from a `rollout_func` and estimators need, one row per episode.

    `env_mask` is 1 on the trained tokens: none of an unusable episode, and optionally none of a truncated answer.
    `turn_numbers` has the number of the turn of every sampled token, from 1, and 0 elsewhere. An episode without an
    answer, or without a label where labels are trained on, becomes a single masked token. The columns of `make_dataset`
    describe the played tasks, which after dynamic sampling are not those of the dataset's rows.
    """
    placeholder = [codec.turn_end_id]
    has_logprobs = all(episode.logprobs is not None for episode in episodes if episode.ids)
    return {
        "prompt_ids": [episode.prompt_ids for episode in episodes],
        "completion_ids": [episode.ids or placeholder for episode in episodes],
        "logprobs": [episode.logprobs or [0.0] for episode in episodes] if has_logprobs else None,
        "env_mask": [_trained(episode, mask_truncated_answers) for episode in episodes],
        "turn_numbers": [_turn_numbers(episode) or [0] for episode in episodes],
        "token_rewards": [episode.rewards or [0.0] for episode in episodes],
        "state_keys": [_state_keys(episode) or [0] for episode in episodes],
        "bootstrap_ids": [episode.bootstrap_ids for episode in episodes],
        "prompt": [_prompt(spec, episode) for spec, episode in zip(specs, episodes, strict=True)],
        "episode_score": [e.trajectory.score if e.trajectory.usable else None for e in episodes],
        "task": [episode.trajectory.task.id for episode in episodes],
        "group": [episode.trajectory.task.group for episode in episodes],
        "seed": [episode.trajectory.seed for episode in episodes],
        "env": [spec.env for spec in specs],
    }


def per_turn(episode: TokenTrajectory, values: Mapping[int, Any], missing: Any) -> list[Any]:
    """(T,) the value of the turn of each sampled token, by its number from 1, `missing` if it has none; 0 elsewhere."""
    return _per_answer(episode, [values.get(number, missing) for number in episode.turn_numbers]) or [0]


def add_owners(
    rows: dict[str, Any], episodes: Sequence[TokenTrajectory], owners: Sequence[Sequence[int]], first: int, size: int
) -> None:
    """Add the column `turn_owners`, and leave each shared turn out of the loss of all rows but one.

    Args:
        rows: the columns of `columns`.
        episodes: the episodes of this process.
        owners: the row of this process that sampled each turn of each episode.
        first: the row of the first episode among those of all processes.
        size: the number of episodes of a group.
    """
    rows["turn_owners"] = []
    for row, (episode, own) in enumerate(zip(episodes, owners, strict=True)):
        rows["turn_owners"].append(
            per_turn(episode, {turn: (first + owner) % size for turn, owner in enumerate(own, 1)}, 0)
        )
        for (begin, end), number in zip(episode.turn_spans, episode.turn_numbers, strict=True):
            if number <= len(own) and own[number - 1] != row:
                rows["env_mask"][row][begin:end] = [0] * (end - begin)


def _prompt(spec: EpisodeSpec, episode: TokenTrajectory) -> list[dict[str, Any]]:
    task = episode.trajectory.task
    return prompt_of(task.id, spec.seed, task.goal, spec.env)


def _trained(episode: TokenTrajectory, mask_truncated_answers: bool) -> list[int]:
    if not episode.trajectory.usable:
        return [0] * max(len(episode.ids), 1)
    mask = list(episode.assistant_mask) or [0]
    infos = [info for attempt in _infos(episode.trajectory) for info in attempt] if mask_truncated_answers else []
    actions = dict(zip(episode.turn_numbers, episode.turn_spans, strict=True))  # the last answer of each turn
    for number, info in enumerate(infos, 1):
        if info.get("finish") == "length":
            begin, end = actions[number]
            mask[begin:end] = [0] * (end - begin)
    return mask


def _turn_numbers(episode: TokenTrajectory) -> list[int]:
    """(T,) the number of each sampled token's turn, from 1; 0 on other tokens."""
    return _per_answer(episode, list(episode.turn_numbers))


def _state_keys(episode: TokenTrajectory) -> list[int]:
    """(T,) the key of the state in which the turn of each token began."""
    first = episode.trajectory.meta.get("state_key")
    keys = [key for infos in _infos(episode.trajectory) for key in (first, *(i.get("state_key") for i in infos[:-1]))]
    before = dict(enumerate(map(_number, keys), 1))
    return _per_answer(episode, [before.get(number, 0) for number in episode.turn_numbers])


def _per_answer(episode: TokenTrajectory, values: Sequence[Any]) -> list[Any]:
    """(T,) the value of the answer that each token belongs to; 0 on other tokens."""
    row = [0] * len(episode.ids)
    for (begin, end), value in zip(episode.turn_spans, values, strict=True):
        row[begin:end] = [value] * (end - begin)
    return row


def _infos(trajectory: Trajectory) -> list[list[Mapping[str, Any]]]:
    """The infos of the turns, for each attempt at the task; all but the last one failed."""
    failed = trajectory.meta.get("attempts", ())
    return [*([turn["info"] for turn in attempt["turns"]] for attempt in failed), [t.info for t in trajectory.turns]]


def _number(state_key: str | None) -> int:
    return int(state_key or "0", 16) >> 1  # drop one of 64 bits to fit a signed integer
