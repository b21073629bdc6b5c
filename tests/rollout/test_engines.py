"""Engines: batches are collected, servers are called, and errors are raised."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import httpx
import pytest

from agentgym_envs import model_requests
from agentgym_envs.errors import EngineError
from agentgym_envs.rollout import (
    BatchEngine,
    ChatCodec,
    ChatPolicy,
    CompletionEngine,
    EpisodeSpec,
    Generation,
    Limits,
    Sampling,
    ScriptedEngine,
    TokenTrajectory,
    play_many,
    play_many_text,
)
from tests.rollout.families import FAMILIES, UP
from tests.toy import CountEnv

CODEC = ChatCodec(FAMILIES["qwen2.5"].tokenizer())
END = CODEC.turn_end_id
ASKED = Sampling(16, stop_ids=(END,))
LIMITS = Limits(max_turns=20)
BASE = "http://127.0.0.1:8000/v1"


def soon(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Run a coroutine with a timeout."""

    async def bounded() -> Any:
        return await asyncio.wait_for(coroutine, 20)

    return asyncio.run(bounded())


def many(engine: Any, tasks: Sequence[str], concurrency: int = 64) -> Coroutine[Any, Any, list[TokenTrajectory]]:
    specs = [EpisodeSpec(task, seed) for seed, task in enumerate(tasks)]
    return play_many(specs, CountEnv, engine, CODEC, limits=LIMITS, concurrency=concurrency)


class UpEngine(BatchEngine):
    """Always answers "up". `trouble`, if given, is called before every batch."""

    def __init__(self, trouble: Callable[[int], None] = lambda number: None) -> None:
        super().__init__()
        self.trouble, self.sizes = trouble, list[int]()

    def generate_batch(self, prompts: Sequence[Sequence[int]], samplings: Sequence[Sampling]) -> list[Generation]:
        self.sizes.append(len(prompts))
        self.trouble(len(self.sizes))
        return [Generation([UP, END], "stop") for _ in prompts]


def raise_at(number: int, error: BaseException) -> Callable[[int], None]:
    def trouble(batch: int) -> None:
        if batch == number:
            raise error

    return trouble


def test_a_batch_has_the_prompts_of_all_running_episodes() -> None:
    engine = UpEngine()
    done = soon(many(engine, ["count/2", "count/3", "count/9", "count/2"]))
    assert engine.sizes == [4, 4, 2, 1, 1, 1, 1, 1, 1]  # two end after 2 turns, one after 3, one after 9
    assert [t.trajectory.success for t in done] == [True] * 4


def test_a_finished_worker_does_not_block_the_batch() -> None:
    engine = UpEngine()
    soon(many(engine, ["count/2"] * 5, concurrency=2))
    assert engine.sizes == [2, 2, 2, 2, 1, 1]


def test_a_batch_does_not_wait_for_idle_workers() -> None:
    engine = UpEngine()
    soon(many(engine, ["count/3"] * 2, concurrency=100))
    assert engine.sizes == [2, 2, 2]


def test_each_caller_gets_its_own_answer_and_its_own_sampling() -> None:
    class Echo(BatchEngine):
        def generate_batch(self, prompts: Sequence[Sequence[int]], samplings: Sequence[Sampling]) -> list[Generation]:
            return [Generation([*p, s.max_tokens], "stop") for p, s in zip(prompts, samplings, strict=True)]

    async def ask() -> list[Generation]:
        engine = Echo()
        for _ in range(3):
            engine.worker_began()
        return await asyncio.gather(*(engine.generate([n], Sampling(10 + n)) for n in range(3)))

    assert [answer.ids for answer in soon(ask())] == [[0, 10], [1, 11], [2, 12]]


def test_every_prompt_is_a_batch_without_announced_workers() -> None:
    engine = UpEngine()
    assert soon(engine.generate([1], ASKED)).ids == [UP, END]
    assert engine.sizes == [1]


@pytest.mark.parametrize("batch", [1, 3])
def test_an_error_of_a_batch_propagates_and_the_engine_stays_usable(batch: int) -> None:
    error = RuntimeError("out of memory")
    engine = UpEngine(raise_at(batch, error))
    with pytest.raises(RuntimeError) as caught:
        soon(many(engine, ["count/2", "count/3", "count/9"]))
    assert caught.value is error
    engine.sizes.clear()
    engine.trouble = lambda number: None
    soon(many(engine, ["count/2"] * 3))
    assert engine.sizes == [3, 3]


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(3)])
def test_ctrl_c_during_generation_propagates(error: BaseException) -> None:
    engine = UpEngine(raise_at(2, error))
    with pytest.raises(type(error)):
        asyncio.run(many(engine, ["count/2", "count/3", "count/9"]))
    assert engine.sizes == [3, 3]  # nothing was generated for the cancelled episodes
    engine.trouble = lambda number: None
    assert len(soon(many(engine, ["count/2"] * 3))) == 3


def test_a_batch_of_a_wrong_size_is_an_error() -> None:
    class Short(UpEngine):
        def generate_batch(self, *args: Any) -> list[Generation]:
            return super().generate_batch(*args)[:-1]

    with pytest.raises(ValueError, match="shorter"):
        soon(many(Short(), ["count/2"] * 3))


@pytest.mark.parametrize("steps", [0, 1, 2, 3])
def test_cancelled_episodes_leave_the_engine_unchanged(steps: int) -> None:
    engine = UpEngine()

    async def cancel_then_play() -> list[TokenTrajectory]:
        first = asyncio.create_task(many(engine, ["count/9"] * 3))
        for _ in range(steps):
            await asyncio.sleep(0)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        engine.sizes.clear()
        return await many(engine, ["count/2"] * 3)

    assert len(soon(cancel_then_play())) == 3
    assert engine.sizes == [3, 3]


def test_nothing_is_generated_for_cancelled_prompts() -> None:
    engine = UpEngine()

    async def ask() -> None:
        for _ in range(3):
            engine.worker_began()
        questions = [asyncio.create_task(engine.generate([n], ASKED)) for n in range(2)]
        await asyncio.sleep(0)
        for question in questions:
            question.cancel()
        for _ in range(3):
            engine.worker_ended()
        await asyncio.gather(*questions, return_exceptions=True)

    soon(ask())
    assert engine.sizes == []


def test_the_scripted_engine_truncates_and_records_prompts() -> None:
    engine = ScriptedEngine([[1, 2, 3], [1, 2]], stop_ids=[2])
    assert soon(engine.generate([9], Sampling(2))) == Generation([1, 2], "stop", [-0.5, -0.5])
    assert soon(engine.generate([8], Sampling(1))) == Generation([1], "length", [-0.5])
    assert engine.prompts == [[9], [8]]


Handler = Callable[[httpx.Request], httpx.Response]


def completion(**choice: Any) -> httpx.Response:
    return httpx.Response(200, json={"choices": [{"finish_reason": "stop", "token_ids": [UP, END], **choice}]})


def ask(handler: Handler, sampling: Sampling = ASKED) -> Generation:
    async def once() -> Generation:
        engine = CompletionEngine(BASE, "m", api_key="secret", transport=httpx.MockTransport(handler))
        try:
            return await engine.generate([1, 2], sampling)
        finally:
            await engine.aclose()

    return soon(once())


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Record the sleeps between attempts instead of waiting; threads of servers sleep normally."""
    seen: list[float] = []
    real, own = asyncio.sleep, threading.get_ident()

    async def sleep(seconds: float, result: Any = None) -> Any:
        if threading.get_ident() != own:
            return await real(seconds, result)
        seen.append(seconds)
        return result

    monkeypatch.setattr("agentgym_envs.rollout.engines.asyncio.sleep", sleep)
    return seen


def test_sleeps_in_other_threads_are_real(pauses: list[float]) -> None:
    results: list[str] = []
    thread = threading.Thread(target=lambda: results.append(asyncio.run(asyncio.sleep(0.01, "slept"))))
    thread.start()
    thread.join()
    assert asyncio.run(asyncio.sleep(60, "not at all")) == "not at all"
    assert results == ["slept"] and pauses == [60]


def test_token_ids_are_sent_and_received() -> None:
    requests: list[httpx.Request] = []

    def handler(request: httpx.Request) -> httpx.Response:
        requests.append(request)
        return completion(logprobs={"token_logprobs": [-0.25, -1.5]}, text="UP")

    sampling = Sampling(7, temperature=0.5, top_p=0.9, top_k=40, stop_ids=(END, 5))
    assert ask(handler, sampling) == Generation([UP, END], "stop", [-0.25, -1.5])
    assert str(requests[0].url) == f"{BASE}/completions"
    assert requests[0].headers["authorization"] == "Bearer secret"
    body = json.loads(requests[0].content)
    assert body["prompt"] == [1, 2] and body["stop_token_ids"] == [END, 5] and body["return_token_ids"] is True
    assert (body["model"], body["max_tokens"], body["temperature"]) == ("m", 7, 0.5)
    assert (body["top_p"], body["top_k"]) == (0.9, 40)


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ({"finish_reason": "length", "token_ids": [UP]}, Generation([UP], "length")),
        ({"logprobs": None}, Generation([UP, END], "stop")),
        ({"logprobs": {"token_logprobs": [-1.0]}}, Generation([UP, END], "stop")),
    ],
)
def test_optional_fields_of_a_reply_are_read(choice: dict[str, Any], expected: Generation) -> None:
    assert ask(lambda request: completion(**choice)) == expected


def test_a_missing_top_k_is_sent_as_minus_one() -> None:
    bodies: list[dict[str, Any]] = []

    def handler(request: httpx.Request) -> httpx.Response:
        bodies.append(json.loads(request.content))
        return completion()

    ask(handler)
    assert bodies[0]["top_k"] == -1


FAILURES: dict[str, Handler] = {
    "busy": lambda request: httpx.Response(503, text="overloaded"),
    "too many": lambda request: httpx.Response(429, text="slow down"),
    "no connection": lambda request: (_ for _ in ()).throw(httpx.ConnectError("refused")),
    "no answer": lambda request: (_ for _ in ()).throw(httpx.ReadTimeout("slow")),
}


@pytest.mark.parametrize("failure", FAILURES.values(), ids=FAILURES)
def test_transient_failures_are_retried(failure: Handler, pauses: list[float]) -> None:
    attempts: list[int] = []

    def handler(request: httpx.Request) -> httpx.Response:
        attempts.append(1)
        return failure(request) if len(attempts) < 3 else completion()

    assert ask(handler).ids == [UP, END]
    assert len(attempts) == 3
    assert pauses == [pytest.approx(1.125, abs=0.13), pytest.approx(2.25, abs=0.26)]


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("busy", "answered HTTP 503: overloaded"),
        ("too many", "answered HTTP 429: slow down"),
        ("no connection", "did not answer: ConnectError: refused"),
        ("no answer", "did not answer: ReadTimeout: slow"),
    ],
)
def test_permanent_failures_are_raised(kind: str, words: str, pauses: list[float]) -> None:
    with pytest.raises(EngineError, match=f"{BASE}/completions {words}"):
        ask(FAILURES[kind])
    assert pauses[:2] == [pytest.approx(1.125, abs=0.13), pytest.approx(2.25, abs=0.26)]
    assert len(pauses) == (7 if kind == "too many" else 2)


ANSWERS = {
    "refused": (httpx.Response(400, text="max_tokens is too large"), "HTTP 400: max_tokens is too large"),
    "no token ids": (completion(token_ids=None), "no token ids; .*return_token_ids.*--policy openai:MODEL"),
    "empty token ids": (completion(token_ids=[]), "no token ids"),
    "a web page": (httpx.Response(200, html="<html>Welcome</html>"), "not a JSON object: '<html>Welcome.*/v1"),
    "a list": (httpx.Response(200, json=[1]), "not a JSON object"),
    "no choices": (httpx.Response(200, json={"error": "no such model"}), "no choice: .*no such model"),
    "empty choices": (httpx.Response(200, json={"choices": []}), "no choice"),
    "a strange choice": (httpx.Response(200, json={"choices": ["up"]}), "no choice"),
}


@pytest.mark.parametrize(("answer", "words"), ANSWERS.values(), ids=ANSWERS)
def test_malformed_replies_are_refused(answer: httpx.Response, words: str, pauses: list[float]) -> None:
    requests: list[httpx.Request] = []

    def handler(request: httpx.Request) -> httpx.Response:
        requests.append(request)
        return answer

    with pytest.raises(EngineError, match=words):
        ask(handler)
    assert len(requests) == 1 and not pauses  # a retry would not help


def test_every_running_episode_has_its_own_request_in_flight() -> None:
    inside, most = 0, 0

    async def handler(request: httpx.Request) -> httpx.Response:
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        await asyncio.sleep(0.01)
        inside -= 1
        return completion()

    engine = CompletionEngine(BASE, "m", transport=httpx.MockTransport(handler))
    done = soon(many(engine, ["count/2", "count/3", "count/9", "count/2"]))
    assert most == 4
    assert [len(t.trajectory.turns) for t in done] == [2, 3, 9, 2]


def test_a_failing_server_ends_the_rollout() -> None:
    engine = CompletionEngine(BASE, "m", transport=httpx.MockTransport(lambda r: httpx.Response(400, text="no")))
    with pytest.raises(EngineError, match="HTTP 400: no"):
        soon(many(engine, ["count/2"] * 3))


def chat(handler: Handler, tasks: Sequence[str] = ("count/2",)) -> Any:
    policy = ChatPolicy(
        "m", f"{BASE}/", api_key="secret", temperature=0.5, max_tokens=9, transport=httpx.MockTransport(handler)
    )

    async def play_and_close() -> Any:
        try:
            return await play_many_text(
                [EpisodeSpec(task) for task in tasks], CountEnv, lambda: policy, limits=Limits(max_turns=3)
            )
        finally:
            await policy.aclose()

    return soon(play_and_close())


def message(content: Any, **beside: Any) -> httpx.Response:
    choice = {"message": {"role": "assistant", "content": content}}
    return httpx.Response(200, json={"choices": [choice], **beside})


def test_a_chat_server_reads_the_conversation() -> None:
    bodies: list[dict[str, Any]] = []

    def handler(request: httpx.Request) -> httpx.Response:
        assert str(request.url) == f"{BASE}/chat/completions"
        assert request.headers["authorization"] == "Bearer secret"
        bodies.append(json.loads(request.content))
        return message("up")

    (trajectory,) = chat(handler)
    assert trajectory.success and trajectory.actions == ["up", "up"]
    assert [(body["model"], body["temperature"], body["max_tokens"]) for body in bodies] == [("m", 0.5, 9)] * 2
    assert [[m["role"] for m in body["messages"]] for body in bodies] == [
        ["system", "user"],
        ["system", "user", "assistant", "user"],
    ]
    assert bodies[1]["messages"] == trajectory.messages()[:-1]


def test_an_empty_message_is_an_action() -> None:
    (trajectory,) = chat(lambda request: message(None))
    assert trajectory.actions == ["", "", ""] and trajectory.stop_reason == "turn_limit"


def test_the_parts_of_a_message_are_joined() -> None:
    parts = [{"type": "thinking", "thinking": []}, {"type": "text", "text": "u"}, {"type": "text", "text": "p"}]
    (trajectory,) = chat(lambda request: message(parts))
    assert trajectory.actions == ["up", "up"] and trajectory.success


@pytest.mark.parametrize(
    ("usage", "tokens"), [({"usage": {"completion_tokens": 7}}, 7), ({}, None), ({"usage": 1}, None)]
)
def test_a_chat_servers_token_counts_are_in_the_answer_info(usage: dict[str, Any], tokens: int | None) -> None:
    (trajectory,) = chat(lambda request: message("up", **usage))
    assert [(turn.info["finish"], turn.info["tokens"]) for turn in trajectory.turns] == [("stop", tokens)] * 2


def test_the_token_counts_of_an_engine_are_in_the_turn_info() -> None:
    (played,) = soon(many(UpEngine(), ["count/2"]))
    assert [turn.info["tokens"] for turn in played.trajectory.turns] == [2, 2]


@pytest.mark.parametrize("content", [["up"], [{"type": "image_url"}], [{"type": "text"}], {"text": "up"}, 5, True])
def test_a_message_without_text_names_the_server(content: Any) -> None:
    with pytest.raises(EngineError, match=f"{BASE}/chat/completions returned no message: "):
        chat(lambda request: message(content))


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (httpx.Response(401, text="no such key"), "HTTP 401: no such key"),
        (httpx.Response(200, json={"choices": []}), "returned no message"),
        (httpx.Response(200, json={"choices": [{"message": None}]}), "returned no message"),
        (httpx.Response(200, html="<html>"), "not a JSON object"),
    ],
)
def test_failures_of_a_chat_server_are_raised(answer: httpx.Response, words: str) -> None:
    with pytest.raises(EngineError, match=words):
        chat(lambda request: answer)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, 0),
        ({"retry-after": "7"}, 7),
        ({"retry-after": "-7"}, 0),
        ({"retry-after-ms": "250", "retry-after": "7"}, 0.25),
        ({"retry-after": "soon"}, 0),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:10 GMT"}, 0),
        ({"retry-after": "Fri, 01 Jan 2100 00:00:00 GMT"}, 2e9),
    ],
    ids=str,
)
def test_the_wait_that_a_server_asks_for_is_read(headers: dict[str, str], seconds: float) -> None:
    found = model_requests._asked_wait(httpx.Headers(headers))
    assert found == seconds if seconds < 1e9 else found > 1e9


def test_a_refused_request_lets_the_others_wait(pauses: list[float]) -> None:
    async def requests() -> None:
        pace = model_requests.Pace()
        pace.slow_down(20)
        await asyncio.gather(*(pace.wait() for _ in range(3)))
        assert (pace.counts.sent, pace.counts.rate_limited) == (3, 1)

    asyncio.run(requests())
    assert pauses == [pytest.approx(20, abs=5)] * 3


def test_requests_are_spaced(pauses: list[float]) -> None:
    async def requests() -> None:
        pace = model_requests.Pace(per_minute=1)
        for _ in range(3):
            await pace.wait()

    asyncio.run(requests())
    assert pauses == [pytest.approx(60, abs=20), pytest.approx(120, abs=20)]
