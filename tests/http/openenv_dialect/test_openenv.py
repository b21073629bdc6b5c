"""OpenEnv's own client on our server, over real sockets, compared with local environments."""

import asyncio
import subprocess
import sys
from typing import Any

import gymnasium as gym
import httpx
import pytest

from agentgym_envs.core import ENV_FAILED, text_env
from tests.http.openenv_dialect.tools import (
    COUNT,
    ROOT,
    TASK,
    TEXTCRAFT,
    TRICKY,
    ask,
    base,
    check_episode,
    held,
    part,
    play_here,
    raw,
    same,
    wait_until_held,
)

pytestmark = pytest.mark.slow  # too slow for the fast run


def test_episodes_equal_those_of_a_local_environment(openenv: Any, server: str) -> None:
    with openenv(base_url=base(server, TEXTCRAFT)).sync() as client:
        for seed, task in enumerate(("textcraft/7", "textcraft/100", "textcraft/300")):
            check_episode(client, task, seed)
    wait_until_held(server, 0)


def test_the_root_serves_the_only_environment(openenv: Any, server: str, toys: str) -> None:
    with openenv(base_url=server).sync() as client:
        check_episode(client, "textcraft/3", 5)
    with pytest.raises(ConnectionError), openenv(base_url=toys).sync():
        pass


def test_the_first_observation_has_the_system_prompt(openenv: Any, server: str) -> None:
    with openenv(base_url=server).sync() as client:
        plain = client.reset(task="textcraft/3")
        react = client.reset(task="textcraft/3", grammar="react")
        assert plain.observation["text"] == react.observation["text"]
        for result, grammar in ((plain, "bare"), (react, "react")):
            env = gym.make(TEXTCRAFT, grammar=grammar)
            assert result.observation["system_prompt"] == text_env(env).instructions
        step = client.step({"message": "Thought: what have I?\nAction: inventory"})
        assert step.metadata["invalid_action"] is None and "system_prompt" not in step.observation
        bare = client.reset(task="textcraft/3")
        assert bare.observation["system_prompt"] == plain.observation["system_prompt"]


def test_equal_seeds_give_equal_episodes(openenv: Any, toys: str) -> None:
    async def first(seed: int) -> Any:
        async with openenv(base_url=base(toys, COUNT)) as client:
            return await client.reset(seed=seed)

    async def main() -> None:
        again, one, two = [await first(1), await first(1), await first(2)]
        assert again == one and one.observation["text"] != two.observation["text"]
        env = gym.make(COUNT)
        observation, info = env.reset(seed=1)
        same(one, observation, None, False, False, info)

    asyncio.run(main())


def test_sixteen_sessions_run_concurrently(openenv: Any, server: str) -> None:
    tasks = [f"textcraft/{number}" for number in range(0, 160, 10)]
    expected = [play_here(task, seed) for seed, task in enumerate(tasks)]

    async def episode(seed: int) -> None:
        async with openenv(base_url=server) as client:
            (_, observation, info), *turns = expected[seed]
            same(await client.reset(seed=seed, task=tasks[seed]), observation, None, False, False, info)
            for action, *outcome in turns:
                same(await client.step({"message": action}), *outcome)
            await gathered.wait()  # no client leaves before the first has counted
            assert seed or held(server) == 16
            await gathered.wait()

    async def main() -> None:
        await asyncio.gather(*(episode(seed) for seed in range(16)))

    gathered = asyncio.Barrier(16)
    asyncio.run(main())
    wait_until_held(server, 0)


def test_each_new_session_has_its_own_episode(openenv: Any, toys: str) -> None:
    async def main() -> None:
        async with openenv(base_url=base(toys, COUNT)) as one:
            two = await one.new_session()
            await one.reset(task=TASK)
            await two.reset(task=TASK)
            await one.step({"message": "up"})
            assert (await two.step({"message": "up"})).observation["text"] == "1"
            assert (await one.step({"message": "up"})).observation["text"] == "2"

    asyncio.run(main())
    wait_until_held(toys, 0)


def test_the_state_follows_the_episode(openenv: Any, toys: str) -> None:
    with openenv(base_url=base(toys, COUNT)).sync() as client:
        assert client.state() == {"episode_id": None, "step_count": 0}
        client.reset(task=TASK, seed=4, episode_id="mine")
        client.step({"message": "up"})
        state = client.state()
        assert (state["episode_id"], state["step_count"], state["score"]) == ("mine", 1, pytest.approx(1 / 3))
        client.reset(task=TASK, seed=4)
        assert client.state()["episode_id"] not in (None, "mine") and client.state()["step_count"] == 0


@pytest.mark.parametrize(
    "action", [{"message": "up"}, {"action": "up"}, {"text": "up"}, {"message": "up", "metadata": {}}]
)
def test_an_action_is_accepted_under_three_keys(openenv: Any, toys: str, action: dict[str, Any]) -> None:
    with openenv(base_url=base(toys, COUNT)).sync() as client:
        client.reset(task=TASK)
        assert client.step(action).observation["text"] == "1"


@pytest.mark.parametrize(
    "action", [{}, {"message": 3}, {"\ud800": "up"}, {"message": "up", "text": "up"}, {"move": "up"}, {"metadata": {}}]
)
def test_invalid_actions_are_refused(openenv: Any, toys: str, action: dict[str, Any]) -> None:
    with openenv(base_url=base(toys, COUNT)).sync() as client:
        client.reset(task=TASK)
        with pytest.raises(RuntimeError, match=r"an action is .*VALIDATION_ERROR"):
            client.step(action)
        assert client.step({"message": "up"}).metadata["turn"] == 1


@pytest.mark.parametrize(
    "data",
    [
        {"seed": -1},
        {"seed": "1"},
        {"seed": True},
        {"seed": 1.5},
        {"episode_id": "x" * 256},
        {"task": 3},
        {"task": "count/77"},
        {"split": "dev"},
        {"group": "none"},
        {"index": -1},
        {"index": 3},
        {"index": 0, "task": TASK},
        {"index": 0, "group": "small"},
        {"level": 3},
        {"grammar": "latin"},
        {"base_url": "http://example.com"},
    ],
)
def test_invalid_resets_are_refused(toys: str, data: dict[str, Any]) -> None:
    with raw(base(toys, COUNT)) as websocket:
        reply = ask(websocket, "reset", **data)
        assert reply["type"] == "error" and reply["data"]["code"] == "VALIDATION_ERROR", reply
        assert ask(websocket, "reset", task=TASK)["data"]["observation"]["text"].startswith("Count to 3")


def test_fields_that_are_null_are_ignored(toys: str) -> None:
    with raw(base(toys, COUNT)) as websocket:
        assert ask(websocket, "reset")["type"] == "observation"
        assert ask(websocket, "reset", seed=None, episode_id=None, task=None, grammar=None)["type"] == "observation"
        for _ in range(20):
            assert ask(websocket, "reset", split="test", group="large")["data"]["metadata"]["task_id"] == "count/10"


def test_a_step_after_the_end_is_refused(openenv: Any, toys: str) -> None:
    with openenv(base_url=base(toys, COUNT)).sync() as client:
        with pytest.raises(RuntimeError, match=r"reset\(\) first.*EXECUTION_ERROR"):
            client.step({"message": "up"})
        client.reset(task=TASK)
        over = client.step({"message": "give up"})
        assert over.done and (over.metadata["terminated"], over.metadata["truncated"]) == (True, False)
        with pytest.raises(RuntimeError, match="EXECUTION_ERROR"):
            client.step({"message": "up"})


@pytest.mark.parametrize("env_id, command", [(COUNT, "crash"), (TRICKY, "raise")])
def test_an_infrastructure_error_ends_the_episode(openenv: Any, toys: str, env_id: str, command: str) -> None:
    with openenv(base_url=base(toys, env_id)).sync() as client:
        client.reset(task=TASK, seed=1)
        client.step({"message": "up"})
        failed = client.step({"message": command})
        assert failed.done and failed.reward is None and failed.observation["text"] == ENV_FAILED
        metadata = failed.metadata
        assert metadata["stop_reason"] == "env_error" and metadata["error"]
        assert (metadata["terminated"], metadata["truncated"], metadata["turn"]) == (False, True, 2)
        assert metadata["score"] == pytest.approx(1 / 3)
        with pytest.raises(RuntimeError, match="EXECUTION_ERROR"):
            client.step({"message": "up"})
        assert not client.reset(task=TASK).done
        broken = client.reset(task="count/0")
        assert broken.done and broken.metadata["stop_reason"] == "env_error" and broken.metadata["truncated"]
        assert client.reset(task=TASK).metadata["stop_reason"] is None
    wait_until_held(toys, 0)


def test_plain_http_keeps_no_episode(server: str) -> None:
    env = gym.make(TEXTCRAFT)
    observation, info = env.reset(seed=8)
    first = httpx.post(f"{server}/reset", json={"seed": 8}).json()
    assert first["observation"]["text"] == observation and first["metadata"]["task_id"] == info["task_id"]
    assert httpx.post(f"{server}/reset").status_code == 200
    assert httpx.post(f"{server}/reset", json={"task": "no"}).status_code == 404
    assert httpx.post(f"{server}/reset", json=[]).status_code == 422
    assert httpx.post(f"{server}/reset", content="{").status_code == 400
    refused = httpx.post(f"{server}/step", json={"action": {"message": "inventory"}})
    assert refused.status_code == 409 and "/ws" in refused.json()["error"]["message"]
    assert httpx.get(f"{server}/state").json() == {"episode_id": None, "step_count": 0}
    assert held(server) == 0


def test_metadata_and_schema_describe_the_environment(server: str) -> None:
    about = httpx.get(f"{server}/metadata").json()
    env = text_env(gym.make(TEXTCRAFT))
    assert about["name"] == TEXTCRAFT and about["description"] == env.rules and about["version"] == "0"
    schema = httpx.get(f"{server}/schema").json()
    # A client that uses a model's plain reply as an action needs exactly one field, and no title of an MCP action.
    assert list(schema["action"]["properties"]) == ["message"] and schema["action"]["title"] == "TextAction"


def test_replies_have_the_types_of_openenv(openenv: Any, server: str) -> None:
    types = part("core.env_server.types")
    with raw(server) as websocket:
        for reply in (ask(websocket, "reset", seed=1), ask(websocket, "step", message="inventory")):
            types.WSObservationResponse.model_validate(reply)
            types.StepResponse.model_validate(reply["data"])
        types.State.model_validate(types.WSStateResponse.model_validate(ask(websocket, "state")).data)
        types.WSErrorResponse.model_validate(error := ask(websocket, "dance"))
        types.WSErrorCode(error["data"]["code"])
    types.ResetResponse.model_validate(httpx.post(f"{server}/reset").json())
    types.SchemaResponse.model_validate(httpx.get(f"{server}/schema").json())
    types.EnvironmentMetadata.model_validate(httpx.get(f"{server}/metadata").json())


def test_the_validator_of_openenv_passes(openenv: Any, server: str) -> None:
    report = part("cli._validation").validate_running_environment(base(server, TEXTCRAFT))
    assert report["passed"] and not report["summary"]["failed_criteria"] and report["mode"] == "simulation"


def test_tasks_can_be_listed_and_reset_by_index(openenv: Any, toys: str) -> None:
    root = base(toys, COUNT)
    (name,) = httpx.get(f"{root}/list_environments").json()

    def post(what: str, **body: Any) -> Any:
        return httpx.post(f"{root}/{name}/{what}", json=body).raise_for_status().json()

    assert httpx.get(f"{root}/{name}/splits").json() == [
        {"name": split, "type": split} for split in ("train", "validation", "test")
    ]
    rows = post("tasks", split="train")["tasks"]
    assert [row["id"] for row in rows] == ["count/2", "count/3", "count/9"]
    assert post("num_tasks", split="train") == {"num_tasks": 3}
    assert post("task", split="train", index=1) == {"task": rows[1]}
    assert post("task_range", split="train", start=1, stop=None) == {"tasks": rows[1:]}
    with openenv(base_url=root).sync() as client:
        assert [client.reset(index=index).metadata["task_id"] for index in range(3)] == [row["id"] for row in rows]
        assert client.reset(split="test", index=0).metadata["task_id"] == "count/10"
    for path, body in (("task", {"split": "train", "index": 3}), ("num_tasks", {}), ("task", {"split": "train"})):
        assert httpx.post(f"{root}/{name}/{path}", json=body).status_code == 422
    assert httpx.post(f"{root}/{name}/tasks", json={"split": "dev"}).status_code == 404
    wait_until_held(toys, 0)


def test_an_index_is_a_position_among_the_tasks_of_the_options(server: str) -> None:
    with raw(server) as one, raw(server) as other:
        # The tasks of these worlds are endless; asking for them does not change any index.
        for _ in range(2):
            refused = ask(one, "reset", worlds="fictional", index=0)
            assert refused["type"] == "error" and "at once" in refused["data"]["message"]
            for websocket in (one, other):
                assert ask(websocket, "reset", index=0)["data"]["metadata"]["task_id"] == "textcraft/0"
        assert ask(one, "reset", worlds="fictional")["data"]["metadata"]["task_id"].startswith("textcraft-fictional/")
        assert ask(one, "reset", index=0)["data"]["metadata"]["task_id"] == "textcraft/0"


def test_openenvs_harness_plays_an_episode(openenv: Any, server: str) -> None:
    """Play through a session factory as TRL's `HarnessRolloutWorker` does, without a model."""
    harness, llm = part("core.harness"), part("core.llm_client")
    _, *turns = play_here("textcraft/100", 3)
    commands = iter([turn[0] for turn in turns])
    act = {"type": "object", "properties": {"message": {"type": "string"}}, "required": ["message"]}
    session = harness.StepEnvSessionAdapter(
        openenv(base_url=server),
        seed=3,
        episode_id="rollout",
        reset_kwargs={"task": "textcraft/100"},
        tool_specs=[part("core.env_server.mcp_types").Tool(name="act", description="Act", input_schema=act)],
        action_builder=lambda name, arguments: arguments,
        initial_messages_builder=lambda result, task: [{"role": "user", "content": result.observation["text"]}],
    )

    def model_step(messages: Any, tools: Any, sampling: Any) -> Any:
        call = llm.ToolCall(id="1", name="act", args={"message": next(commands)})
        return harness.ModelStepResult(response=llm.LLMResponse(content="", tool_calls=[call]))

    try:
        rollout = harness.MCPHarnessAdapter().run_white_box(model_step, session)
        assert rollout.done and len(rollout.tool_trace) == len(turns)
        assert rollout.tool_trace[-1].result.metadata["state"]["episode_id"] == "rollout"
        verdict = session.verify(rollout.messages)
        assert verdict.env_reward == 1.0 and verdict.metrics["step_count"] == len(turns)
    finally:
        session.close()
    wait_until_held(server, 0)


@pytest.mark.slow
def test_the_example_plays_an_episode(server: str) -> None:
    _, *turns = play_here("textcraft/3", 0)
    command = [sys.executable, str(ROOT / "examples/openenv_client.py"), server, "textcraft/3"]
    typed = "".join(f"{turn[0]}\n" for turn in turns)
    done = subprocess.run(command, input=typed, capture_output=True, text=True, timeout=120, check=True)
    assert all(turn[1] in done.stdout for turn in turns) and done.stdout.rstrip().endswith("reward 1.0")
