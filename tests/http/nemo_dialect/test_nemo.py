"""NeMo-Gym's protocol: its agent plays our episodes as we do, repeats steps, and fails where the environment fails."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import httpx
import pytest

import tests.toy_envs  # noqa: F401 (registers the toys)
from agentgym_envs.core import text_env
from agentgym_envs.export.nemo import NemoTask
from agentgym_envs.grammar import find_call, tools_of
from agentgym_envs.http.dialects.nemo import nemo_routes
from agentgym_envs.http.dialects.openenv import openenv_routes
from agentgym_envs.http.run import background_server
from tests import contract
from tests.http.nemo_dialect.agent import Output, calls, run, says
from tests.http.tools import COUNT, TRICKY

TEXTCRAFT = "AgentGym/TextCraft-v0"
CLOSED = "there is no session of this cookie"


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with background_server([TEXTCRAFT, COUNT, TRICKY], mounts=[nemo_routes]) as url:
        yield url


@pytest.fixture
def http(server: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server, trust_env=False, timeout=30) as client:
        yield client


def row_of(env_id: str, task: str, seed: int = 0, **options: Any) -> dict[str, Any]:
    """A row of a data set, with the keys that NeMo-Gym adds."""
    base = text_env(gym.make(env_id, **options))
    row = NemoTask(env_id, task, seed, options, base.instructions, tuple(tools_of(base.grammar))).row()
    base.close()
    return {**row, "_ng_task_index": 0, "responses_create_params": {**row["responses_create_params"], "top_p": None}}


def begin(http: httpx.Client, row: dict[str, Any]) -> httpx.Response:
    reply = http.post("/reset", json=row)
    assert reply.status_code == 200, reply.text
    return reply


def step(http: httpx.Client, text: str, request_id: str | None = None, **fields: Any) -> httpx.Response:
    body = {"response": {"output": says(text)}, **({"_ng_step_request_id": request_id} if request_id else {}), **fields}
    return http.post("/step", json=body)


@pytest.mark.parametrize("base", ["", "/nemo"])
def test_the_agent_plays_the_episode_that_we_play(http: httpx.Client, base: str) -> None:
    env = text_env(gym.make(TEXTCRAFT))
    task = env.tasks.sample(1, split="train", seed=3)[0].id
    observation, info = env.reset(seed=5, options={"task": task})
    seen, rewards, plan = [observation], [], [*env.oracle()]
    for action in plan:
        observation, reward, terminated, truncated, info = env.step(action)
        seen.append(observation)
        rewards.append(float(reward))
    env.close()

    actions = iter(plan)
    done = run(http, row_of(TEXTCRAFT, task, 5), lambda messages: says(next(actions)), base=base)
    assert [message["content"] for message in done.conversation if message.get("role") == "user"] == seen[:-1]
    assert (done.reward, done.terminated, done.truncated) == (sum(rewards), terminated, truncated)
    assert {name: done.info[name] for name in info} == contract.plain(info)
    assert done.info["success"] is True


def test_the_turn_limit_is_that_of_the_agent(http: httpx.Client) -> None:
    done = run(http, row_of(TEXTCRAFT, "textcraft/1"), lambda messages: says("inventory"), max_steps=3)
    assert (done.reward, done.terminated, done.truncated) == (0.0, False, True)
    assert len(done.conversation) == 7


def test_native_tools_are_function_calls(http: httpx.Client) -> None:
    env = text_env(gym.make(TEXTCRAFT, grammar="tools"))
    task = env.tasks.sample(1, split="train", seed=3)[0].id
    env.reset(seed=0, options={"task": task})
    plan = iter([find_call(env.grammar.format(command)) for command in env.oracle()])
    env.close()
    row = row_of(TEXTCRAFT, task, grammar="tools")
    assert all(tool["type"] == "function" and "name" in tool for tool in row["responses_create_params"]["tools"])

    def model(messages: list[dict[str, Any]]) -> Output:
        call = next(plan)
        assert call is not None
        return [calls(call.name, json.dumps(call.arguments), call_id=f"c{len(messages)}")]

    done = run(http, row, model)
    outputs = [item for item in done.conversation if item.get("type") == "function_call_output"]
    called = [item["call_id"] for item in done.conversation if item.get("type") == "function_call"]
    assert done.reward == 1.0 and [item["call_id"] for item in outputs] == called[:-1]


def test_of_several_calls_the_last_one_counts(http: httpx.Client) -> None:
    begin(http, row_of(TEXTCRAFT, "textcraft/1", grammar="tools"))
    two = [calls("inventory", "{}", call_id="a"), calls("inventory", "{}", call_id="b")]
    info = http.post("/step", json={"response": {"output": two}}).json()["info"]
    assert [each["call_id"] for each in info["tool_outputs"]] == ["a", "b"]
    assert info["turn"] == 1 and info["tool_outputs"][0]["output"].startswith("Only the last call")
    assert not info["tool_outputs"][1]["output"].startswith("Only the last call")


def test_a_malformed_call_is_answered_in_text(http: httpx.Client) -> None:
    begin(http, row_of(TEXTCRAFT, "textcraft/1", grammar="tools"))
    reply = http.post("/step", json={"response": {"output": [calls("inventory", "{oops")]}}).json()
    assert reply["info"]["invalid_action"] and reply["reward"] == 0.0
    assert reply["info"]["tool_outputs"][0]["output"]


def test_a_repeated_step_is_carried_out_once(http: httpx.Client) -> None:
    begin(http, row_of(COUNT, "count/9"))
    first, again, other = step(http, "up", "a"), step(http, "up", "a"), step(http, "up", "b")
    assert first.json() == again.json() and first.json()["info"]["turn"] == 1
    assert other.json()["info"]["turn"] == 2
    assert [step(http, "up").json()["info"]["turn"] for _ in range(2)] == [3, 4], "steps without an id are all new"


@pytest.mark.parametrize("action", ["crash", "raise"])  # the environment reports its failure, or has a bug
def test_a_failing_environment_fails_the_rollout(http: httpx.Client, action: str) -> None:
    before = http.get("/health").json()["sessions"]
    begin(http, row_of(TRICKY, "count/3"))
    first, again = step(http, action, "a"), step(http, action, "a")
    assert first.status_code == again.status_code == 500 and first.json() == again.json()
    assert first.json()["error"]["type"] == "EnvError"
    assert http.get("/health").json()["sessions"] == before
    with pytest.raises(httpx.HTTPStatusError, match="500"):
        run(http, row_of(TRICKY, "count/3"), lambda messages: says(action))


def test_an_environment_that_does_not_begin_fails_the_rollout(http: httpx.Client) -> None:
    before = http.get("/health").json()["sessions"]
    reply = http.post("/reset", json=row_of(COUNT, "count/0"))
    assert reply.status_code == 500 and "no power" in reply.json()["error"]["message"]
    assert http.get("/health").json()["sessions"] == before


def test_sessions_are_apart_and_close(http: httpx.Client, server: str) -> None:
    begin(http, row_of(COUNT, "count/9"))
    with httpx.Client(base_url=server, trust_env=False) as other:
        begin(other, row_of(COUNT, "count/3"))
        step(http, "up")
        assert step(other, "up").json()["info"]["turn"] == 1
        assert other.post("/close", json={}).json() == other.post("/close", json={}).json() == {}
        gone = step(other, "up")
        assert gone.status_code == 404 and CLOSED in gone.json()["error"]["message"]
    assert step(http, "up").json()["info"]["turn"] == 2


def test_a_second_reset_closes_the_first_session(http: httpx.Client) -> None:
    def count() -> int:
        number: int = http.get("/health").json()["sessions"]
        return number

    begin(http, row_of(COUNT, "count/9"))
    before = count()
    begin(http, row_of(COUNT, "count/3"))
    assert count() == before
    http.post("/close", json={})
    assert count() == before - 1


@pytest.mark.parametrize(
    ("body", "status", "part"),
    [
        ([], 422, "must be a row"),
        ({"agentgym": 3}, 422, "env, options, task, split, group, seed"),
        ({"agentgym": {"env": COUNT, "tusk": 1}}, 422, "tusk"),
        ({"agentgym": {"env": COUNT, "\ud800": 1}}, 422, "surrogates"),
        ({"agentgym": {}}, 422, "must name one"),
        ({"agentgym": {"env": "Toy/None-v0"}}, 422, "does not serve"),
        ({"agentgym": {"env": COUNT, "task": "count/none"}}, 404, "count/none"),
        ({"agentgym": {"env": COUNT, "options": {"path": "/etc"}}}, 422, "options"),
    ],
)
def test_malformed_rows_are_refused(http: httpx.Client, body: Any, status: int, part: str) -> None:
    before = http.get("/health").json()["sessions"]
    reply = http.post("/reset", content=json.dumps(body))
    assert reply.status_code == status and part in reply.json()["error"]["message"], reply.text
    assert http.get("/health").json()["sessions"] == before


@pytest.mark.parametrize("body", [{}, {"response": 3}, {"response": {"output": "up"}}])
def test_malformed_responses_are_refused(http: httpx.Client, body: Any) -> None:
    begin(http, row_of(COUNT, "count/9"))
    assert http.post("/step", json=body).status_code == 422
    assert step(http, "up").json()["info"]["turn"] == 1


def test_odd_outputs_are_an_empty_answer(http: httpx.Client) -> None:
    begin(http, row_of(COUNT, "count/9"))
    odd = [3, {"type": "reasoning"}, {"type": "message", "content": None}, {"type": "message", "content": [3]}]
    assert http.post("/step", json={"response": {"output": odd}}).json()["info"]["invalid_action"]


def test_metrics_are_means_over_rollouts(http: httpx.Client) -> None:
    rollouts = [{"reward": 1.0, "info": {"success": True}}, {"reward": 0.0, "info": {"success": False}}]
    found = http.post("/aggregate_metrics", json={"verify_responses": rollouts}).json()
    assert found["agent_metrics"] == {"mean/reward": 0.5, "mean/success": 0.5}
    assert http.post("/aggregate_metrics", json={"verify_responses": []}).json()["agent_metrics"] == {}
    assert http.post("/aggregate_metrics", json={}).status_code == 422


@pytest.mark.slow
def test_a_token_and_a_limit_hold_here_too() -> None:
    """NeMo-Gym sends no headers of its own, but an address may hold a password."""
    with background_server([COUNT], mounts=[nemo_routes], token="secret", max_sessions=1) as url:
        row = row_of(COUNT, "count/9")
        assert httpx.post(f"{url}/reset", json=row, trust_env=False).status_code == 401
        allowed = url.replace("http://", "http://agentgym:secret@")
        assert httpx.post(f"{allowed}/reset", json=row, trust_env=False).status_code == 200
        assert httpx.post(f"{allowed}/reset", json=row, trust_env=False).status_code == 429


@pytest.mark.slow
def test_it_is_served_beside_openenv() -> None:
    """Both have /reset at the root of a server of one environment: the first one named answers there."""
    with background_server([COUNT], mounts=[openenv_routes, nemo_routes]) as url, httpx.Client(base_url=url) as http:
        done = run(http, row_of(COUNT, "count/3"), lambda messages: says("up"), base="/nemo")
        assert done.reward == 1.0
        assert "system_prompt" in http.post("/reset", json={}).json()["observation"]
