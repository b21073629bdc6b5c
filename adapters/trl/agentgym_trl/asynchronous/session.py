"""`Session`: the scheduler of a run with its event loop, its engine and its environments."""

from __future__ import annotations

import asyncio
import weakref
from typing import TYPE_CHECKING, Any

import torch

from agentgym_envs.rollout import Engine, EpisodeSpec, TokenTrajectory
from agentgym_envs.rollout.agents.play import play_as_agent_on
from agentgym_envs.rollout.play import play_on
from agentgym_envs.vector import RunnerPool
from agentgym_trl.asynchronous.engines import make_engine
from agentgym_trl.asynchronous.groups import EpisodeGroup
from agentgym_trl.asynchronous.loops import Driver, ThreadDriver, VirtualDriver
from agentgym_trl.asynchronous.scheduler import Scheduler, Sizes
from agentgym_trl.asynchronous.stream import TaskStream

if TYPE_CHECKING:
    from agentgym_trl.asynchronous.rollout import AsyncRollout


class Session:
    """Plays episodes for one trainer until it is closed. All methods are for the thread of the trainer."""

    def __init__(self, rollout: AsyncRollout, trainer: Any, groups: int, state: dict[str, Any] | None) -> None:
        """Begin, or continue from the state of an earlier session. `groups` is the number of groups in a batch."""
        self._settings, self._codec, self._limits = rollout.settings, rollout.codec, rollout.limits
        options = rollout.options
        self._agent = options.agent
        self._runners = RunnerPool(rollout.make_env, options.env_concurrency)
        prompts = trainer.train_dataset
        stream = TaskStream(trainer._get_train_sampler(), lambda row: prompts[row]["prompt"], rollout.sampler)
        owner = weakref.proxy(rollout)  # the rollout ends its session when it is deleted

        def make_spec(number: int, step: int) -> EpisodeSpec:
            spec: EpisodeSpec = owner.training_spec(stream[number], step)
            return spec

        sizes = Sizes(
            batch=groups,
            group=rollout.team.group_size(int(trainer.num_generations)),
            concurrency=options.env_concurrency,
            retries=options.env_retries,
            rank=int(trainer.accelerator.process_index),
        )
        self._closed = False
        virtual = self._settings.times is not None
        self._driver: Driver = VirtualDriver(earliest(state)) if virtual else ThreadDriver()
        try:
            engine = make_engine(trainer, self._settings, self._driver, rollout.codec.stop_ids)
        except BaseException:
            self._driver.close()  # else its thread would outlive the error
            raise
        self.scheduler = Scheduler(make_spec, engine, self._play, sizes, self._settings)
        if state is not None:
            self._driver.call(self.scheduler.restore(state))

    def collect(self, step: int) -> list[EpisodeGroup]:
        """The groups of the next batch."""
        run = int(torch.randint(2**62, ()))  # follows from torch's seed, and is repeated by a resumed run
        return self._driver.call(self.scheduler.collect(step, run))

    def train(self) -> None:
        """On a virtual clock, let the episodes continue for the time of the training that follows.

        The weights are still those of the rollout, as they are for an engine of its own while the trainer learns.
        """
        if self._settings.times is not None:
            self._driver.call(asyncio.sleep(self._settings.times.train_seconds(self.scheduler.version)))

    def state(self) -> dict[str, Any]:
        """The state for a checkpoint."""
        return self._driver.call(self.scheduler.state())

    def close(self) -> None:
        """End all episodes, the engine and the environments."""
        if self._closed:
            return
        self._closed = True
        try:
            self._driver.call(self.scheduler.aclose())
        finally:
            self._driver.close()
            self._runners.close()

    async def _play(self, spec: EpisodeSpec, engine: Engine) -> TokenTrajectory:
        async with self._runners.lease(spec.env) as runner:
            if self._agent is not None:
                return await play_as_agent_on(runner, self._agent, engine, self._codec, spec, limits=self._limits)
            return await play_on(runner, engine, self._codec, spec, limits=self._limits)


def earliest(state: dict[str, Any] | None) -> float:
    """The virtual time at which the first episode in flight began."""
    if state is None:
        return 0.0
    began = [log["began"] for group in state["groups"] for log in group["logs"] if log["began"] is not None]
    return float(min([state["time"], *began]))
