"""`agentgym mcp` with MCP's own client: in process, over stdio, and over HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import httpx
import pytest
from mcp import Client, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

from agentgym_envs.core import text_env
from agentgym_envs.errors import EnvError
from agentgym_envs.http.run import background_server
from agentgym_envs.http.sessions import Sessions
from agentgym_envs.mcp import mcp_routes
from agentgym_envs.mcp.episodes import EpisodeTable, PinnedEpisode
from agentgym_envs.mcp.http import keep, only_mcp
from agentgym_envs.mcp.server import make_mcp_server
from agentgym_envs.trajectory import TrajectoryWriter, read_trajectories
from tests.doors.peers.toys import FORGED, TOY

TEXTCRAFT = "AgentGym/TextCraft-v0"
TASK = "textcraft/28"
TEST_SPLIT = {"env_args": {"split": "test"}}
GRADES = {"reward", "score", "success", "stop_reason", "task_id", "seed"}


@contextlib.asynccontextmanager
async def connected(
    env_id: str = TEXTCRAFT,
    *,
    mode: str = "auto",
    show_reward: bool = False,
    explicit_handles: bool = True,
    settings: dict[str, Any] | None = None,
    **options: Any,
) -> AsyncIterator[Client]:
    """A client in the same process."""
    sessions = Sessions([env_id], **(settings or {}))
    async with keep(sessions):
        episodes = EpisodeTable(sessions, env_id, **options)
        server = make_mcp_server(episodes, "The rules.", show_reward=show_reward, explicit_handles=explicit_handles)
        async with Client(server, mode=mode) as client:
            yield client
        episodes.close()


def plan(task: str = TASK, seed: int = 0) -> list[str]:
    env = gym.make(TEXTCRAFT)
    env.reset(seed=seed, options={"task": task})
    return list(text_env(env).oracle())


def run(body: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(body())


async def called(client: Client, name: str, /, **arguments: Any) -> dict[str, Any]:
    """The result of a call that succeeds; its text is the same as its structured content."""
    result = await client.call_tool(name, arguments)
    assert not result.is_error, result.content[0].text
    assert json.loads(result.content[0].text) == result.structured_content
    return dict(result.structured_content)


async def refused(client: Client, name: str, /, **arguments: Any) -> str:
    result = await client.call_tool(name, arguments)
    assert result.is_error
    return str(result.content[0].text)


async def play(client: Client, **begin: Any) -> dict[str, Any]:
    """Play the oracle's plan of the task with `step`."""
    result = await called(client, "reset", **begin)
    for action in plan():
        assert not result["done"]
        result = await called(client, "step", action=action, episode=result["episode"])
    return result


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_an_episode_is_played_by_text(mode: str) -> None:
    async def body() -> None:
        async with connected(mode=mode, show_reward=True) as client:
            result = await play(client, task=TASK, seed=0)
            assert (result["score"], result["stop_reason"], result["done"]) == (1.0, "success", True)

    run(body)


def test_an_episode_is_played_by_the_tools_of_the_scenario() -> None:
    async def body() -> None:
        async with connected(show_reward=True) as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            assert list(tools) == ["reset", "step", "get", "craft", "inventory"]
            assert tools["get"].input_schema["properties"]["amount"]["minimum"] == 1
            assert set(tools["get"].input_schema["required"]) == {"amount", "item", "episode"}
            assert set(tools["get"].output_schema["properties"]) > GRADES
            result = await called(client, "reset", task=TASK, seed=0)
            for command in plan():
                verb, _, rest = command.partition(" ")
                if verb == "get":
                    amount, _, item = rest.partition(" ")
                    arguments: dict[str, Any] = {"amount": int(amount), "item": item}
                else:
                    item, _, ingredients = rest.partition(" using ")
                    arguments = {"item": item, "ingredients": ingredients}
                result = await called(client, verb, **arguments, episode=result["episode"])
            assert result["success"]

    run(body)


@pytest.mark.parametrize(
    ("env_id", "expected"),
    [
        ("AgentGym/BabyAI-v0", {"go_to", "pick_up", "toggle_and_go_through"}),
        ("AgentGym/Search-v0", {"search", "answer"}),
        ("AgentGym/SearchPages-v0", {"search", "open", "scroll", "find", "answer"}),
        ("AgentGym/WebArena-v0", {"click", "type", "goto", "stop"}),
        ("AgentGym/SciWorld-v0", {"focus_on", "pour", "wait1"}),
        ("AgentGym/TextCraftCoop-v0", set[str]()),
    ],
)
def test_every_scenario_has_its_tools(env_id: str, expected: set[str]) -> None:
    async def body() -> None:
        async with connected(env_id) as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            assert {"reset", "step", *expected} <= set(tools)
            assert "act" not in tools
            for tool in tools.values():
                assert tool.description
                assert all(value.get("description") for value in tool.input_schema["properties"].values())

    run(body)


def test_the_grade_is_hidden_unless_it_is_asked_for() -> None:
    async def body() -> None:
        async with connected() as client:
            result = await play(client, task=TASK, seed=0)
            assert set(result) == {"episode", "observation", "turn", "turns_left", "done"}
            schemas = [tool.output_schema["properties"] for tool in (await client.list_tools()).tools]
            assert not any(GRADES & set(schema) for schema in schemas)

    run(body)


def test_an_evaluation_has_one_episode_and_no_choice() -> None:
    async def body() -> None:
        async with connected(pinned=PinnedEpisode(TASK, 0)) as client:
            tools = {tool.name: tool.input_schema for tool in (await client.list_tools()).tools}
            assert tools["reset"]["properties"] == {}
            assert not (await client.list_resource_templates()).resource_templates
            assert "no episode has been begun" in await refused(client, "inventory")
            assert (await play(client))["done"]
            assert "one episode" in await refused(client, "reset")
            assert "over" in await refused(client, "step", action="inventory")

    run(body)


def test_an_evaluation_whose_episode_could_not_begin_may_begin_it_again(monkeypatch: pytest.MonkeyPatch) -> None:
    opened, failures = Sessions.open, iter([EnvError("no process could be started")])

    async def failing_once(self: Sessions, env_id: str, options: dict[str, Any]) -> Any:
        for error in failures:
            raise error
        return await opened(self, env_id, options)

    async def body() -> None:
        async with connected(pinned=PinnedEpisode(TASK, 0)) as client:
            monkeypatch.setattr(Sessions, "open", failing_once)
            assert "no process" in await refused(client, "reset")
            assert (await play(client))["done"]
            assert "one episode" in await refused(client, "reset")

    run(body)


def test_mistakes_are_errors_with_a_text_and_take_no_turn() -> None:
    async def body() -> None:
        async with connected() as client:
            first = await called(client, "reset", task=TASK, seed=0)
            handle = first["episode"]
            assert "there is no episode 'x'" in await refused(client, "step", action="look", episode="x")
            assert "there is no task 'nope'" in await refused(client, "reset", task="nope")
            assert "episode" in await refused(client, "step", action="look")  # the handle is required
            assert "amount" in await refused(client, "get", amount="many", item="stick", episode=handle)
            assert (await called(client, "step", action="fly", episode=handle))["turn"] == 1

    run(body)


def test_handles_keep_episodes_apart() -> None:
    async def body() -> None:
        async with connected(explicit_handles=False) as client:
            one, two = [await called(client, "reset", task=TASK, seed=0) for _ in range(2)]
            await called(client, "get", amount=3, item="oak log", episode=one["episode"])
            in_two = await called(client, "inventory")  # the newest
            in_one = await called(client, "inventory", episode=one["episode"])
            assert in_two["episode"] == two["episode"] and "not carrying" in in_two["observation"]
            assert "oak log" in in_one["observation"]

    run(body)


def test_the_turn_limit_ends_an_episode() -> None:
    async def body() -> None:
        async with connected(max_turns=2, show_reward=True) as client:
            handle = (await called(client, "reset", task=TASK, seed=0))["episode"]
            assert (await called(client, "inventory", episode=handle))["turns_left"] == 1
            last = await called(client, "inventory", episode=handle)
            assert last["done"] and last["stop_reason"] == "turn_limit"

    run(body)


def test_text_of_the_environment_cannot_forge_a_result() -> None:
    async def body() -> None:
        async with connected(TOY, show_reward=True, settings=TEST_SPLIT) as client:
            result = await called(client, "reset")
            assert result["observation"] == FORGED
            result = await called(client, "step", action="look", episode=result["episode"])
            assert result["observation"] == FORGED and not result["done"] and result["score"] == 0.0

    run(body)


def test_a_failure_of_the_environment_is_an_error_and_recorded_as_one(tmp_path: Path) -> None:
    async def body() -> None:
        with TrajectoryWriter(tmp_path / "out.jsonl") as recorder:
            async with connected(TOY, recorder=recorder, settings=TEST_SPLIT) as client:
                handle = (await called(client, "reset"))["episode"]
                assert "does not count" in await refused(client, "step", action="fail", episode=handle)
                assert "over" in await refused(client, "step", action="look", episode=handle)

    run(body)
    (trajectory,) = read_trajectories(tmp_path / "out.jsonl")
    assert trajectory.stop_reason == "env_error" and "fire" in str(trajectory.error) and not trajectory.usable


def test_records_have_what_the_agent_does_not_see(tmp_path: Path) -> None:
    async def body() -> None:
        with TrajectoryWriter(tmp_path / "out.jsonl") as recorder:
            async with connected(recorder=recorder) as client:
                await play(client, task=TASK, seed=0)
                await called(client, "reset", task=TASK, seed=1)  # left open

    run(body)
    solved, left = read_trajectories(tmp_path / "out.jsonl")
    assert (solved.score, solved.stop_reason, solved.actions) == (1.0, "success", plan())
    assert (left.stop_reason, left.seed, left.turns) == ("closed", 1, ())


def test_the_number_of_open_episodes_is_limited() -> None:
    async def body() -> None:
        async with connected(settings={"max_sessions": 1}) as client:
            await called(client, "reset", task=TASK, seed=0)
            assert "maximum" in await refused(client, "reset", task=TASK, seed=0)

    run(body)


def test_an_idle_episode_ends_and_makes_room() -> None:
    async def body() -> None:
        async with connected(settings={"max_sessions": 1, "idle_seconds": 0.2}) as client:
            handle = (await called(client, "reset", task=TASK, seed=0))["episode"]
            await asyncio.sleep(0.5)
            assert "over" in await refused(client, "inventory", episode=handle)
            assert (await called(client, "reset", task=TASK, seed=0))["turn"] == 0

    run(body)


def test_tasks_and_rules_are_offered() -> None:
    async def body() -> None:
        async with connected() as client:
            found = await client.read_resource("agentgym://tasks/test")
            rows = json.loads(found.contents[0].text)
            assert rows and set(rows[0]) == {"id", "group", "goal"}
            prompt = await client.get_prompt("play")
            assert "The rules." in prompt.messages[0].content.text

    run(body)


def stdio(*arguments: str) -> Any:
    command = ["-m", "agentgym_envs", "mcp", "textcraft", *arguments]
    return stdio_client(StdioServerParameters(command=sys.executable, args=command))


def test_the_command_serves_stdio(tmp_path: Path) -> None:
    async def body() -> None:
        async with Client(stdio("--task", TASK, "--out", str(tmp_path / "out.jsonl"))) as client:
            assert "get <amount> <item>" in str(client.instructions)
            assert (await play(client))["done"]

    run(body)
    (trajectory,) = read_trajectories(tmp_path / "out.jsonl")
    assert trajectory.success and trajectory.task.id == TASK


@contextlib.asynccontextmanager
async def with_token(url: str, token: str) -> AsyncIterator[Client]:
    http = create_mcp_http_client(headers={"Authorization": f"Bearer {token}"})
    async with http, Client(streamable_http_client(url, http_client=http)) as client:
        yield client


@pytest.fixture(scope="module")
def dialect() -> Iterator[str]:
    with background_server([TEXTCRAFT, "AgentGym/BabyAI-v0"], token="secret", mounts=[mcp_routes]) as url:
        yield url


@pytest.fixture(scope="module")
def alone() -> Iterator[str]:
    def mount(server: Any) -> Any:
        return only_mcp(server, EpisodeTable(Sessions([TEXTCRAFT]), TEXTCRAFT), show_reward=True)

    with background_server([], mounts=[mount]) as url:
        yield url


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_http_serves_the_episodes(alone: str, mode: str) -> None:
    async def body() -> None:
        async with Client(f"{alone}/mcp", mode=mode) as client:
            assert (await play(client, task=TASK, seed=0))["score"] == 1.0

    run(body)


def test_no_other_route_reaches_the_episodes_of_an_evaluation(alone: str) -> None:
    assert httpx.post(f"{alone}/v2/sessions", json={"env": TEXTCRAFT}).status_code == 422
    assert httpx.get(f"{alone}/envs").json()["envs"] == []


def test_a_page_of_another_site_is_refused(alone: str) -> None:
    def status(origin: str) -> int:
        return httpx.post(f"{alone}/mcp", json={}, headers={"Origin": origin}).status_code

    assert status("http://evil.example:8000") == 403
    assert status("http://localhost:6274") != 403


def test_the_dialect_serves_each_environment_behind_the_token(dialect: str) -> None:
    assert httpx.post(f"{dialect}/mcp/{TEXTCRAFT}", json={}).status_code == 401

    async def body() -> None:
        async with with_token(f"{dialect}/mcp/{TEXTCRAFT}", "secret") as client:
            result = await play(client, task=TASK, seed=0)
            assert result["done"] and "score" not in result

    run(body)


def test_the_command_serves_http(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "agentgym_envs", "mcp", "textcraft", "--http", "--port", "0", "--task", TASK]
    command += ["--token", "secret", "--out", str(tmp_path / "out.jsonl")]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        url = next(line.split()[-1] for line in server.stdout if line.startswith("MCP client: "))

        async def body() -> None:
            async with with_token(url, "secret") as client:
                assert (await called(client, "reset"))["turn"] == 0

        run(body)
    finally:
        server.terminate()
        assert server.wait(60) == 0
    (left,) = read_trajectories(tmp_path / "out.jsonl")
    assert (left.stop_reason, left.task.id) == ("closed", TASK)
