"""The training tokens of an agent's episode: each sampled token once, within the budget, and equal to `play`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import gymnasium as gym
import pytest
from hypothesis import given
from hypothesis import strategies as st

import agentgym_envs  # noqa: F401  (registers the ids)
from agentgym_envs.errors import EngineError
from agentgym_envs.rollout import (
    AGENTS,
    AgentEpisode,
    ChatCodec,
    EpisodeSpec,
    Generation,
    Limits,
    Sampling,
    TokenModel,
    TokenTrajectory,
    make_agent,
    play,
    play_agent,
)
from agentgym_envs.rollout.agents.context import SUMMARISE
from agentgym_envs.trajectory import Trajectory
from tests.rollout.families import FAMILIES, spans
from tests.toy import CountEnv

CODECS = {name: ChatCodec(family.tokenizer()) for name, family in FAMILIES.items()}
CONTEXTS = ("full", "last:1", "last:3", "summarise:1", "summarise:2")
COMMANDS = ("up", "down", "give up", "cheat", "crash")


class Writer:
    """An engine with given texts, truncated at the limit, which records its prompts and answers."""

    def __init__(self, codec: ChatCodec, texts: Sequence[str]) -> None:
        self._codec, self._texts = codec, texts
        self.calls: list[tuple[list[int], list[int]]] = []

    async def generate(self, prompt_ids: Sequence[int], sampling: Sampling) -> Generation:
        text = self._texts[len(self.calls) % len(self._texts)]
        ids = self._codec.encode_answer(text)[: sampling.max_tokens]
        self.calls.append((list(prompt_ids), ids))
        truncated = ids[-1] not in sampling.stop_ids
        return Generation(ids, "length" if truncated else "stop", [-len(self.calls) / 8] * len(ids))


answers = st.lists(
    st.builds(
        lambda thought, command: f"Thought: {thought}\nAction: {command}",
        st.text("ab <|>\n", max_size=60),
        st.sampled_from(COMMANDS[:2] * 3 + COMMANDS),
    )
    | st.text(max_size=30),
    min_size=1,
    max_size=8,
)
limits = st.builds(Limits, st.integers(1, 9), st.integers(1, 1200), st.integers(1, 80))


def run(name: str, context: str, writer: Writer, codec: ChatCodec, within: Limits) -> AgentEpisode:
    agent = make_agent(name, context, attempts=2)
    env = CountEnv(grammar=agent.grammar)
    return asyncio.run(play_agent(env, agent, TokenModel(writer, codec), EpisodeSpec("count/9"), limits=within))


def masked(segment: TokenTrajectory) -> list[int]:
    return [token for token, mask in zip(segment.ids, segment.assistant_mask, strict=True) if mask]


@pytest.mark.rotating
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("name", ["act", "react"])
@given(texts=answers, within=limits)
def test_a_full_context_gives_the_tokens_of_play(family: str, name: str, texts: list[str], within: Limits) -> None:
    codec = CODECS[family]
    env = CountEnv(grammar=make_agent(name).grammar)
    one, other = Writer(codec, texts), Writer(codec, texts)
    expected = asyncio.run(play(env, one, codec, EpisodeSpec("count/9"), limits=within))
    episode = run(name, "full", other, codec, within)
    assert other.calls == one.calls
    (segment,) = episode.segments
    assert segment.trajectory is episode.trajectory
    assert replace(segment, trajectory=expected.trajectory) == expected
    assert without_notes(episode.trajectory) == without_notes(expected.trajectory)


def without_notes(trajectory: Trajectory) -> Trajectory:
    """The trajectory without the agent's metadata."""
    return replace(trajectory, meta={name: value for name, value in trajectory.meta.items() if name != "agent"})


@pytest.mark.rotating
@pytest.mark.parametrize("name", AGENTS)
@pytest.mark.parametrize("context", CONTEXTS)
@given(texts=answers, within=limits)
def test_each_sampled_token_is_trained_on_once_and_no_context_is_too_long(
    name: str, context: str, texts: list[str], within: Limits
) -> None:
    codec = CODECS["qwen2.5"]
    writer = Writer(codec, texts)
    episode = run(name, context, writer, codec, within)
    assert [token for segment in episode.segments for token in masked(segment)] == [
        t for _, ids in writer.calls for t in ids
    ]
    read = [segment.prompt_ids + segment.ids[:end] for segment in episode.segments for end in ends(segment)]
    assert read == [
        prompt + ids for prompt, ids in writer.calls
    ]  # the context before it in training is the prompt that the model read
    attempts = [*(one.trajectory for one in episode.failed_attempts), episode.trajectory]
    for trajectory in attempts:
        assert trajectory.turns  # texts before the first action leave room for it
        own = [segment for segment in episode.segments if segment.trajectory is trajectory]
        assert sum(sum(segment.rewards) for segment in own) == pytest.approx(sum(t.reward for t in trajectory.turns))
        assert all(s.bootstrap_ids == [] for s in own[:-1]) and len(trajectory.turns) <= within.max_turns
        for segment in own:
            assert len(segment.prompt_ids) + len(segment.ids) <= len(own[0].prompt_ids) + within.max_tokens
            assert all(len(ids) <= within.max_turn_tokens for mask, ids in spans(segment) if mask)
    check_record(episode, writer)


def ends(segment: TokenTrajectory) -> list[int]:
    """The ends of answers. Two answers are never adjacent."""
    mask = [*segment.assistant_mask, 0]
    found = [number for number in range(1, len(mask)) if mask[number - 1] and not mask[number]]
    assert [end for _, end in segment.turn_spans] == found
    return found


def check_record(episode: AgentEpisode, writer: Writer) -> None:
    described: Any = episode.trajectory.meta["agent"]
    assert (described["calls"], described["prompt_tokens"], described["answer_tokens"]) == (
        len(writer.calls),
        sum(len(prompt) for prompt, _ in writer.calls),
        sum(len(ids) for _, ids in writer.calls),
    )
    assert len(episode.trajectory.meta.get("attempts", ())) == len(episode.failed_attempts) == described["attempts"] - 1
    assert json.loads(episode.trajectory.to_json())["meta"]["agent"] == described


@given(texts=answers, within=limits, context=st.sampled_from(CONTEXTS[1:]))
def test_a_shortened_context_lasts_until_the_turn_limit(texts: list[str], within: Limits, context: str) -> None:
    """With room for the first and the present observation, only the turn limit and the environment end an episode."""
    codec = CODECS["qwen2.5"]
    roomy = replace(within, max_tokens=800 + 2 * within.max_turn_tokens)
    long = [text[:40] for text in texts]
    episode = run("react", context, Writer(codec, long), codec, roomy)
    assert episode.trajectory.stop_reason != "token_limit"


class Summariser:
    """An engine that writes a summary on request and otherwise counts on. It records the prompts."""

    def __init__(self, codec: ChatCodec, summary: str, thought: str = "I count.") -> None:
        self._codec, self._summary, self._answer = codec, summary, f"Thought: {thought}\nAction: up"
        self.read: list[str] = []

    async def generate(self, prompt_ids: Sequence[int], sampling: Sampling) -> Generation:
        self.read.append(self._codec.decode(prompt_ids))
        ids = self._codec.encode_answer(f"{self._summary} " if self.asked[-1] else self._answer)
        return Generation(ids[: sampling.max_tokens], "stop" if len(ids) <= sampling.max_tokens else "length")

    @property
    def asked(self) -> list[bool]:
        """For each call, True if it asked for a summary."""
        return [SUMMARISE in text.rpartition("\nuser\n")[2] for text in self.read]


@given(
    budget=st.integers(600, 2000),
    answer=st.integers(40, 600),
    turns=st.integers(3, 20),
    words=st.integers(0, 60),
)
def test_a_summary_is_shown_and_the_next_turn_asks_for_none(budget: int, answer: int, turns: int, words: int) -> None:
    codec = CODECS["qwen2.5"]
    engine = Summariser(codec, "I counted up. " * words)
    env, within = CountEnv(grammar="react"), Limits(max_turns=20, max_tokens=budget, max_turn_tokens=answer)
    agent = make_agent("react", f"summarise:{turns}")
    episode = asyncio.run(play_agent(env, agent, TokenModel(engine, codec), EpisodeSpec("count/9"), limits=within))
    assert episode.trajectory.success
    asked = [number for number, summary in enumerate(engine.asked) if summary]
    for number in asked:
        assert engine.asked[number + 1 : number + 3] in ([False], [False, False])
        assert ("Your summary of" in engine.read[number + 1]) == (words > 0)
        assert "not shown. Then you saw:)" in engine.read[number + 1]


def test_a_summary_due_to_the_budget_frees_half_of_it() -> None:
    codec = CODECS["qwen2.5"]
    engine = Summariser(codec, "I counted up. " * 9, "I count. " * 20)
    env, within = CountEnv(grammar="react"), Limits(max_turns=30, max_tokens=2000, max_turn_tokens=250)
    agent, model = make_agent("react", "summarise:10"), TokenModel(engine, codec)
    episode = asyncio.run(play_agent(env, agent, model, EpisodeSpec("count/9"), limits=within))
    first = len(codec.encode_prompt(episode.trajectory.messages()[:2]))
    assert engine.asked == [*[False] * 6, True, *[False] * 3] and episode.trajectory.success
    (after,) = episode.segments[1:]  # 2000, less half of it and the question for the next summary, hold some turns
    assert 0 < len(after.prompt_ids) - first < 1000 - 200 and "assistant\nThought: I count." in engine.read[7]


def test_rewards_are_on_actions_and_not_on_plans_lessons_or_summaries() -> None:
    codec, go = CODECS["qwen2.5"], "Action: up"
    first = ["1. Count.", go, go, "I am at 2.", go, "I am at 3.", "Action: give up", "Never give up."]
    second = ["1. Count on.", go, go, "I am at 2 again.", go, "I am at 3 again.", go]
    agent = replace(make_agent("plan", "summarise:1"), attempts=2)
    model = TokenModel(Writer(codec, [*first, *second]), codec)
    limits = Limits(max_turns=4, max_tokens=9000)
    env = CountEnv(grammar="react")
    episode = asyncio.run(play_agent(env, agent, model, EpisodeSpec("count/9"), limits=limits))
    found = [answer for segment in episode.segments for answer in rewarded(segment, codec)]
    assert found == [(text, 0.111 if text == go else 0) for text in [*first, *second]]
    assert [s.trajectory is episode.trajectory for s in episode.segments] == [False] * 3 + [True] * 3


def rewarded(segment: TokenTrajectory, codec: ChatCodec) -> list[tuple[str, float]]:
    """The answers of a segment, each with the reward on its last token."""
    bounds = ends(segment)
    texts = [codec.decode(ids) for mask, ids in spans(segment) if mask]
    assert all(reward == 0 or number + 1 in bounds for number, reward in enumerate(segment.rewards))
    return [(text, round(segment.rewards[end - 1], 3)) for text, end in zip(texts, bounds, strict=True)]


def test_a_truncated_episode_has_bootstrap_ids() -> None:
    codec = CODECS["qwen2.5"]
    within = Limits(max_turns=3, max_tokens=9000)
    texts = ["Action: up"] * 3 + ["Count faster."] + ["Action: up"] * 3
    last = run("reflect", "last:1", Writer(codec, texts), codec, within).segments
    assert [bool(segment.bootstrap_ids) for segment in last] == [False] * (len(last) - 1) + [True]
    assert codec.decode(last[-1].bootstrap_ids) == "\nuser\n3\nassistant\n"


def test_other_messages_begin_a_new_segment() -> None:
    codec = CODECS["qwen2.5"]
    dialogue = TokenModel(Writer(codec, ["up", "down"]), codec).open(Limits())
    asked = [{"role": "user", "content": "Count."}]
    said = [*asked, {"role": "assistant", "content": "up"}, {"role": "user", "content": "1"}]
    other = [{"role": "user", "content": "Count!"}, *said[1:]]

    async def talk() -> None:
        for messages in (asked, said, [*other, *said[1:]], [*said, *said[1:]], asked):
            await dialogue.reply(messages)

    asyncio.run(talk())
    segments = dialogue.segments(run("act", "full", Writer(codec, ["up"]), codec, Limits()).trajectory)
    assert [sum(segment.assistant_mask) for segment in segments] == [2 + 5, 2, 5, 2]
    assert [segment.bootstrap_ids for segment in segments] == [[]] * 4


def test_every_attempt_has_the_task_that_the_seed_draws() -> None:
    codec = CODECS["qwen2.5"]
    env = gym.make("AgentGym/TextCraft-v0", grammar="react")
    model = TokenModel(Writer(codec, ["Action: inventory", "Look less."]), codec)
    spec = EpisodeSpec(seed=7, max_turns=1)
    episode = asyncio.run(play_agent(env, make_agent("reflect"), model, spec, limits=Limits(max_tokens=5000)))
    attempts = [*(one.trajectory for one in episode.failed_attempts), episode.trajectory]
    assert len({(t.task.id, t.seed, t.turns[0].observation, t.meta["state_key"]) for t in attempts}) == 1
    assert [len(t.turns) for t in attempts] == [1, 1, 1] and [one.lesson for one in episode.failed_attempts] == [
        "Look less."
    ] * 2
    env.close()


def test_an_empty_answer_of_an_engine_is_an_error() -> None:
    class Mute:
        async def generate(self, prompt_ids: Sequence[int], sampling: Sampling) -> Generation:
            return Generation([], "stop")

    env = gym.make("AgentGym/TextCraft-v0", grammar="react")
    with pytest.raises(EngineError, match="empty answer"):
        asyncio.run(
            play_agent(env, make_agent("plan"), TokenModel(Mute(), CODECS["qwen2.5"]), EpisodeSpec(), limits=Limits())
        )
    env.close()
