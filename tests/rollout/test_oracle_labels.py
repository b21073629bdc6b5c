"""Labels of visited states: the oracle's answer in each state, and the mixture of the policy and the oracle."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import pytest
from gymnasium.envs.registration import EnvSpec

import agentgym_envs  # noqa: F401  (registers the ids)
from agentgym_envs.core import Solution, TextEnv, Transition, text_env
from agentgym_envs.errors import EnvError
from agentgym_envs.rollout import (
    ChatCodec,
    EpisodeSpec,
    Limits,
    OracleClock,
    OracleLabel,
    ScriptedEngine,
    TokenTrajectory,
    play_labelled,
    play_many,
)
from tests.rollout.families import FAMILIES, trl_template
from tests.rollout.forking import TextEngine
from tests.toy import CountEnv

CODEC = ChatCodec(FAMILIES["qwen2.5"].tokenizer())
QWEN3 = ChatCodec(FAMILIES["qwen3-training"].tokenizer(), template=trl_template("qwen3"), forks=True)
LIMITS = Limits(max_turns=5, max_tokens=4000, max_turn_tokens=60)
SPECS = [EpisodeSpec("count/9", 3, {"sample": sample}) for sample in range(20)]


class DoorEnv(CountEnv):
    """`burn` puts the goal out of reach, and in `fog` the oracle finds no way; `asked` counts its calls."""

    asked = 0

    def _act(self, command: str) -> Transition:
        if command in ("burn", "fog"):
            self.mood = command
            return Transition(command)
        return super()._act(command)

    def _begin(self, task: Any, rng: Any) -> str:
        self.mood = ""
        return super()._begin(task, rng)

    def _state(self) -> str:
        return f"{super()._state()} {self.mood}"

    def _solution(self) -> Solution:
        type(self).asked += 1
        return Solution(None, self.mood == "burn") if self.mood else Solution(tuple(self._plan()), True)


@pytest.fixture(autouse=True)
def count_from_zero() -> None:
    DoorEnv.asked = 0


def play(answers: Sequence[str], make: Any = DoorEnv, codec: ChatCodec = CODEC, **options: Any) -> TokenTrajectory:
    engine = ScriptedEngine(map(codec.encode_answer, answers), codec.stop_ids)
    [played] = asyncio.run(play_labelled(SPECS[:1], make, engine, codec, **{"limits": LIMITS, **options}))
    return played


def labels(played: TokenTrajectory) -> list[OracleLabel | None]:
    return [OracleLabel.of(turn) for turn in played.trajectory.turns]


def test_each_label_is_the_oracles_answer_before_the_turn() -> None:
    played = play(["up", "dance", "up", "burn", "up"])
    assert played.trajectory.actions == ["up", "dance", "up", "burn", "up"]
    assert labels(played) == [
        OracleLabel("up", 9, True, agrees=True),
        OracleLabel("up", 8, True),  # the answer is invalid
        OracleLabel("up", 8, True, agrees=True),
        OracleLabel("up", 7, True),
        OracleLabel(None, None, True),  # out of reach
    ]
    assert [label.out_of_reach for label in labels(played) if label] == [False] * 4 + [True]


def test_a_state_without_a_known_way_has_an_empty_label() -> None:
    *_, last = labels(play(["up", "up", "up", "fog", "up"]))
    assert last == OracleLabel(None, None, False) and not last.out_of_reach


def test_the_oracle_is_asked_only_in_states_that_surprise() -> None:
    """Not after an answer that changed nothing, and not along its own way."""
    play(["up", "dance", "up", "burn", "dance"])
    assert DoorEnv.asked == 2  # at the beginning, and after `burn`


def test_labels_change_nothing_else() -> None:
    def record(make: Any) -> list[TokenTrajectory]:
        engine = TextEngine(CODEC, ["up", "dance", "give up"])
        return asyncio.run(make(SPECS, CountEnv, engine, CODEC, limits=LIMITS))

    def bare(played: TokenTrajectory) -> Any:
        infos = [{k: v for k, v in turn.info.items() if k != "oracle"} for turn in played.trajectory.turns]
        fields = played.prompt_ids, played.ids, played.assistant_mask
        return infos, fields, played.turn_spans, played.logprobs, played.rewards, played.trajectory.final_observation

    assert [bare(one) for one in record(play_labelled)] == [bare(one) for one in record(play_many)]


def test_the_grammar_of_the_environment_writes_the_label() -> None:
    played = play(["Thought: so\nAction: up", "up"], lambda: DoorEnv(grammar="react"), limits=Limits(max_turns=2))
    assert labels(played) == [
        OracleLabel("Thought: \nAction: up", 9, True, agrees=True),  # another text, but the same command
        OracleLabel("Thought: \nAction: up", 8, True),
    ]


def test_the_oracles_turns_need_no_model() -> None:
    played = play([], oracle_share=1.0, limits=Limits(max_turns=9))
    assert played.trajectory.success and [label and label.played for label in labels(played)] == [True] * 9
    assert played.ids[slice(*played.turn_spans[0])] == CODEC.encode_answer("up")


def test_the_share_of_the_oracles_turns_is_as_asked() -> None:
    def played_turns(**options: Any) -> list[bool]:
        engine = TextEngine(CODEC, ["dance"])
        specs = [EpisodeSpec("count/9", 3, {"sample": sample}) for sample in range(40)]
        episodes = asyncio.run(play_labelled(specs, CountEnv, engine, CODEC, limits=LIMITS, **options))
        found = [label for episode in episodes for label in labels(episode) if label]
        for label, action in zip(found, (a for e in episodes for a in e.trajectory.actions), strict=True):
            assert action == ("up" if label.played else "dance")
        return [label.played for label in found]

    drawn = played_turns(oracle_share=0.3)
    assert 0.2 < sum(drawn) / len(drawn) < 0.4  # 200 draws
    assert drawn == played_turns(oracle_share=0.3) != played_turns(oracle_share=0.3, seed=1)


def test_the_policy_plays_where_the_oracle_has_no_answer_or_no_room() -> None:
    played = play(["burn", "up", "up", "up", "up"])
    assert [label and label.played for label in labels(played)] == [False] * 5
    tight = play(["a"] * 5, oracle_share=1.0, limits=Limits(max_turns=2, max_turn_tokens=1))
    assert [label and label.played for label in labels(tight)] == [False] * 2


def test_states_after_the_oracles_seconds_have_no_label() -> None:
    clock = OracleClock(limit=1e-9)
    played = play(["burn", "up", "up", "up", "up"], clock=clock)
    assert labels(played)[0] == OracleLabel("up", 9, True) and labels(played)[1:] == [None] * 4
    assert DoorEnv.asked == 1 and clock.spent > 0


def test_slow_oracles_get_the_seconds_that_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    class SlowEnv(DoorEnv):
        slow_oracle = True

    makers = {"Slow-v0": SlowEnv, "Door-v0": DoorEnv}
    for name, kind in makers.items():
        monkeypatch.setitem(gym.registry, name, EnvSpec(name, kind))
    asked = list[str]()

    class Clock(OracleClock):
        def ask(self, env: TextEnv) -> Solution | None:
            asked.append(type(env).__name__)
            return super().ask(env)

    def played(limit: float | None) -> list[str]:
        asked.clear()
        specs = [EpisodeSpec("count/9", n, env=("Slow-v0", "Door-v0")[n % 2]) for n in range(6)]
        engine = TextEngine(CODEC, ["up"])
        options: dict[str, Any] = {"limits": LIMITS, "clock": Clock(limit)}
        episodes = asyncio.run(play_labelled(specs, makers, engine, CODEC, **options))
        assert [episode.trajectory.seed for episode in episodes] == list(range(6))
        return list(asked)

    assert played(None) == ["SlowEnv", "DoorEnv"] * 3
    assert played(60) == ["DoorEnv"] * 3 + ["SlowEnv"] * 3


def test_a_failing_oracle_ends_the_episode_as_env_error() -> None:
    class Broken(DoorEnv):
        def _solution(self) -> Solution:
            if self.mood:
                raise EnvError("the oracle's machine broke")
            return super()._solution()

    played = play(["up", "burn"], Broken)
    assert not played.trajectory.usable and "machine broke" in str(played.trajectory.error)


def test_an_environment_without_an_oracle_has_empty_labels() -> None:
    class NoOracleEnv(CountEnv):
        _plan = TextEnv._plan

    assert labels(play(["up"] * 5, NoOracleEnv)) == [OracleLabel(None, None, False)] * 5


def test_templates_that_rewrite_messages_are_labelled_in_every_context() -> None:
    played = play(["<think>\nso\n</think>\n\nup"] * 5, codec=QWEN3)
    assert played.context_starts
    assert [label and label.turns_to_go for label in labels(played)] == [9] * 5  # a thought is no command here


@pytest.mark.parametrize("env_id", ["AgentGym/TextCraft-v0", "AgentGym/BabyAI-v0", "AgentGym/Search-v0"])
def test_the_oracle_solves_every_scenario_through_the_codec(env_id: str) -> None:
    engine = ScriptedEngine([], CODEC.stop_ids)
    specs = [EpisodeSpec(seed=seed) for seed in range(2)]
    limits = Limits(max_turns=200, max_tokens=100_000)
    episodes = asyncio.run(
        play_labelled(specs, lambda: gym.make(env_id), engine, CODEC, limits=limits, oracle_share=1.0)
    )
    for episode in episodes:
        assert episode.trajectory.success
        togo = [label.turns_to_go for label in labels(episode) if label]
        assert togo == list(range(len(togo), 0, -1))


def test_the_labels_of_a_wandering_policy_lead_to_the_goal() -> None:
    """From every visited state of TextCraft, the label and what the oracle says then reach the goal."""
    engine = TextEngine(CODEC, ["get 1 oak log", "craft 4 oak planks using 1 oak log", "fly"])
    [played] = asyncio.run(
        play_labelled([EpisodeSpec(seed=4)], lambda: gym.make("AgentGym/TextCraft-v0"), engine, CODEC, limits=LIMITS)
    )
    env = text_env(gym.make("AgentGym/TextCraft-v0"))
    for turn, label in enumerate(labels(played)):
        env.reset(seed=4)
        for action in played.trajectory.actions[:turn]:
            env.step(action)
        assert label is not None and label.answer is not None
        found = env.solution().commands
        assert found is not None and label.turns_to_go == len(found)
        env.step(label.answer)
        rest = env.solution().commands
        assert rest is not None and len(rest) == len(found) - 1
