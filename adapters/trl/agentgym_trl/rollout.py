"""The seam to TRL: a `rollout_func` that plays whole episodes, and the reward function that reads their scores.

Both work with an unmodified `trl.GRPOTrainer`:

    rollout = make_rollout_func("AgentGym/TextCraft-v0", tokenizer, schedule=StepRounds((10, 20, 30), every=100))
    trainer = GRPOTrainer(model, reward_funcs=rollout.reward, rollout_func=rollout, train_dataset=dataset, args=args)
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym

from agentgym_envs.errors import EnvError, UsageError
from agentgym_envs.registration import short_names
from agentgym_envs.rollout import ChatCodec, EpisodeSpec, Limits, Sampling, TokenTrajectory, run_sync
from agentgym_envs.rollout.step_files import StepFiles
from agentgym_envs.schedule import FixedRounds, Schedules, match_schedules
from agentgym_envs.vector import EnvPool, MakeEnvs
from agentgym_trl.distributed import anywhere, gathered
from agentgym_trl.dynamic_sampling import fresh_prompts, start, whole_groups, zero_variance_groups
from agentgym_trl.engines import TrainerEngine
from agentgym_trl.partner import PartnerEngine, load_partner
from agentgym_trl.rollout_metrics import facts, summarise
from agentgym_trl.team_roles import Episode, find_cast, streams
from agentgym_trl.trl_format import columns, spec_of

Record = Callable[[Episode], None] | None
EnvSource = str | MakeEnvs


@dataclass(frozen=True, slots=True)
class RolloutOptions:
    """How episodes are played.

    eval_max_turns: the limit of turns in evaluation; by default that of the step.
    concurrency: how many episodes run at once.
    retries: how often an episode that ended in `env_error` is played again.
    resamples: how often groups whose scores are all equal are replaced by other tasks (DAPO's dynamic sampling).
    mask_truncated_answers: whether answers that were cut are left out of the loss.
    trajectories: a directory that gets `step-N.jsonl` files.
    record_tokens: whether `step-N.tokens.jsonl` files beside them keep every token, whether it was sampled (also where
        `mask_truncated_answers` leaves it out of the loss), and the log-probability that the engine gave it.
    train_agents: the members of a team whose streams are trained on; all by default.
    partner: a model that plays the others, as it is (a directory, or a name on the hub); by default the policy does.
    """

    eval_max_turns: int | None = None
    concurrency: int = 1024
    retries: int = 2
    resamples: int = 0
    mask_truncated_answers: bool = False
    trajectories: Path | None = None
    record_tokens: bool = False
    train_agents: Sequence[str] | None = None
    partner: str | None = None


class Rollout:
    """Plays the episodes of a training step; call it as TRL calls a `rollout_func`."""

    __name__ = "agentgym_rollout"  # TRL asks functions for their names

    def __init__(
        self, make_env: MakeEnvs, codec: ChatCodec, schedule: Schedules, limits: Limits, options: RolloutOptions
    ) -> None:
        """See `make_rollout_func`."""
        self.codec, self.schedule = codec, schedule
        self.make_env, self.limits, self.options = make_env, limits, options
        # Kept from step to step: opening an environment may mean to start a simulator, or a session on a server.
        self.runners = EnvPool(make_env, options.concurrency)
        weakref.finalize(self, self.runners.close)
        names = [""] if callable(make_env) else list(make_env)
        self.cast = find_cast(self.runners, names, options.train_agents)
        if options.partner is not None and self.cast.trained == self.cast.agents:
            raise UsageError("a partner plays the members of a team that --train_agents leaves out, and there are none")
        self.partner = load_partner(options.partner, codec.tokenizer) if options.partner is not None else None
        self._files: StepFiles | None = None
        self.metrics: dict[str, float] = {}
        self.last: list[TokenTrajectory] = []

    def __call__(self, prompts: Sequence[Any], trainer: Any) -> dict[str, Any]:
        """One episode a prompt (TRL repeats a prompt for every member of its group); of a team, one stream a prompt.

        Raises UsageError if the prompts do not come out as whole episodes of a team.
        """
        step, training = int(trainer.state.global_step), bool(trainer.model.training)
        began = time.perf_counter()
        with self._recorder(step, training, int(trainer.accelerator.process_index)) as record:
            session = _StepRollout(self, trainer, step, training, record)
            specs, episodes = session.play(prompts)
        played, envs = gathered(facts(specs, episodes)), [] if callable(self.make_env) else list(self.make_env)
        self.metrics = {**summarise(played, envs), **session.metrics(time.perf_counter() - began)}
        self.last = self.cast.rows(episodes, session.size)
        found = columns(
            self.cast.spread(specs, session.size),
            self.last,
            self.codec,
            mask_truncated_answers=self.options.mask_truncated_answers,
        )
        if self.cast.agents:
            found["agent"] = [row.trajectory.meta["agent"] for row in self.last]
        return found

    def reward(
        self, completions: Sequence[Any], episode_score: Sequence[float | None], log_metric: Any = None, **_: Any
    ) -> list[float | None]:
        """The reward function that goes with this rollout: an episode's score, None where the environment failed."""
        for name, value in self.metrics.items() if log_metric else ():
            log_metric(name, value)
        self.metrics = {}
        return list(episode_score)

    reward.__name__ = "score"

    def max_turns(self, env: str, step: int, training: bool) -> int:
        """The limit of turns of an episode of `env` (a name) that begins at a training step."""
        if not training and self.options.eval_max_turns is not None:
            return self.options.eval_max_turns
        if not isinstance(self.schedule, Mapping):
            return self.schedule(step)
        return self.schedule[env](step)

    @contextmanager
    def _recorder(self, step: int, training: bool, rank: int) -> Iterator[Record]:
        """Writes episodes down as they finish, to a file of this step."""
        if self.options.trajectories is None:
            yield None
            return
        if self._files is None:
            codec = self.codec if self.options.record_tokens else None
            self._files = StepFiles(self.options.trajectories, rank, codec=codec)
        try:
            yield partial(_write, self._files, step, training)
        finally:
            self._files.close()


class _StepRollout:
    """The episodes of one training step, until every place has one to learn from, or its tries are used up."""

    def __init__(self, rollout: Rollout, trainer: Any, step: int, training: bool, record: Record) -> None:
        self._rollout, self._trainer, self._step, self._training = rollout, trainer, step, training
        self._options, self._record = rollout.options, record
        self._places = int(trainer.num_generations if training else trainer.num_generations_eval)
        self.size = rollout.cast.group_size(self._places)
        self._seconds, self._tokens = 0.0, 0
        self._equal, self._replaced, self._replayed = 0.0, 0, 0

    def play(self, prompts: Sequence[Any]) -> tuple[list[EpisodeSpec], list[Episode]]:
        """The episodes, `size` for each group; `prompts` has one for each row."""
        specs = [self._spec(prompt) for prompt in self._rollout.cast.episodes(prompts, self._places)]
        episodes = self._with_retries(specs)
        if not anywhere(any(episode.trajectory.usable for episode in episodes)):
            raise EnvError(f"every episode of this step failed, the first with: {episodes[0].trajectory.error}")
        if self._training:
            self._resample(specs, episodes)
        return specs, episodes

    def metrics(self, seconds: float) -> dict[str, float]:
        """Of all processes: the tokens of all, the times of the slowest."""
        told = (self._tokens, self._replayed, self._seconds, max(seconds - self._seconds, 0.0))
        tokens, replayed, generate, env = zip(*gathered([told]), strict=True)
        resampled = {"rollout/resampled_groups": float(self._replaced)} if self._options.resamples else {}
        return {
            **({"rollout/zero_variance_groups": self._equal} if self._training else {}),
            **resampled,
            "rollout/replayed": float(sum(replayed)),
            "rollout/tokens": float(sum(tokens)),
            "rollout/tokens_per_second": sum(tokens) / max(*generate, 1e-9),
            "time/generate": max(generate),
            "time/env": max(env),
        }

    def _spec(self, prompt: Any) -> EpisodeSpec:
        spec = spec_of(prompt, {"step": self._step, "training": self._training})
        return replace(spec, max_turns=self._rollout.max_turns(spec.env, self._step, self._training))

    def _with_retries(self, specs: list[EpisodeSpec]) -> list[Episode]:
        """Play all; what the environment spoiled is played again, in all processes as often as any needs it."""
        done = self._once(specs)
        for _ in range(self._options.retries):
            failed = [place for place, episode in enumerate(done) if not episode.trajectory.usable]
            if not anywhere(bool(failed)):
                break
            again = self._once([specs[place] for place in failed])
            self._replayed += len(failed)
            for place, episode in zip(failed, again, strict=True):
                done[place] = episode
        return done

    def _resample(self, specs: list[EpisodeSpec], episodes: list[Episode]) -> None:
        """Replace groups without a difference, in any role, by other tasks, in place."""
        cast, size, rank = self._rollout.cast, self.size, int(self._trainer.accelerator.process_index)
        begun = set(gathered([start(spec) for spec in specs])) if self._options.resamples else set()
        for attempt in range(self._options.resamples + 1):
            alike, groups = zero_variance_groups(cast.rows(episodes, size), size)
            self._equal = len(alike) / groups if attempt == 0 else self._equal
            equal = whole_groups(alike, cast.roles)
            if not equal or attempt == self._options.resamples:
                return
            # `_step` counts micro-batches: a step may have several rollouts.
            seed = (self._trainer.args.seed, self._step, self._trainer._step, attempt)
            chosen = fresh_prompts(self._trainer.train_dataset, len(equal), seed, begun)
            new = {group: self._spec(prompt) for group, prompt in zip(equal, chosen, strict=True)}
            begun |= {start(spec) for spec in new.values()}
            first = rank * len(episodes)
            places = [place for place in range(len(episodes)) if (first + place) // size in new]
            played = self._with_retries([new[(first + place) // size] for place in places])
            for place, episode in zip(places, played, strict=True):
                specs[place], episodes[place] = new[(first + place) // size], episode
            self._replaced += len(equal)

    def _once(self, specs: list[EpisodeSpec]) -> list[Episode]:
        return run_sync(self._play(specs))

    async def _play(self, specs: list[EpisodeSpec]) -> list[Episode]:
        engine = _engine(self._trainer)
        concurrency, rollout = self._options.concurrency, self._rollout
        options: dict[str, Any] = {"limits": rollout.limits, "concurrency": concurrency, "on_done": self._record}
        try:
            if rollout.partner is None:
                episodes = await rollout.cast.play(specs, rollout.runners, engine, rollout.codec, **options)
            else:
                episodes = await self._play_with(rollout.partner, specs, engine, options)
            await engine.finish()
            return list(episodes)
        finally:
            await engine.aclose()
            self._seconds += engine.seconds
            self._tokens += engine.tokens

    async def _play_with(
        self, partner: PartnerEngine, specs: list[EpisodeSpec], engine: Any, options: dict[str, Any]
    ) -> Sequence[Episode]:
        """Play with a frozen partner, which samples as the policy does."""
        rollout, args, before = self._rollout, self._trainer.args, partner.seconds
        partner.model.to(self._trainer.accelerator.device)
        sampling = Sampling(rollout.limits.max_turn_tokens, args.temperature, args.top_p, args.top_k)
        cast = rollout.cast
        engines = {agent: engine if agent in cast.trained else partner for agent in cast.agents}
        try:
            return await cast.play(specs, rollout.runners, engines, rollout.codec, sampling=sampling, **options)
        finally:
            self._seconds += partner.seconds - before


def make_rollout_func(
    env: EnvSource,
    tokenizer: Any,
    *,
    env_kwargs: Mapping[str, Any] | None = None,
    schedule: Schedules | int = 30,
    max_tokens: int = 8192,
    max_turn_tokens: int = 512,
    chat_template: str | None = None,
    chat_template_kwargs: Mapping[str, Any] | None = None,
    trajectories: str | Path | None = None,
    **options: Any,
) -> Rollout:
    """A `rollout_func` for `trl.GRPOTrainer` (its `reward` is the reward function) that plays episodes of `env`.

    Args:
        env: an environment id, a function that makes an environment, or such functions by the names of environments.
        tokenizer: the model's tokenizer; its chat template must be prefix-preserving.
        env_kwargs: arguments for `gym.make`, if `env` is an id.
        schedule: the limit of turns, fixed or by the global step, or one for each environment (by name, or by short
            name: TextCraft for AgentGym/TextCraft-v0); read at every rollout.
        max_tokens: the budget of a trajectory after its prompt, observations included. Set TRL's
            `max_completion_length` to the same number.
        max_turn_tokens: the budget of one answer.
        chat_template: a Jinja template instead of the tokenizer's own.
        chat_template_kwargs: further variables of the template.
        trajectories: a directory that gets `step-N.jsonl` files.
        options: the other fields of `RolloutOptions`.

    Raises:
        TemplateError: the chat template cannot be trained on.
        UsageError: a schedule names an environment that is not there, or one has none; the environments have different
            teams, or not the members that are to be trained; the partner does not fit.
    """
    make_env: MakeEnvs = (lambda: gym.make(env, **dict(env_kwargs or {}))) if isinstance(env, str) else env
    return Rollout(
        make_env,
        ChatCodec(tokenizer, template=chat_template, template_kwargs=chat_template_kwargs),
        _schedules(schedule, list(env) if isinstance(env, Mapping) else []),
        Limits(max_tokens=max_tokens, max_turn_tokens=max_turn_tokens),
        RolloutOptions(trajectories=Path(trajectories) if trajectories else None, **options),
    )


def _schedules(schedule: Schedules | int, names: list[str]) -> Schedules:
    """The schedule, or one for every name."""
    return FixedRounds(schedule) if isinstance(schedule, int) else match_schedules(schedule, short_names(names))


def _write(files: StepFiles, step: int, training: bool, episode: Episode) -> None:
    """One record an episode; a team's tokens are a segment for each agent."""
    files.write(step, training, episode.trajectory, list(streams(episode).values()))


def _engine(trainer: Any) -> Any:
    """What answers: the trainer's own generation, or the vLLM server that it keeps up to date."""
    if trainer.use_vllm and trainer.args.vllm_mode == "server":
        from agentgym_trl.server_engine import server_engine_for

        return server_engine_for(trainer)
    return TrainerEngine(trainer)
