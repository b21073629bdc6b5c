"""A `rollout_func` for TRL that plays whole episodes, and the reward function that reads their scores.

Both work with an unmodified `trl.GRPOTrainer`:

    curriculum = TurnLimitCurriculum((10, 20, 30), every=100)
    rollout = make_rollout_func("AgentGym/TextCraft-v0", tokenizer, schedule=curriculum)
    trainer = GRPOTrainer(model, reward_funcs=rollout.reward, rollout_func=rollout, train_dataset=dataset, args=args)
"""

from __future__ import annotations

import math
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym

from agentgym_envs.core import text_env
from agentgym_envs.errors import UsageError
from agentgym_envs.grammar import tools_of
from agentgym_envs.registration import short_names
from agentgym_envs.rollout import ChatCodec, EpisodeSpec, Limits, TokenTrajectory
from agentgym_envs.rollout.step_files import StepFiles
from agentgym_envs.schedule import FixedTurnLimit, Schedules, match_schedules
from agentgym_envs.trajectory import Trajectory
from agentgym_envs.vector import MakeEnvs, RunnerPool
from agentgym_trl.agent_trajectories import Episode, agent_trajectories
from agentgym_trl.distributed import gathered
from agentgym_trl.engines import sync_vllm
from agentgym_trl.episode_player import EpisodePlayer, OnDone, PlayStats
from agentgym_trl.imitation import labels_of
from agentgym_trl.partner import load_partner
from agentgym_trl.process_reward import token_process_rewards
from agentgym_trl.rollout_metrics import facts, summarise
from agentgym_trl.rollout_options import RolloutOptions
from agentgym_trl.sleep_mode import awake
from agentgym_trl.step_rollout import StepRollout
from agentgym_trl.task_sampler import TaskSampler
from agentgym_trl.teams import find_team_roles
from agentgym_trl.trl_format import add_owners, columns, per_turn, spec_of

EnvSource = str | MakeEnvs


class Rollout:
    """Plays the episodes of a training step; TRL calls it as a `rollout_func`."""

    __name__ = "agentgym_rollout"  # TRL reads the name of the function
    max_staleness = 0

    def __init__(
        self, make_env: MakeEnvs, codec: ChatCodec, schedule: Schedules, limits: Limits, options: RolloutOptions
    ) -> None:
        """Use `make_rollout_func`, which documents the arguments."""
        self.codec, self.schedule = codec, schedule
        self.make_env, self.limits, self.options = make_env, limits, options
        # Kept for all steps: making an environment may start a simulator, or open a session on a server.
        self.runners = RunnerPool(make_env, options.env_concurrency)
        weakref.finalize(self, self.runners.close)
        names = [""] if callable(make_env) else list(make_env)
        self.team = find_team_roles(self.runners, names, options.train_agents)
        self._check_tools(names)
        if options.agent is not None and self.team.agents:
            raise UsageError(f"--agent is for a single agent, and this environment is a team: {self.team.agents}")
        if (options.vine is not None or options.tree is not None) and self.team.agents:
            raise UsageError(
                f"--credit forks episodes of a single agent, and this environment is a team: {self.team.agents}"
            )
        if options.oracle is not None and self.team.agents:
            raise UsageError(f"the oracle labels the turns of a single agent, and this is a team: {self.team.agents}")
        if options.partner is not None and self.team.trained == self.team.agents:
            raise UsageError(_needless_partner(self.team.agents))
        self.partner = load_partner(options.partner, codec.tokenizer) if options.partner is not None else None
        self._player = EpisodePlayer(self.team, self.runners, codec, limits, options, self.partner)
        self._files: StepFiles | None = None
        self.metrics: dict[str, float] = {}
        self.last: list[TokenTrajectory] = []
        self.sampler: TaskSampler | None = None

    def _check_tools(self, names: Sequence[str]) -> None:
        """Raise TemplateError if the chat template cannot show the native tools of an environment."""
        for name in names:
            runner = self.runners.acquire(name)
            try:
                self.codec.with_tools(tools_of(text_env(runner.last_env).grammar))
            finally:
                self.runners.release(name, runner)

    def __call__(self, prompts: Sequence[Any], trainer: Any) -> dict[str, Any]:
        """Play one episode per prompt; with a team, one trajectory per prompt.

        TRL repeats a prompt for every member of its group. Raises UsageError if the prompts of a team are not whole
        groups.
        """
        step, training = int(trainer.state.global_step), bool(trainer.model.training)
        began = time.perf_counter()
        make_spec = partial(self._spec, step=step, training=training)
        with awake(trainer), self._recorder(step, training, int(trainer.accelerator.process_index)) as on_done:
            rollout = StepRollout(self._player, trainer, make_spec, on_done=on_done, sampler=self.sampler)
            specs, episodes = rollout.play(prompts)
        rows = self.rows(specs, episodes, rollout.group_size, trainer)
        if rollout.values is not None:
            pairs = zip(self.last, rollout.values, strict=True)
            rows["state_values"] = [per_turn(episode, values, math.nan) for episode, values in pairs]
        if rollout.owners is not None:
            rank = int(trainer.accelerator.process_index)
            add_owners(rows, self.last, rollout.owners, rank * len(prompts), rollout.group_size)
        self.metrics |= rollout.metrics(time.perf_counter() - began)
        return rows

    def rows(
        self, specs: Sequence[EpisodeSpec], episodes: Sequence[Episode], group_size: int, trainer: Any
    ) -> dict[str, Any]:
        """TRL's columns of a batch of episodes; `metrics` and `last` are those of this batch from now on."""
        envs = [] if callable(self.make_env) else list(self.make_env)
        self.metrics = summarise(gathered(facts(specs, episodes)), envs)
        self.last = self.team.rows(episodes, group_size)
        if self.options.oracle is not None and self.options.oracle.imitate and trainer.model.training:
            self.last = [labels_of(episode, self.codec) for episode in self.last]
        rows = columns(
            self.team.per_row(specs, group_size),
            self.last,
            self.codec,
            mask_truncated_answers=self.options.mask_truncated_answers,
        )
        if any(row.context_starts for row in self.last) and not getattr(trainer, "trains_contexts", False):
            raise UsageError(
                f"an episode has several contexts, on which {type(trainer).__name__} cannot train: use AgentTrainer, "
                "or a chat template that keeps earlier messages as they are and an agent with the context 'full'"
            )
        self._add_process_rewards(rows, trainer)
        if self.team.agents:
            rows["agent"] = [row.trajectory.meta["agent"] for row in self.last]
        return rows

    def _add_process_rewards(self, rows: dict[str, Any], trainer: Any) -> None:
        """Add the column of process rewards, in training."""
        oracle = self.options.oracle
        if oracle is not None and oracle.process_reward is not None and trainer.model.training:
            rows["process_rewards"] = [token_process_rewards(row, oracle.process_reward) for row in self.last]

    def evaluate(self, prompts: Sequence[Any], trainer: Any) -> list[Trajectory]:
        """Play one episode per prompt in all processes together, and return the trajectories of all of them.

        Every process must call it with the same prompts; the model must be in evaluation mode. A process plays as many
        episodes at a time as in training.
        """
        sync_vllm(trainer)
        rank, processes = int(trainer.accelerator.process_index), int(trainer.accelerator.num_processes)
        step, size = int(trainer.state.global_step), int(trainer.args.generation_batch_size) // processes
        specs = [self._spec(prompt, step, training=False) for prompt in prompts[rank::processes]]
        largest = -(-len(prompts) // processes)
        episodes: list[Episode] = []
        with awake(trainer), self._recorder(step, False, rank) as on_done:
            for first in range(0, largest, size):
                episodes += self._player.play(specs[first : first + size], trainer, PlayStats(), on_done)
        return gathered([episode.trajectory for episode in episodes])

    def reward(
        self, completions: Sequence[Any], episode_score: Sequence[float | None], log_metric: Any = None, **_: Any
    ) -> list[float | None]:
        """The reward function of this rollout: the score of each episode, None after `env_error`."""
        for name, value in self.metrics.items() if log_metric else ():
            log_metric(name, value)
        self.metrics = {}
        return list(episode_score)

    reward.__name__ = "score"

    def state(self) -> dict[str, Any] | None:
        """The state for a checkpoint, if episodes continue between rollouts."""
        return None

    def load(self, state: dict[str, Any] | None) -> None:
        """Continue from a state in the next rollout."""

    def close(self) -> None:
        """End episodes that continue between rollouts."""

    def max_turns(self, env: str, step: int, training: bool) -> int:
        """The max turns of an episode in the environment named `env` that starts at training step `step`."""
        if not training and self.options.eval_max_turns is not None:
            return self.options.eval_max_turns
        if not isinstance(self.schedule, Mapping):
            return self.schedule(step)
        return self.schedule[env](step)

    def _spec(self, prompt: Any, step: int, training: bool) -> EpisodeSpec:
        spec = spec_of(prompt, {"step": step, "training": training})
        return replace(spec, max_turns=self.max_turns(spec.env, step, training))

    @contextmanager
    def _recorder(self, step: int, training: bool, rank: int) -> Iterator[OnDone]:
        """Yield a function that writes each finished episode to the files of this step; None if nothing is recorded."""
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


def _needless_partner(agents: Sequence[str]) -> str:
    if not agents:
        return "--partner plays the untrained agents of a team, but this environment has a single agent: leave it out"
    return (
        f"--partner plays the untrained agents of a team, but all of {', '.join(agents)} are trained: name the ones to "
        "train with --train-agents, or leave out --partner"
    )


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
    make: Callable[..., Rollout] = Rollout,
    **options: Any,
) -> Rollout:
    """Make a `rollout_func` for `trl.GRPOTrainer` that plays episodes of `env`; its `reward` is the reward function.

    Args:
        env: an environment id, a function that makes an environment, or a mapping from names to such functions.
        tokenizer: the model's tokenizer. If its chat template rewrites earlier messages, as those of thinking models
            do, an episode has several contexts, which only `AgentTrainer` can train on.
        env_kwargs: arguments for `gym.make`, if `env` is an id.
        schedule: the max turns: a number, a function of the global step, or a mapping from environments (names, or
            short names such as TextCraft for AgentGym/TextCraft-v0) to such functions.
        max_tokens: the token budget of a trajectory after its prompt, observations included. Set TRL's
            `max_completion_length` to the same number.
        max_turn_tokens: the token budget of one answer.
        chat_template: a Jinja template that replaces the tokenizer's own.
        chat_template_kwargs: variables of the template, such as `{"enable_thinking": False}`.
        trajectories: a directory for `step-N.jsonl` files.
        make: makes the rollout, for subclasses with further arguments.
        options: `eval_max_turns`, `env_concurrency`, `env_retries`, `dynamic_sampling_retries`,
            `mask_truncated_answers`, `record_tokens`, `agent`, `train_agents`, `partner`, `vine`, `tree`, `oracle`;
            see `RolloutOptions`.

    Raises:
        TemplateError: the chat template is missing, or shows messages in part.
        UsageError: the schedules do not match the environments; the environments have different teams; an agent to
            train is not in the team; the partner has another vocabulary.
    """
    kwargs = dict(env_kwargs or {})
    if (agent := options.get("agent")) is not None:
        kwargs.setdefault("grammar", agent.grammar)
    make_env: MakeEnvs = (lambda: gym.make(env, **kwargs)) if isinstance(env, str) else env
    return make(
        make_env,
        ChatCodec(tokenizer, template=chat_template, template_kwargs=chat_template_kwargs, forks=True),
        _schedules(schedule, list(env) if isinstance(env, Mapping) else []),
        Limits(max_tokens=max_tokens, max_turn_tokens=max_turn_tokens),
        RolloutOptions(trajectories=Path(trajectories) if trajectories else None, **options),
    )


def _schedules(schedule: Schedules | int, names: list[str]) -> Schedules:
    """The schedule of the run, or one for every environment."""
    return FixedTurnLimit(schedule) if isinstance(schedule, int) else match_schedules(schedule, short_names(names))


def _write(files: StepFiles, step: int, training: bool, episode: Episode) -> None:
    """Write one record per episode; a team's tokens have one segment per agent."""
    files.write(step, training, episode.trajectory, list(agent_trajectories(episode).values()))
