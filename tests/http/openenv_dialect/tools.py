"""Shared requests and checks of the tests of the OpenEnv dialect."""

import contextlib
import importlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import httpx
from websockets.sync.client import ClientConnection, connect

from agentgym_envs.core import text_env
from tests.waiting import SECONDS, until

TEXTCRAFT = "AgentGym/TextCraft-v0"
COUNT = "Toy/Count-v0"
TRICKY = "Toy/Tricky-v0"
TASK = "count/3"
ROOT = Path(__file__).parents[3]


def part(name: str) -> Any:
    """Import a module of OpenEnv, which has no types."""
    return importlib.import_module(f"openenv.{name}")


def base(url: str, env_id: str) -> str:
    return f"{url}/openenv/{env_id}"


@contextlib.contextmanager
def raw(url: str, **options: Any) -> Iterator[ClientConnection]:
    with connect(url.replace("http", "ws", 1) + "/ws", proxy=None, **options) as websocket:
        yield websocket


def ask(websocket: ClientConnection, kind: str, **data: Any) -> dict[str, Any]:
    return ask_text(websocket, json.dumps({"type": kind, "data": data} if data else {"type": kind}))


def ask_text(websocket: ClientConnection, message: str | bytes) -> dict[str, Any]:
    websocket.send(message)
    reply: dict[str, Any] = json.loads(websocket.recv(SECONDS))
    assert set(reply) == {"type", "data"}
    return reply


def held(url: str) -> int:
    """The number of sessions of the server."""
    count: int = httpx.get(f"{url}/health").json()["sessions"]
    return count


def wait_until_held(url: str, count: int) -> None:
    until(lambda: held(url) == count)


def play_here(task: str, seed: int) -> list[tuple[Any, ...]]:
    """Play invalid actions and then the solution in a local environment. Returns the actions and the results."""
    env = gym.make(TEXTCRAFT)
    seen: list[tuple[Any, ...]] = [("", *env.reset(seed=seed, options={"task": task}))]
    for action in ("what?", *text_env(env).oracle()):
        seen.append((action, *env.step(action)))
    env.close()
    return seen


def same(result: Any, observation: str, reward: float | None, terminated: bool, truncated: bool, info: Any) -> None:
    """Check that a result of OpenEnv's client equals that of a local environment."""
    metadata = {**json.loads(json.dumps(info)), "terminated": terminated, "truncated": truncated}
    assert result.observation["text"] == observation
    assert (result.reward, result.done) == (reward, terminated or truncated)
    assert result.metadata == metadata
    # Some clients show a model the whole observation, so it has no hint while the episode runs.
    assert set(result.observation) - {"system_prompt"} == ({"text", "metadata"} if result.done else {"text"})
    assert result.observation.get("metadata", metadata) == metadata


def check_episode(client: Any, task: str, seed: int) -> None:
    (_, observation, info), *turns = play_here(task, seed)
    same(client.reset(seed=seed, task=task), observation, None, False, False, info)
    for action, observation, reward, terminated, truncated, info in turns:
        result = client.step({"message": action})
        same(result, observation, reward, terminated, truncated, info)
    assert result.done and result.metadata["success"]
    assert client.state()["step_count"] == len(turns)
