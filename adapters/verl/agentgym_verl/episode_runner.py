"""`EpisodeRunner`: plays the episodes of one agent-loop worker, with shared environments, codec and files."""

from __future__ import annotations

import asyncio
import logging
import os
import weakref
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import ray
from omegaconf import OmegaConf

from agentgym_envs.errors import EnvError, UsageError
from agentgym_envs.rollout import ChatCodec, EpisodeSpec, Limits, Sampling, TokenTrajectory
from agentgym_envs.rollout.agents.play import play_as_agent_on
from agentgym_envs.rollout.play import play_on
from agentgym_envs.rollout.step_files import StepFiles
from agentgym_envs.vector import EnvRunner, RunnerPool
from agentgym_verl.engine import VerlEngine
from agentgym_verl.env_backends import EnvBackends
from agentgym_verl.rows import TaskRow, read_row
from agentgym_verl.settings import read_settings, turn_limit

_log = logging.getLogger(__name__)


class EpisodeRunner:
    """Plays the episodes of one agent-loop worker.

    verl makes a new agent loop for every episode; this class keeps the environments, the codec and the files.
    """

    def __init__(self, config: Any, tokenizer: Any) -> None:
        """`config` is verl's whole configuration. Raises UsageError, and the TemplateError of `ChatCodec`."""
        rollout = config.actor_rollout_ref.rollout
        block = config.get("agentgym")
        self.settings = settings = read_settings(None if block is None else OmegaConf.to_container(block, resolve=True))
        self._agent = settings.agent_options
        template_kwargs = config.data.get("apply_chat_template_kwargs") or {}
        forks = block is not None and not settings.keep_thoughts
        self.codec = ChatCodec(tokenizer, template_kwargs=dict(template_kwargs), forks=forks)
        self.limits = Limits(
            max_tokens=int(rollout.response_length),
            max_turn_tokens=settings.max_turn_tokens,
            env_seconds=settings.env_seconds,
            max_context=_max_context(rollout),
        )
        self._group_size = {False: int(rollout.n), True: int(rollout.val_kwargs.n)}
        self._backends = EnvBackends(settings)
        self._pool = RunnerPool(self._backends.makers, settings.env_concurrency)
        self._slots = asyncio.Semaphore(settings.env_concurrency)
        self._files = self._make_files()
        self._failures: Counter[str] = Counter()
        self.close = weakref.finalize(self, _close, self._pool, self._backends, self._files)
        """Closes environments, backends and files; also called when this process ends."""

    async def play(
        self, server: Any, sampling: Mapping[str, Any], columns: Mapping[str, Any]
    ) -> tuple[TaskRow, VerlEngine, TokenTrajectory | None]:
        """Play the episode of a row. Returns no trajectory if no attempt was usable.

        Raises EnvError if this was the last episode of a group without a usable one: verl marks the group as failed.
        """
        row, step = read_row(columns), _step(columns)
        row = row if self._agent is None else row.with_default_grammar(self._agent.grammar)
        limit = turn_limit(self.settings, row.env_id, step, row.evaluation)
        done = step if row.evaluation else max(step - 1, 0)  # records have the number of finished steps
        meta = {"step": done, "training": not row.evaluation, "env": row.env_id, **_uid(columns)}
        spec = EpisodeSpec(row.task, row.seed, meta, row.kind, limit)
        self._backends.add(row.kind, row.env_id, row.env_kwargs)
        async with self._slots:
            engine, episode = await self._with_retries(server, sampling, spec)
        if episode is None:
            self._count_failure(str(columns.get("uid", "")), row)
        return row, engine, episode

    async def _with_retries(
        self, server: Any, sampling: Mapping[str, Any], spec: EpisodeSpec
    ) -> tuple[VerlEngine, TokenTrajectory | None]:
        for _ in range(self.settings.env_retries + 1):
            engine = VerlEngine(server, sampling)
            episode = await self._once(engine, spec)
            if episode is not None and episode.trajectory.usable:
                break
        if episode is None or not episode.trajectory.usable:
            return engine, None
        if not episode.ids:
            _log.warning("%s: the prompt of %s leaves no tokens for an answer", spec.meta["env"], spec.task)
            return engine, None
        return engine, episode

    async def _once(self, engine: VerlEngine, spec: EpisodeSpec) -> TokenTrajectory | None:
        """Play once; None if no environment could be made."""
        try:
            async with self._pool.lease(spec.env) as runner:
                episode = _with_versions(await self._play_on(runner, engine, spec), engine)
        except EnvError:
            _log.warning("no environment could be made for %s", spec.task, exc_info=True)
            return None
        if self._files is not None:
            self._files.write(spec.meta["step"], spec.meta["training"], episode.trajectory, [episode])
        return episode

    async def _play_on(self, runner: EnvRunner, engine: VerlEngine, spec: EpisodeSpec) -> TokenTrajectory:
        if self._agent is not None:
            return await play_as_agent_on(runner, self._agent, engine, self.codec, spec, limits=self.limits)
        sampling = Sampling(self.limits.max_turn_tokens)
        return await play_on(runner, engine, self.codec, spec, limits=self.limits, sampling=sampling)

    def _count_failure(self, uid: str, row: TaskRow) -> None:
        """Verl trains on the surviving episodes of a group; raise if none survived."""
        self._failures[uid] += 1
        if self._failures[uid] >= self._group_size[row.evaluation]:
            del self._failures[uid]
            raise EnvError(f"no episode of {row.task} is usable; the log of its agent-loop worker says why")

    def _make_files(self) -> StepFiles | None:
        if self.settings.trajectories is None:
            return None
        codec = self.codec if self.settings.record_tokens else None
        return StepFiles(self.settings.trajectories, _worker_name(), codec=codec)


def _max_context(rollout: Any) -> int:
    """The max tokens of server and trainer, prompt included.

    A prompt may exceed verl's max prompt length if the response is shorter by the same number of tokens.
    """
    context = int(rollout.prompt_length + rollout.response_length)
    context = min(context, int(rollout.max_model_len or context))
    return context - 1 if rollout.name == "sglang" else context  # verl reserves one token for SGLang


def _step(columns: Mapping[str, Any]) -> int:
    if "global_steps" not in columns:
        raise UsageError("verl does not pass the training step; only its V1 trainer does (trainer.use_v1=True)")
    return int(columns["global_steps"])


def _uid(columns: Mapping[str, Any]) -> dict[str, str]:
    """The name of the episode in verl; a row of its batch is named `{uid}_{number of the context}`."""
    if "uid" not in columns or "session_id" not in columns:
        return {}
    return {"uid": f"{columns['uid']}_{int(columns['session_id'])}"}


def _with_versions(episode: TokenTrajectory, engine: VerlEngine) -> TokenTrajectory:
    """The episode with the first and the last version of the weights in its record, if the server counts them."""
    if engine.versions is None:
        return episode
    meta = {**episode.trajectory.meta, "versions": engine.versions}
    return replace(episode, trajectory=replace(episode.trajectory, meta=meta))


def _close(runners: RunnerPool, backends: EnvBackends, files: StepFiles | None) -> None:
    runners.close()
    backends.close()
    if files is not None:
        files.close()


def _worker_name() -> str:
    """A name for this agent-loop worker, the same in a resumed run if verl numbers its workers."""
    name = ray.get_runtime_context().get_actor_name() if ray.is_initialized() else None
    number = (name or "").removeprefix("agent_loop_worker_").partition("_")[0]
    return number if number.isdigit() else str(os.getpid())


_runners: dict[int, tuple[Any, EpisodeRunner]] = {}


def runner_of(config: Any, tokenizer: Any) -> EpisodeRunner:
    """The runner of this process for a run's configuration, made on first use."""
    if id(config) not in _runners:
        _runners[id(config)] = config, EpisodeRunner(config, tokenizer)
    return _runners[id(config)][1]
