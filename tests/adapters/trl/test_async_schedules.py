"""Random schedules of asynchronous training on a virtual clock, with a policy and environments that cost nothing."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from agentgym_envs.rollout import EpisodeSpec, Generation, Sampling
from agentgym_trl.asynchronous.engine import AnswerRequest
from agentgym_trl.asynchronous.groups import EpisodeGroup
from agentgym_trl.asynchronous.loops import VirtualDriver
from agentgym_trl.asynchronous.scheduler import Scheduler, Sizes
from agentgym_trl.asynchronous.session import earliest
from agentgym_trl.asynchronous.settings import AsyncSettings, VirtualTimes
from agentgym_trl.asynchronous.virtual import VirtualEngine

ROLLOUTS = 8
Episode = tuple[tuple[int, ...], ...]
"""The answers of an episode as (version, tokens)."""
Batch = list[tuple[int, list[Episode]]]


@dataclass(frozen=True)
class Schedule:
    """A random setting of all that decides the order of events."""

    seed: int
    sizes: Sizes = field(init=False)
    settings: AsyncSettings = field(init=False)
    failing: float = field(init=False)

    def __post_init__(self) -> None:
        rng = np.random.default_rng(self.seed)
        batch, group = int(rng.integers(1, 4)), int(rng.integers(1, 4))
        concurrency = int(rng.choice([2, batch * group, 1000]))
        staleness, oversample = int(rng.integers(0, 5)), int(rng.choice([0, 0, 1, batch]))
        times = VirtualTimes(
            self.seed,
            env=float(rng.choice([0.1, 1.0, 10.0])),
            env_sigma=float(rng.choice([0.3, 1.0, 2.0])),
            batch=float(rng.choice([0.0, 0.1])),
            token=float(rng.choice([0.003, 0.1])),
            train=float(rng.choice([0.0, 1.0, 30.0])),
            train_sigma=0.5,
        )
        values = {
            "sizes": Sizes(batch, group, concurrency, retries=int(rng.integers(0, 3))),
            "settings": AsyncSettings(staleness, oversample, times),
            "failing": float(rng.choice([0.0, 0.1])),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)


class Run:
    """A scheduler with a fake trainer: `rollout` hands over a batch and lets the time of a training step pass."""

    def __init__(self, schedule: Schedule, state: dict[str, Any] | None = None) -> None:
        self.schedule, settings = schedule, schedule.settings
        assert settings.times is not None
        self.driver = VirtualDriver(0.0 if state is None else earliest(state))
        self.engine = VirtualEngine(self._sample, settings.times, lockstep=not settings.max_staleness)
        self.scheduler = Scheduler(self._spec, self.engine, self._play, schedule.sizes, settings)
        if state is not None:
            self.driver.call(self.scheduler.restore(state))

    def rollout(self) -> list[EpisodeGroup]:
        version = self.scheduler.next_rollout
        groups = self.driver.call(self.scheduler.collect(step=version, run=1000 + version))
        assert self.schedule.settings.times is not None
        self.driver.call(asyncio.sleep(self.schedule.settings.times.train_seconds(version)))
        return groups

    def state(self) -> dict[str, Any]:
        return json.loads(json.dumps(self.driver.call(self.scheduler.state())))

    def close(self) -> None:
        self.driver.call(self.scheduler.aclose())
        self.driver.close()

    def _spec(self, number: int, step: int) -> EpisodeSpec:
        return EpisodeSpec(seed=number, meta={"step": step})

    def _sample(self, requests: Sequence[AnswerRequest]) -> list[Generation]:
        """Answers that follow from the weights, the context and the random numbers."""
        answers = []
        for request in requests:
            rng = np.random.default_rng([self.engine.version, *request.seed, *request.prompt_ids])
            ids = rng.integers(0, 99, rng.integers(1, 9)).tolist()
            answers.append(Generation(ids, "stop", [-1.0] * len(ids)))
        return answers

    async def _play(self, spec: EpisodeSpec, engine: Any) -> Any:
        context, answers = [spec.seed], []
        for _ in range(1 + spec.seed % 4):
            answer = await engine.generate(context, Sampling(9))
            answers.append((answer.version, *answer.ids))
            context = context + answer.ids
        usable = sum(context) % 100 >= 100 * self.schedule.failing
        return SimpleNamespace(trajectory=SimpleNamespace(usable=usable), answers=tuple(answers))


def facts(groups: Sequence[EpisodeGroup]) -> Batch:
    return [(g.number, [g.episodes[member].answers for member in range(len(g.logs))]) for g in groups]  # type: ignore[attr-defined]


def check_batch(schedule: Schedule, rollout: int, groups: Sequence[EpisodeGroup]) -> None:
    """A batch has whole groups, every token is young enough, and versions never fall within an episode."""
    assert len(groups) == schedule.sizes.batch
    for _, episodes in facts(groups):
        assert len(episodes) == schedule.sizes.group
        for answers in episodes:
            versions = [answer[0] for answer in answers]
            assert versions == sorted(versions)
            assert 0 <= rollout - versions[0] <= schedule.settings.max_staleness and versions[-1] <= rollout


def check_stream(run: Run, used: Counter[int]) -> None:
    """Every task of the stream so far was used once, is in flight, or is to be played again."""
    state = run.state()
    waiting = [group["number"] for group in state["groups"]] + state["again"]
    assert not used.keys() & set(waiting)
    assert set(used.values()) == {1}
    assert sorted([*used, *waiting]) == list(range(state["_position"]))


@pytest.mark.slow_after(10)
@pytest.mark.rotating(always=30)
@pytest.mark.parametrize("seed", range(200))
def test_random_schedules_lose_nothing_and_resume_exactly(seed: int) -> None:
    """Also after a kill: the checkpoint is of any rollout, and what came after it is lost and played again."""
    schedule = Schedule(seed)
    run, batches, states, used = Run(schedule), list[Batch](), list[dict[str, Any]](), Counter[int]()
    for rollout in range(ROLLOUTS):
        groups = run.rollout()
        check_batch(schedule, rollout, groups)
        used.update(group.number for group in groups)
        check_stream(run, used)
        batches.append(facts(groups))
        states.append(run.state())
    if not schedule.settings.oversample:
        assert run.scheduler.replayed == 0
    run.close()
    killed = int(np.random.default_rng(seed).integers(ROLLOUTS - 1))
    resumed = Run(schedule, states[killed])
    assert [facts(resumed.rollout()) for _ in batches[killed + 1 :]] == batches[killed + 1 :]
    assert resumed.state() == states[-1]
    resumed.close()
