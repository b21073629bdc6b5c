"""Agents: the messages that each sends, the ends of its episodes, and its records."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import gymnasium as gym
import httpx
import pytest

import agentgym_envs  # noqa: F401  (registers the ids)
from agentgym_envs.core import text_env
from agentgym_envs.errors import EngineError, UsageError
from agentgym_envs.rollout import (
    AGENTS,
    Agent,
    AgentEpisode,
    BatchEngine,
    ChatCodec,
    ChatModel,
    EpisodeSpec,
    Generation,
    Limits,
    Sampling,
    ScriptedEngine,
    TokenModel,
    TokenTrajectory,
    make_agent,
    parse_context,
    play_agent,
    play_many_agents,
)
from agentgym_envs.rollout.agents import Dialogue, ModelReply
from agentgym_envs.rollout.agents.context import SUMMARISE, visible_messages
from agentgym_envs.rollout.agents.conversation import Conversation
from agentgym_envs.trajectory import Message, Trajectory
from tests.rollout.families import FAMILIES
from tests.toy import CountEnv

CODEC = ChatCodec(FAMILIES["qwen2.5"].tokenizer())
LIMITS = Limits(max_turns=20, max_tokens=100_000)
GO = "Thought: I count.\nAction: up"
BAD = "Thought: I do not know.\nAction: down"
QUIT = "Thought: I stop.\nAction: give up"


class Script:
    """A model behind a chat server with given answers, which records its requests."""

    def __init__(self, answers: Sequence[str], usage: bool = True, rate: float = 0) -> None:
        """With `rate`, the server counts that many tokens per character of a prompt; otherwise always 7."""
        self._answers, self._usage, self._rate = iter(answers), usage, rate
        self.sent: list[list[Message]] = []
        self.caps: list[int] = []
        self.model = ChatModel("m", "http://127.0.0.1:9/v1", transport=httpx.MockTransport(self._handle))

    def _handle(self, request: httpx.Request) -> httpx.Response:
        body = json.loads(request.content)
        self.sent.append(body["messages"])
        self.caps.append(body["max_tokens"])
        text = next(self._answers)
        read = int(self._rate * sum(len(message["content"]) for message in body["messages"])) or 7
        usage = {"usage": {"prompt_tokens": read, "completion_tokens": len(text)}} if self._usage else {}
        return httpx.Response(200, json={"choices": [{"message": {"content": text}, "finish_reason": "stop"}], **usage})

    @property
    def prompts(self) -> list[str]:
        """The last message of each request."""
        return [messages[-1]["content"] for messages in self.sent]


def play(
    agent: Agent, script: Script, task: str = "count/2", limits: Limits = LIMITS, env: gym.Env[str, str] | None = None
) -> AgentEpisode:
    env = env or CountEnv(grammar=agent.grammar)
    return asyncio.run(play_agent(env, agent, script.model, EpisodeSpec(task), limits=limits))


def system(messages: Sequence[Message]) -> str:
    assert messages[0]["role"] == "system"
    return messages[0]["content"]


def alternates(messages: Sequence[Message]) -> bool:
    roles = [message["role"] for message in messages[1:]]
    return roles == [("user", "assistant")[number % 2] for number in range(len(roles))] and roles[-1] == "user"


def described(episode: AgentEpisode) -> dict[str, Any]:
    meta: dict[str, Any] = dict(episode.trajectory.meta["agent"])
    return meta


def test_act_and_react_send_the_exact_conversation() -> None:
    for name, answer in (("act", "up"), ("react", GO)):
        script = Script([answer] * 2)
        played = play(make_agent(name), script).trajectory
        assert (played.success, played.actions) == (True, [answer] * 2)
        assert script.sent[-1] == played.messages()[:-1] and len(script.sent) == 2
        assert played.instructions == text_env(CountEnv(grammar=make_agent(name).grammar)).instructions


def test_an_agent_without_thoughts_overrides_a_grammar_with_thoughts() -> None:
    script = Script(["<action>up</action>"] * 2)
    env = CountEnv(grammar="tag")
    assert play(make_agent("act"), script, env=env).trajectory.success
    assert system(script.sent[0]).startswith(env.instructions) and "no" not in system(script.sent[0])[:10]
    assert system(script.sent[0]).endswith("Do not write down any reasoning: write the action alone, in that form.")
    script = Script(["I count. <action>up</action>"] * 2)
    played = play(make_agent("react"), script, env=env).trajectory
    assert system(script.sent[0]).endswith("begin your answer with a thought.") and played.success
    assert played.instructions == system(script.sent[0])  # so that training on the record uses the same prompt


@pytest.mark.parametrize("name", ["react", "plan", "reflect"])
def test_a_thinking_agent_refuses_a_grammar_without_thoughts(name: str) -> None:
    with pytest.raises(UsageError, match=f"{name}.*thinks.*grammar='react'"):
        play(make_agent(name), Script([]), env=CountEnv(grammar="bare"))


@pytest.mark.parametrize(
    "ask",
    [
        lambda: make_agent("genius"),
        lambda: make_agent("react", "last"),
        lambda: make_agent("react", "last:0"),
        lambda: make_agent("react", "last:-1"),
        lambda: make_agent("react", "full:3"),
        lambda: make_agent("react", "summarise:x"),
        lambda: make_agent("reflect", attempts=0),
    ],
)
def test_unknown_agents_and_contexts_are_refused(ask: Any) -> None:
    with pytest.raises(UsageError, match=r"choose|at least one attempt"):
        ask()


def test_context_policies_are_parsed_back() -> None:
    for text in ("full", "last:3", "summarise:12"):
        assert str(parse_context(text)) == text
    assert parse_context(" Summarize:2 ") == parse_context("summarise:2")
    assert [make_agent(name).name for name in AGENTS] == list(AGENTS)


def test_only_the_last_turns_are_shown_with_a_line_about_the_others() -> None:
    script = Script([GO] * 9)
    assert play(make_agent("react", "last:2"), script, "count/9").trajectory.success
    first = script.sent[0][1]["content"]
    assert [len(messages) for messages in script.sent] == [2, 4, 6, *[6] * 6]
    assert all(alternates(messages) for messages in script.sent)
    assert script.sent[2][1]["content"] == first
    assert script.sent[3][1]["content"] == f"{first}\n\n(Turn 1 of this episode is not shown. Then you saw:)\n\n1"
    assert script.sent[8][1]["content"].endswith("(Turns 1 to 6 of this episode are not shown. Then you saw:)\n\n6")
    assert script.prompts[1:] == ["1", "2", "3", "4", "5", "6", "7", "8"]


def test_a_summary_replaces_older_turns() -> None:
    script = Script([*[GO] * 4, "I counted to 4.", GO, GO, "I counted to 6.", GO, GO, "I am at 8.", GO])
    episode = play(make_agent("react", "summarise:2"), script, "count/9")
    assert episode.trajectory.success and len(episode.trajectory.turns) == 9
    first = script.sent[0][1]["content"]
    assert script.sent[4][:-1] == [
        *script.sent[3],
        {"role": "assistant", "content": GO},
    ]  # the conversation continues
    assert script.prompts[4].startswith("4\n\nBefore you go on, write a summary")
    left = "(Turns 1 to 2 of this episode are not shown. Then you saw:)"
    assert script.sent[5][1]["content"] == f"{first}\n\nYour summary of turns 1 to 4:\nI counted to 4.\n\n{left}\n\n2"
    assert [len(messages) for messages in script.sent] == [2, 4, 6, 8, 10, 6, 8, 10, 6, 8, 10, 6]
    assert "I counted to 4." not in script.sent[8][1]["content"] and "I counted to 6." in script.sent[8][1]["content"]
    assert described(episode)["summaries"] == 3 and described(episode)["calls"] == 12
    assert all(alternates(messages) for messages in script.sent)


def test_an_empty_summary_keeps_the_last_one() -> None:
    script = Script([GO, GO, "I am at 2.", GO, " \n", GO])
    episode = play(make_agent("react", "summarise:1"), script, "count/4")
    assert described(episode)["summaries"] == 1 and episode.trajectory.success
    assert "Your summary of turns 1 to 2:\nI am at 2.\n\n(Turns 1 to 2 of" in script.sent[5][1]["content"]


class Narrow(Dialogue):
    """A model with a context of `size` characters and a fixed answer."""

    def __init__(self, size: int, says: str = "") -> None:
        super().__init__(Limits(max_tokens=20))
        self.size, self.says = size, says

    def room(self, messages: Sequence[Message]) -> int:
        return self.size - sum(len(message["content"]) for message in messages)

    async def ask(self, messages: list[Message], cap: int) -> ModelReply:
        return ModelReply(self.says[:cap], "stop", None, None)

    def add_reward(self, reward: float) -> None:
        raise AssertionError

    def segments(self, trajectory: Trajectory) -> list[TokenTrajectory]:
        raise AssertionError


@pytest.mark.parametrize(
    ("size", "kept"),
    [
        (400, ["[first]", "[plan]", "[summary]", "2"]),
        (127, ["[first]", "[plan]", "[summary]"]),
        (100, ["[first]", "[plan]"]),
        (75, ["[first]"]),
    ],
)
def test_turns_are_dropped_before_the_summary_and_the_plan(size: int, kept: list[str]) -> None:
    turns = Conversation("", ["[first]", "1", "2", "3"], ["Well." * 9] * 3, plan="[plan]", summary="[summary]")
    turns.summarised_until = turns.first = 1
    messages = asyncio.run(visible_messages(parse_context("last:3"), turns, Narrow(size)))
    text = "\n".join(message["content"] for message in messages)
    assert [part for part in ("[first]", "[plan]", "[summary]", "2") if f"{part}\n" in text] == kept
    assert messages[-1]["content"].endswith("3")


class Generous(Narrow):
    """A model with more room after its first answer."""

    async def ask(self, messages: list[Message], cap: int) -> ModelReply:
        self.size *= 9
        return await super().ask(messages, cap)


def test_a_summary_is_shown_even_if_all_turns_fit() -> None:
    turns = Conversation("", ["[first]", "1", "2", "3"], ["Well."] * 3)
    size = sum(len(message["content"]) for message in turns.messages(ask=SUMMARISE)) + 5
    messages = asyncio.run(visible_messages(parse_context("summarise:9"), turns, Generous(size, "Three.")))
    assert "Your summary of turns 1 to 3:\nThree" in messages[0]["content"] and turns.first == 1


def test_without_room_for_the_request_no_turns_are_dropped_for_a_summary() -> None:
    turns = Conversation("", ["[first]", "1", "2", "3"], ["Well."] * 3)
    messages = asyncio.run(visible_messages(parse_context("summarise:9"), turns, Narrow(100, "Three.")))
    assert len(messages) == 7 and turns.asked_at == 0


def test_a_summary_is_written_before_the_room_runs_out() -> None:
    long = f"Thought: {'I count. ' * 10}\nAction: up"
    script = Script([*[long] * 8, "I am at 8.", long], usage=False)
    limits = Limits(max_turns=20, max_tokens=400, max_turn_tokens=60)
    # A turn has about 28 tokens and the request for a summary 80; an answer and a summary may have 60 each.
    episode = play(make_agent("react", "summarise:6"), script, "count/9", limits)
    assert [number for number, text in enumerate(script.prompts) if "write a summary" in text] == [8]
    assert len(script.sent[8]) == 2 + 2 * 8  # all turns are still visible for the summary
    assert "Your summary of turns 1 to 8:\nI am at 8." in script.sent[9][1]["content"] and episode.trajectory.success


@pytest.mark.parametrize("context", ["last:2", "summarise:2"])
def test_answers_that_may_use_the_whole_budget_do_not_empty_the_context(context: str) -> None:
    script = Script([GO] * 3, usage=False)
    limits = Limits(max_turns=3, max_tokens=400, max_turn_tokens=400)
    play(make_agent("react", context), script, "count/9", limits)
    assert [len(messages) for messages in script.sent] == [2, 4, 6]


def test_the_plan_stays_visible() -> None:
    script = Script(["1. Count up.", GO, f"Plan:\n1. Count on.\n2. Stop.\n{GO}", GO, GO, GO])
    episode = play(make_agent("plan", "last:1"), script, "count/4")
    first = CountEnv(grammar="react").reset(seed=0, options={"task": "count/4"})[0]
    assert script.prompts[0].startswith(f"{first}\n\nBefore you act, write a short numbered plan")
    assert script.sent[1] == [
        *script.sent[0],
        {"role": "assistant", "content": "1. Count up."},
        {"role": "user", "content": "Now carry it out, one action at a time."},
    ]
    assert "'Plan:'" in system(script.sent[0])
    assert script.sent[3][1]["content"].startswith(f"{first}\n\n(Turn 1")  # the turn with the plan is visible
    assert "\n\nYour plan:\n1. Count on.\n2. Stop.\n\n(Turns 1 to 2" in script.sent[4][1]["content"]
    assert described(episode)["plan"] == "1. Count on.\n2. Stop." and episode.trajectory.success
    assert episode.trajectory.turns[0].observation == first
    assert len(episode.trajectory.turns) == 4 and described(episode)["calls"] == 5


def test_a_plan_leaves_room_to_act() -> None:
    script = Script(["1. Count.", GO, GO], usage=False)
    play(make_agent("plan"), script, limits=Limits(max_tokens=100, max_turn_tokens=80))
    assert script.caps[0] == 50 and script.caps[1] > 50
    script = Script(["1. Count. " * 50, GO, GO], usage=False)  # from a server that ignores the limit
    episode = play(make_agent("plan"), script, limits=Limits(max_tokens=100, max_turn_tokens=80))
    assert len(script.sent[1]) == 2 and described(episode)["plan"] == "" and episode.trajectory.success


def test_a_failed_task_is_attempted_again_with_lessons() -> None:
    script = Script([BAD, QUIT, "Say up.", QUIT, " Never give up.\n", GO, GO])
    episode = play(make_agent("reflect"), script)
    assert episode.trajectory.success and episode.trajectory.actions == [GO, GO]
    assert [one.lesson for one in episode.failed_attempts] == ["Say up.", "Never give up."]
    assert "A pity.\n\nThis try is over: it ended short of the goal. Its score was 0.00 of 1." in script.prompts[2]
    assert "tried this task before" not in system(script.sent[0])
    assert system(script.sent[3]).endswith("What you noted down then:\n1. Say up.")
    assert system(script.sent[5]).endswith("\n1. Say up.\n2. Never give up.")
    assert len({messages[1]["content"] for messages in (script.sent[0], script.sent[3], script.sent[5])}) == 1
    first, second = Trajectory.from_json(episode.trajectory.to_json()).meta["attempts"]
    assert [turn["action"] for turn in first["turns"]] == [BAD, QUIT]
    assert (second["lesson"], second["success"], second["stop_reason"]) == ("Never give up.", False, "failure")
    meta = described(episode)
    assert (meta["attempts"], meta["calls"], meta["prompt_tokens"]) == (3, 7, 49)
    assert meta["answer_tokens"] == sum(map(len, (BAD, QUIT, "Say up.", QUIT, " Never give up.\n", GO, GO)))


def test_attempts_are_bounded_and_the_last_needs_no_lesson() -> None:
    script = Script([QUIT, "One.", QUIT])
    episode = play(make_agent("reflect", attempts=2), script)
    assert (episode.trajectory.stop_reason, len(episode.failed_attempts), len(script.sent)) == ("failure", 1, 3)
    script = Script([QUIT, ""])
    episode = play(make_agent("reflect"), script)  # without a lesson, no further attempt follows
    assert (len(episode.failed_attempts), len(script.sent)) == (0, 2) and "attempts" not in episode.trajectory.meta


def test_a_lesson_is_requested_also_after_a_token_limit() -> None:
    lost = f"Thought: {'I am lost. ' * 9}\nAction: down"
    script = Script([*[lost] * 9, "Say up.", GO, GO], usage=False)
    episode = play(make_agent("reflect"), script, limits=Limits(max_tokens=300, max_turn_tokens=60))
    (failed,) = episode.failed_attempts
    assert (failed.trajectory.stop_reason, len(failed.trajectory.turns), failed.lesson) == ("token_limit", 9, "Say up.")
    assert "there was no room for further answers" in script.prompts[9]
    assert "are not shown" in script.sent[9][1]["content"] and 4 < len(script.sent[9]) < len(script.sent[8])
    assert episode.trajectory.success


def test_summaries_and_lessons_are_short() -> None:
    script = Script([BAD, BAD, "I said down.", QUIT, "Say up.", GO, GO])
    agent = replace(make_agent("reflect"), context=parse_context("summarise:1"))
    assert play(agent, script).trajectory.success
    assert script.caps == [512, 512, 256, 512, 256, 512, 512]
    script = Script([QUIT, "Say up.", GO, GO], usage=False)
    play(make_agent("reflect"), script, limits=Limits(max_tokens=400, max_turn_tokens=400))
    assert script.caps[1] == 256
    script = Script([GO, GO, "I am at 2.", GO], usage=False)
    play(make_agent("react", "summarise:1"), script, "count/3", Limits(max_tokens=400, max_turn_tokens=400))
    assert "write a summary" in script.prompts[2] and script.caps[2] == 100  # a quarter of the budget


def test_a_lesson_follows_a_turn_limit_and_a_success_ends_attempts() -> None:
    limits = Limits(max_turns=2, max_tokens=100_000)
    script = Script([BAD, BAD, "Say up.", GO, "Thought: t\nAction: cheat"])
    episode = play(make_agent("reflect"), script, limits=limits)
    assert "the limit of turns was reached" in script.prompts[2]
    assert "Unknown command: down" in script.prompts[2]  # the final observation, which is in no turn
    assert episode.trajectory.success and len(episode.failed_attempts) == 1


def test_no_attempt_follows_an_env_error() -> None:
    script = Script(["Thought: t\nAction: crash"])
    episode = play(make_agent("reflect"), script)
    assert (episode.trajectory.stop_reason, episode.failed_attempts, len(script.sent)) == ("env_error", (), 1)
    script = Script([QUIT, "Crash.", "Thought: t\nAction: crash"])
    episode = play(make_agent("reflect"), script)
    assert (
        episode.trajectory.stop_reason == "env_error"
        and not episode.trajectory.usable
        and len(episode.failed_attempts) == 1
    )
    for name in AGENTS:  # after a failing reset, the model gets no request
        episode = play(make_agent(name), Script([]), "count/0")
        assert episode.trajectory.stop_reason == "env_error" and episode.segments == ()
        assert described(episode)["calls"] == 0


@pytest.mark.slow_after(20)
@pytest.mark.parametrize("name", AGENTS)
@pytest.mark.parametrize("context", ["full", "last:1", "summarise:1"])
@pytest.mark.parametrize("answer", ["", "   ", "nonsense", "Action:", "Plan: ", "\ud800", "<|im_end|>" * 3])
def test_agents_survive_any_text_of_a_model(name: str, context: str, answer: str) -> None:
    answer = answer if answer.isprintable() or answer.isspace() else "\x00\u202e"
    script = Script([answer] * 100)
    episode = play(make_agent(name, context), script, limits=Limits(max_turns=4, max_tokens=100_000))
    assert episode.trajectory.stop_reason == "turn_limit" and episode.trajectory.score == 0
    assert len(episode.trajectory.turns) == 4
    assert all(alternates(messages) for messages in script.sent)


def test_tokens_are_estimated_for_a_server_that_does_not_count() -> None:
    script = Script([GO] * 9, usage=False)
    limits = Limits(max_turns=20, max_tokens=40, max_turn_tokens=10)
    episode = play(make_agent("react"), script, "count/9", limits)
    # An answer of 28 characters and an observation of one are 7.25 tokens, at four characters per token.
    assert episode.trajectory.stop_reason == "token_limit" and len(episode.trajectory.turns) == 6
    assert script.caps == [10, 10, 10, 10, 10, 3]
    assert (described(episode)["prompt_tokens"], described(episode)["answer_tokens"]) == (None, None)
    script = Script([GO] * 9, usage=False)
    assert play(make_agent("react", "last:8"), script, "count/9", limits).trajectory.success


def test_the_token_rate_is_taken_from_a_server_that_counts() -> None:
    script = Script([GO] * 9, rate=1.0)
    limits = Limits(max_turns=20, max_tokens=100, max_turn_tokens=90)
    assert play(make_agent("react"), script, "count/9", limits).trajectory.stop_reason == "token_limit"
    assert script.caps == [90, 100 - 29, 100 - 2 * 29, 100 - 3 * 29]  # an answer and an observation have 29 characters


def test_a_failing_server_is_raised() -> None:
    model = ChatModel("m", "http://127.0.0.1:9/v1", transport=httpx.MockTransport(lambda _: httpx.Response(400)))
    with pytest.raises(EngineError, match="HTTP 400"):
        asyncio.run(
            play_agent(CountEnv(grammar="react"), make_agent("reflect"), model, EpisodeSpec("count/2"), limits=LIMITS)
        )
    asyncio.run(model.aclose())


class Counting(BatchEngine):
    """Answers with the tokens of `GO`, and records the sizes of the batches."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes: list[int] = []

    def generate_batch(self, prompts: Sequence[Sequence[int]], samplings: Sequence[Sampling]) -> list[Generation]:
        self.sizes.append(len(prompts))
        return [Generation(CODEC.encode_answer(GO), "stop") for _ in prompts]


def test_many_episodes_share_a_batch_engine() -> None:
    engine, done = Counting(), list[AgentEpisode]()
    specs = [EpisodeSpec(task, seed) for seed, task in enumerate(["count/2", "count/3", "count/2", "count/9"] * 3)]
    episodes = asyncio.run(
        play_many_agents(
            specs,
            lambda: CountEnv(grammar="react"),
            make_agent("react", "last:2"),
            TokenModel(engine, CODEC),
            limits=LIMITS,
            concurrency=4,
            on_done=done.append,
        )
    )
    assert [episode.trajectory.task.id for episode in episodes] == [spec.task for spec in specs]
    assert all(episode.trajectory.success for episode in episodes)
    assert len(done) == 12 and max(engine.sizes) == 4 and sum(engine.sizes) == 3 * (2 + 3 + 2 + 9)


def test_cancellation_propagates_and_frees_all_workers() -> None:
    class Hanging:
        async def generate(self, prompt_ids: Sequence[int], sampling: Sampling) -> Generation:
            await asyncio.sleep(3600)
            raise AssertionError

    async def cancel() -> None:
        made: list[CountEnv] = []

        def make() -> CountEnv:
            made.append(CountEnv(grammar="react"))
            return made[-1]

        specs = [EpisodeSpec("count/2", seed) for seed in range(4)]
        model = TokenModel(Hanging(), CODEC)
        task = asyncio.ensure_future(play_many_agents(specs, make, make_agent("plan"), model, limits=LIMITS))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert len(made) == 4 and all(env.closed for env in made)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(cancel())


@pytest.mark.parametrize(
    "env_id", ["AgentGym/TextCraft-v0", pytest.param("AgentGym/BabyAI-v0", marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("name", AGENTS)
@pytest.mark.parametrize("context", ["full", "last:2", "summarise:2"])
def test_the_oracle_solves_tasks_with_every_agent(env_id: str, name: str, context: str) -> None:
    agent = make_agent(name, context)
    env = gym.make(env_id, grammar=agent.grammar)
    env.reset(seed=3)
    grammar = text_env(env).grammar
    plan = [grammar.format(command, "I follow the oracle.") for command in text_env(env).oracle()]
    answers = iter(plan)

    class Oracle:
        async def generate(self, prompt_ids: Sequence[int], sampling: Sampling) -> Generation:
            requests = CODEC.decode(prompt_ids).rpartition("user\n")[2]
            other = "numbered plan" in requests or "write a summary" in requests
            return Generation(CODEC.encode_answer("1. A note." if other else next(answers)), "stop")

    model = TokenModel(Oracle(), CODEC)
    episode = asyncio.run(play_agent(env, agent, model, EpisodeSpec(seed=3), limits=Limits(100, 100_000)))
    assert episode.trajectory.success and episode.trajectory.actions == plan
    assert len(episode.segments) == 1 if context == "full" else len(plan) < 4 or len(episode.segments) > 1
    env.close()


def test_a_scripted_engine_needs_no_server() -> None:
    engine = ScriptedEngine([CODEC.encode_answer(text) for text in ("up", "up")], CODEC.stop_ids)
    env = CountEnv(grammar="bare")
    episode = asyncio.run(
        play_agent(env, make_agent("act"), TokenModel(engine, CODEC), EpisodeSpec("count/2"), limits=LIMITS)
    )
    assert [turn.info["tokens"] for turn in episode.trajectory.turns] == [2, 2]
    assert [turn.info["finish"] for turn in episode.trajectory.turns] == ["stop", "stop"]
    assert described(episode)["answer_tokens"] == 4
    assert described(episode)["prompt_tokens"] == sum(map(len, engine.prompts))
