"""The seam to TRL: a `rollout_func` that plays whole episodes, and the reward function that reads their scores.

Both work with an unmodified `trl.GRPOTrainer`:

    rollout = make_rollout_func("AgentGym/TextCraft-v0", tokenizer, schedule=StepRounds((10, 20, 30), every=100))
    trainer = GRPOTrainer(model, reward_funcs=rollout.reward, rollout_func=rollout, train_dataset=dataset, args=args)
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium as gym

from agentgym_envs.core import StopReason
from agentgym_envs.errors import EnvError, UsageError
from agentgym_envs.rollout import ChatCodec, EpisodeSpec, Limits, TokenTrajectory, play_many, run_sync
from agentgym_envs.schedule import FixedRounds, TurnSchedule
from agentgym_envs.trajectory import TrajectoryWriter
from agentgym_trl.engines import TrainerEngine

Record = Callable[[TokenTrajectory], None] | None


class Rollout:
    """Plays the episodes of a training step; call it as TRL calls a `rollout_func`."""

    __name__ = "agentgym_rollout"  # TRL asks functions for their names

    def __init__(
        self,
        make_env: Callable[[], gym.Env[str, str]],
        codec: ChatCodec,
        *,
        schedule: TurnSchedule,
        limits: Limits,
        eval_max_turns: int | None = None,
        concurrency: int = 1024,
        retries: int = 2,
        trajectories: Path | None = None,
    ) -> None:
        """See `make_rollout_func`."""
        self._make_env, self.codec, self.schedule, self._limits = make_env, codec, schedule, limits
        self._eval_max_turns, self._concurrency, self._retries = eval_max_turns, concurrency, retries
        self._directory, self._begun = trajectories, set[Path]()
        self.metrics: dict[str, float] = {}
        self.last: list[TokenTrajectory] = []

    def __call__(self, prompts: Sequence[Any], trainer: Any) -> dict[str, Any]:
        """One episode a prompt (TRL repeats a prompt for every member of its group)."""
        step, training = int(trainer.state.global_step), bool(trainer.model.training)
        specs = [spec_of(prompt, {"step": step, "training": training}) for prompt in prompts]
        limits = replace(self._limits, max_turns=self._max_turns(step, training))
        engine, began = TrainerEngine(trainer), time.perf_counter()
        with self._recorder(step, training, int(trainer.accelerator.process_index)) as record:
            self.last = self._play(specs, engine, limits, record)
        self.metrics = summarise(self.last, limits, engine, time.perf_counter() - began)
        return columns(self.last, self.codec)

    def reward(
        self, completions: Sequence[Any], episode_score: Sequence[float | None], log_metric: Any = None, **_: Any
    ) -> list[float | None]:
        """The reward function that goes with this rollout: an episode's score, None where the environment failed."""
        for name, value in self.metrics.items() if log_metric else ():
            log_metric(name, value)
        self.metrics = {}
        return list(episode_score)

    reward.__name__ = "score"

    def _max_turns(self, step: int, training: bool) -> int:
        if not training and self._eval_max_turns is not None:
            return self._eval_max_turns
        return self.schedule(step)

    def _play(
        self, specs: list[EpisodeSpec], engine: TrainerEngine, limits: Limits, record: Record
    ) -> list[TokenTrajectory]:
        """Play all; what the environment spoiled is played again, a bounded number of times."""
        done = self._once(specs, engine, limits, record)
        for _ in range(self._retries):
            failed = [place for place, episode in enumerate(done) if not episode.trajectory.usable]
            if not failed:
                return done
            again = self._once([specs[place] for place in failed], engine, limits, record)
            for place, episode in zip(failed, again, strict=True):
                done[place] = episode
        if not any(episode.trajectory.usable for episode in done):
            raise EnvError(f"every episode of this step failed, the first with: {done[0].trajectory.error}")
        return done

    def _once(
        self, specs: list[EpisodeSpec], engine: TrainerEngine, limits: Limits, record: Record
    ) -> list[TokenTrajectory]:
        options: dict[str, Any] = {"limits": limits, "concurrency": self._concurrency, "on_done": record}
        return run_sync(play_many(specs, self._make_env, engine, self.codec, **options))

    @contextmanager
    def _recorder(self, step: int, training: bool, rank: int) -> Iterator[Record]:
        """Writes episodes down as they finish, to a file of this step."""
        if self._directory is None:
            yield None
            return
        name = f"{'step' if training else 'eval'}-{step}" + (f".rank{rank}" if rank else "")
        path = self._directory / f"{name}.jsonl"
        if path not in self._begun and path.exists():  # from a run that was stopped inside this step
            path.rename(_free_name(path))
        self._begun.add(path)
        with TrajectoryWriter(path) as writer:
            yield lambda episode: writer.write(episode.trajectory)


def make_rollout_func(
    env: str | Callable[[], gym.Env[str, str]],
    tokenizer: Any,
    *,
    env_kwargs: Mapping[str, Any] | None = None,
    schedule: TurnSchedule | int = 30,
    max_tokens: int = 8192,
    max_turn_tokens: int = 512,
    eval_max_turns: int | None = None,
    chat_template: str | None = None,
    chat_template_kwargs: Mapping[str, Any] | None = None,
    concurrency: int = 1024,
    retries: int = 2,
    trajectories: str | Path | None = None,
) -> Rollout:
    """A `rollout_func` for `trl.GRPOTrainer` (its `reward` is the reward function) that plays episodes of `env`.

    Args:
        env: an environment id, or a function that makes an environment.
        tokenizer: the model's tokenizer; its chat template must be prefix-preserving.
        env_kwargs: arguments for `gym.make`.
        schedule: the limit of turns, fixed or by the global step; read at every rollout.
        max_tokens: the budget of a trajectory after its prompt, observations included. Set TRL's
            `max_completion_length` to the same number.
        max_turn_tokens: the budget of one answer.
        eval_max_turns: the limit of turns in evaluation; by default that of the step.
        chat_template: a Jinja template instead of the tokenizer's own.
        chat_template_kwargs: further variables of the template.
        concurrency: how many episodes run at once.
        retries: how often an episode that ended in `env_error` is played again.
        trajectories: a directory that gets `step-N.jsonl` files.

    Raises:
        TemplateError: the chat template cannot be trained on.
    """
    make_env = env if callable(env) else (lambda: gym.make(env, **dict(env_kwargs or {})))
    return Rollout(
        make_env,
        ChatCodec(tokenizer, template=chat_template, template_kwargs=chat_template_kwargs),
        schedule=FixedRounds(schedule) if isinstance(schedule, int) else schedule,
        limits=Limits(max_tokens=max_tokens, max_turn_tokens=max_turn_tokens),
        eval_max_turns=eval_max_turns,
        concurrency=concurrency,
        retries=retries,
        trajectories=Path(trajectories) if trajectories else None,
    )


def prompt_of(task: str, seed: int, goal: str) -> list[dict[str, Any]]:
    """The `prompt` cell of a dataset row: TRL hands only this column to a rollout, so it carries task and seed."""
    return [{"role": "user", "content": goal, "task": task, "seed": seed}]


def spec_of(prompt: Any, meta: Mapping[str, Any]) -> EpisodeSpec:
    """The episode that a `prompt` cell stands for. Raises UsageError if `prompt_of` did not make it."""
    try:
        return EpisodeSpec(prompt[0]["task"], int(prompt[0]["seed"]), meta)
    except (KeyError, TypeError, IndexError):
        raise UsageError(
            f"the dataset was not made by agentgym_trl.make_dataset: no task in prompt {prompt!r:.100}"
        ) from None


def columns(episodes: Sequence[TokenTrajectory], codec: ChatCodec) -> dict[str, Any]:
    """Episodes in the form that TRL wants from a `rollout_func`; one without an answer becomes one masked token."""
    placeholder = [codec.turn_end_id]
    has_logprobs = all(episode.logprobs is not None for episode in episodes if episode.ids)
    return {
        "prompt_ids": [episode.prompt_ids for episode in episodes],
        "completion_ids": [episode.ids or placeholder for episode in episodes],
        "env_mask": [episode.assistant_mask or [0] for episode in episodes],
        "logprobs": [episode.logprobs or [0.0] for episode in episodes] if has_logprobs else None,
        "episode_score": [e.trajectory.score if e.trajectory.usable else None for e in episodes],
        "token_rewards": [episode.rewards or [0.0] for episode in episodes],
    }


def summarise(
    episodes: Sequence[TokenTrajectory], limits: Limits, engine: TrainerEngine, seconds: float
) -> dict[str, float]:
    """The metrics of one rollout, over the episodes that are usable."""
    usable = [episode.trajectory for episode in episodes if episode.trajectory.usable]
    turns = [turn for trajectory in usable for turn in trajectory.turns]
    stops = Counter(episode.trajectory.stop_reason for episode in episodes)
    return {
        "rollout/success": _mean([float(trajectory.success) for trajectory in usable]),
        "rollout/score": _mean([trajectory.score for trajectory in usable]),
        "rollout/turns": _mean([len(trajectory.turns) for trajectory in usable]),
        "rollout/max_turns": limits.max_turns,
        "rollout/invalid_actions": _mean([float(turn.info.get("invalid_action") is not None) for turn in turns]),
        "rollout/cut_answers": _mean([float(turn.info.get("finish") == "length") for turn in turns]),
        # All of them at all times: a mean over steps or processes would leave out those that say nothing.
        **{f"rollout/stop/{reason}": stops[reason] / len(episodes) for reason in StopReason if reason != "closed"},
        "rollout/tokens": float(engine.tokens),
        "rollout/tokens_per_second": engine.tokens / max(engine.seconds, 1e-9),
        "time/generate": engine.seconds,
        "time/env": max(seconds - engine.seconds, 0.0),
    }


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def _free_name(path: Path) -> Path:
    number = 1
    while (other := path.with_suffix(f".replaced-{number}.jsonl")).exists():
        number += 1
    return other
