"""Vision models: observations with images, and the parts of messages that a chat server gets."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import gymnasium as gym
import httpx
import numpy as np
import pytest

from agentgym_envs import read_trajectories
from agentgym_envs.cli import main
from agentgym_envs.errors import UsageError
from agentgym_envs.hosting.images import to_png
from agentgym_envs.image_files import from_data_url, image_name, read_image
from agentgym_envs.image_observations import ImageObservations, decode
from agentgym_envs.rollout import ChatModel, ChatPolicy, EpisodeSpec, Limits, make_agent, play_agent, play_text
from agentgym_envs.trajectory import Trajectory
from tests.toy import CountEnv

SEEING = "Toy/Seeing-v0"
ROOM = Limits(max_turns=9)


class SeeingEnv(ImageObservations, CountEnv):
    """Counts, and shows the number of the turn as the brightness of an image."""

    image_size = (4, 6)

    def _info(self, details: Mapping[str, Any]) -> dict[str, Any]:
        image = to_png(np.full((4, 6, 3), self._turn, np.uint8))
        return {**super()._info(details), "screenshot": image}


class Server:
    """A chat server that answers "up" and keeps the bodies of the requests."""

    def __init__(self) -> None:
        self.bodies: list[dict[str, Any]] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, json=self.answer(json.loads(request.content)))

    def answer(self, body: dict[str, Any]) -> dict[str, Any]:
        self.bodies.append(body)
        function = {"name": "act", "arguments": '{"action": "up"}'}
        call = [{"id": "1", "type": "function", "function": function}]
        message = {"content": None, "tool_calls": call} if "tools" in body else {"content": "up"}
        return {"choices": [{"message": {"role": "assistant", **message}, "finish_reason": "stop"}]}


def brightness(part: dict[str, Any]) -> int:
    """The turn that an image part shows."""
    assert part["type"] == "image_url"
    return int(decode(from_data_url(part["image_url"]["url"]))[0, 0, 0])


def images_in(body: dict[str, Any]) -> list[tuple[int, int]]:
    """The image parts of a request: the number of the message, and the turn that the image shows."""
    parts = [
        (n, part) for n, m in enumerate(body["messages"]) if isinstance(m["content"], list) for part in m["content"]
    ]
    return [(number, brightness(part)) for number, part in parts if part["type"] != "text"]


def play(env: gym.Env[str, str], server: Server, **options: Any) -> Trajectory:
    policy = ChatPolicy("m", "http://x/v1", transport=httpx.MockTransport(server), **options)
    return asyncio.run(play_text(env, policy, EpisodeSpec("count/3"), limits=ROOM))


def test_newest_image_is_a_part_of_its_message() -> None:
    server = Server()
    trajectory = play(SeeingEnv(), server)
    assert trajectory.success and len(server.bodies) == 3
    assert [images_in(body) for body in server.bodies] == [[(1, 0)], [(3, 1)], [(5, 2)]]
    last = server.bodies[-1]["messages"]
    assert last[5]["content"][0] == {"type": "text", "text": trajectory.turns[2].observation}
    assert last[1] == {"role": "user", "content": trajectory.turns[0].observation}
    assert [type(turn.info["screenshot"]) for turn in trajectory.turns] == [bytes] * 3


def test_earlier_images_are_sent_on_request() -> None:
    server = Server()
    play(SeeingEnv(), server, max_images=2)
    assert [images_in(body) for body in server.bodies] == [[(1, 0)], [(1, 0), (3, 1)], [(3, 1), (5, 2)]]


def test_image_of_a_tool_result_follows_in_a_message_of_the_user() -> None:
    server = Server()
    assert play(SeeingEnv(grammar="tools"), server).success
    messages = server.bodies[-1]["messages"]
    assert [m["role"] for m in messages[-2:]] == ["tool", "user"]
    assert images_in(server.bodies[-1]) == [(len(messages) - 1, 2)]


def test_text_environments_send_plain_messages() -> None:
    server = Server()
    play(CountEnv(), server)
    assert all(isinstance(m["content"], str) and "image" not in m for body in server.bodies for m in body["messages"])


def test_agents_refuse_images() -> None:
    model = ChatModel("m", "http://x/v1", transport=httpx.MockTransport(Server()))
    with pytest.raises(UsageError, match=r"reads only text.*--policy openai:MODEL"):
        asyncio.run(play_agent(SeeingEnv(), make_agent("act"), model, EpisodeSpec("count/3"), limits=ROOM))


@pytest.fixture
def endpoint() -> Iterator[tuple[str, Server]]:
    """A chat server on this machine."""
    server = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            reply = json.dumps(server.answer(body)).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(reply)))
            self.end_headers()
            self.wfile.write(reply)

        def log_message(self, format: str, *args: Any) -> None:
            """Print nothing."""

    listener = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=listener.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{listener.server_address[1]}/v1", server
    listener.shutdown()
    listener.server_close()


def test_eval_command_sends_images_and_records_files(tmp_path: Path, endpoint: tuple[str, Server]) -> None:
    gym.register(SEEING, f"{__name__}:SeeingEnv", disable_env_checker=True, order_enforce=False)
    url, server = endpoint
    words = ["eval", SEEING, "--policy", "openai:m", "--base-url", url, "--tasks", "2", "--split", "train"]
    old = tmp_path / "run" / image_name(to_png(np.full((4, 6, 3), 99, np.uint8)))
    old.parent.mkdir(parents=True)
    old.write_bytes(b"of the run that is replaced")
    try:
        assert main([*words, "--max-images", "2", "--overwrite", "--out", str(tmp_path / "run")]) == 0
    finally:
        del gym.registry[SEEING]
    assert {len(images_in(body)) for body in server.bodies} <= {1, 2}
    for trajectory in read_trajectories(tmp_path / "run" / "trajectories.jsonl"):
        names = [trajectory.meta["screenshot"], *(played.info["screenshot"] for played in trajectory.turns)]
        for turn, name in enumerate(names):
            image = read_image(tmp_path / "run", name)
            assert image is not None and decode(image)[0, 0, 0] == turn
    assert not old.exists()
    settings = json.loads((tmp_path / "run" / "eval.json").read_text())["settings"]
    assert settings["max_images"] == 2
