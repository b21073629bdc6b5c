"""Forks: a fork that samples the recorded answers is the recorded episode, token by token."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import gymnasium as gym
import pytest

import agentgym_envs  # noqa: F401  (registers the ids)
from agentgym_envs.core import Snapshot, Transition, text_env
from agentgym_envs.errors import EngineError, UsageError
from agentgym_envs.http.run import background_server
from agentgym_envs.rollout import (
    ChatCodec,
    EpisodeSpec,
    Fork,
    TokenTrajectory,
    make_agent,
    play_forks,
    play_many,
)
from agentgym_envs.rollout.forks import return_from
from agentgym_envs.vector import RunnerPool
from tests.rollout.families import FAMILIES, trl_template
from tests.rollout.forking import CODEC, LIMITS, TextEngine, fork_every_turn
from tests.toy import CountEnv

QWEN3 = ChatCodec(FAMILIES["qwen3-training"].tokenizer(), template=trl_template("qwen3"), forks=True)
COMMANDS = {
    "AgentGym/TextCraft-v0": ["inventory", "get 1 oak log", "craft 4 oak planks using 1 oak log", "fly"],
    "AgentGym/BabyAI-v0": ["turn left", "turn right", "move forward", "pick up"],
    "AgentGym/Search-v0": ["<search> river </search>", "<search> mayor of the city </search>", "no idea"],
}


@pytest.mark.parametrize("env_id", COMMANDS)
def test_a_fork_with_the_same_answers_is_the_same_episode(env_id: str) -> None:
    played, forked = fork_every_turn(lambda: gym.make(env_id), TextEngine(CODEC, COMMANDS[env_id]))
    assert len(played.trajectory.turns) > 2
    assert forked == [played] * len(played.trajectory.turns)


def test_remote_environments_fork_by_replay() -> None:
    env_id = "AgentGym/TextCraft-v0"
    with background_server([env_id]) as url:
        made: list[Any] = []

        def make() -> Any:
            made.append(gym.make(env_id, base_url=url))
            return made[-1]

        played, forked = fork_every_turn(make, TextEngine(CODEC, COMMANDS[env_id]))
        assert forked == [played] * len(played.trajectory.turns) and not any(text_env(env).copies_state for env in made)


@pytest.mark.parametrize("context", ["full", "last:1", "summarise:1"])
@pytest.mark.parametrize("name", ["react", "plan"])
def test_agents_fork_with_their_plans_summaries_and_contexts(name: str, context: str) -> None:
    agent, engine = make_agent(name, context), TextEngine(CODEC, ["up", "Action: up", "Thought: x\nAction: down"])
    played, forked = fork_every_turn(lambda: CountEnv(grammar=agent.grammar), engine, agent=agent, task="count/9")
    assert forked == [played] * 5


def test_templates_that_rewrite_messages_fork_with_their_contexts() -> None:
    engine = TextEngine(QWEN3, ["<think>\nso\n</think>\n\nup", "up"], salt="a")
    played, forked = fork_every_turn(CountEnv, engine, QWEN3, task="count/9")
    assert played.context_starts and forked == [played] * 5


def test_a_fork_shares_earlier_turns_and_samples_the_rest() -> None:
    played, _ = fork_every_turn(CountEnv, TextEngine(CODEC, ["up"]), task="count/9")
    other = TextEngine(CODEC, ["give up"])
    fork = Fork.of(EpisodeSpec("count/9", 3), played, 3)
    [found] = asyncio.run(play_forks([fork], CountEnv, other, CODEC, limits=LIMITS))
    assert [turn.action for turn in found.trajectory.turns] == ["up", "up", "give up"] and other.calls == 1
    begin = played.turn_spans[2][0]
    assert found.ids[:begin] == played.ids[:begin] and found.turn_spans[:2] == played.turn_spans[:2]
    assert found.logprobs is not None and played.logprobs is not None
    assert found.logprobs[:begin] == played.logprobs[:begin]
    assert found.trajectory.stop_reason == "failure" and found.trajectory.score == pytest.approx(2 / 9)


def test_the_limits_are_those_of_the_whole_episode() -> None:
    played, forked = fork_every_turn(CountEnv, TextEngine(CODEC, ["up"]), task="count/9")
    assert [len(episode.trajectory.turns) for episode in forked] == [5] * 5
    fork = Fork.of(EpisodeSpec("count/9", 3), played, 4)
    tight = replace(LIMITS, max_tokens=played.turn_spans[3][0] + 1)
    [found] = asyncio.run(play_forks([fork], CountEnv, TextEngine(CODEC, ["up"]), CODEC, limits=tight))
    assert found.trajectory.stop_reason == "token_limit" and len(found.ids) == tight.max_tokens


@pytest.mark.parametrize("env_id", COMMANDS)
def test_states_are_copied_where_the_environment_can(env_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    base = type(text_env(gym.make(env_id)))
    copied, restore = list[Snapshot](), base.restore

    def restoring(env: Any, saved: Snapshot) -> str:
        copied.append(saved)
        return restore(env, saved)

    monkeypatch.setattr(base, "restore", restoring)
    _, forked = fork_every_turn(lambda: gym.make(env_id), TextEngine(CODEC, COMMANDS[env_id]))
    assert [saved.state_copy is not None for saved in copied] == [True] * len(forked)


class BrokenEnv(CountEnv):
    """`crash at` is the turn in which every environment but the first fails; `lies` shows another observation."""

    made = 0
    crash_at, lies = 0, False

    def __init__(self) -> None:
        super().__init__()
        BrokenEnv.made += 1
        self.first = BrokenEnv.made == 1

    def _act(self, command: str) -> Transition:
        if not self.first and self._turn == self.crash_at:
            raise ZeroDivisionError("a bug")
        result = super()._act(command)
        return result if self.first or not self.lies else result._replace(observation="other")


@pytest.mark.parametrize(("crash_at", "lies", "turns"), [(2, False, 0), (4, False, 4), (0, True, 0)])
def test_failures_in_replay_and_continuation_end_a_fork(
    crash_at: int, lies: bool, turns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(BrokenEnv, "made", 0)
    monkeypatch.setattr(BrokenEnv, "crash_at", crash_at)
    monkeypatch.setattr(BrokenEnv, "lies", lies)
    engine = TextEngine(CODEC, ["up"])

    async def run() -> tuple[TokenTrajectory, list[TokenTrajectory]]:
        spec, pool = EpisodeSpec("count/9", 3), RunnerPool(BrokenEnv, 8)
        [played] = await play_many([spec], pool, engine, CODEC, limits=LIMITS)
        pool.close()
        return played, await play_forks([Fork.of(spec, played, 3)] * 2, pool, engine, CODEC, limits=LIMITS)

    played, forked = asyncio.run(run())
    assert played.trajectory.usable
    for episode in forked:
        assert not episode.trajectory.usable and len(episode.trajectory.turns) == turns
        assert episode.trajectory.stop_reason == "env_error" and episode.trajectory.error


def test_a_fork_needs_a_turn_of_the_episode_and_its_tokens() -> None:
    engine = TextEngine(CODEC, ["up"])
    played, _ = fork_every_turn(CountEnv, engine, task="count/9")
    for turn in (0, 6):
        with pytest.raises(UsageError, match="from 1 to 5, got"):
            Fork.of(EpisodeSpec("count/9", 3), played, turn)
    changed = replace(played, prompt_ids=played.prompt_ids[1:])
    with pytest.raises(EngineError, match="other tokens than the played episode"):
        asyncio.run(
            play_forks([Fork.of(EpisodeSpec("count/9", 3), changed, 2)], CountEnv, engine, CODEC, limits=LIMITS)
        )
    tried = replace(played, trajectory=replace(played.trajectory, meta={"attempts": [{}]}))
    with pytest.raises(UsageError, match="several attempts"):
        Fork.of(EpisodeSpec("count/9", 3), tried, 2)


def test_the_return_from_a_turn_is_discounted() -> None:
    played, _ = fork_every_turn(CountEnv, TextEngine(CODEC, ["up"]), task="count/9")
    assert return_from(played.trajectory, 4) == pytest.approx(2 / 9)
    assert return_from(played.trajectory, 3, 0.5) == pytest.approx((1 + 0.5 + 0.25) / 9)
