"""AgentGym's BabyAI protocol with the real environment: indices, scores, pictures, and our client."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Iterator

import gymnasium as gym
import httpx
import numpy as np
import pytest

from agentgym_envs.babyai.env import BabyAIEnv
from agentgym_envs.babyai.levels import AGENTGYM_LEVELS
from agentgym_envs.http.dialects.agentgym.server import agentgym_routes
from agentgym_envs.http.run import background_server

BABYAI = "AgentGym/BabyAI-v0"


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with background_server([BABYAI], mounts=[agentgym_routes]) as address:
        yield f"{address}/agentgym/babyai"


@pytest.mark.parametrize("index", [0, 3, 40 * 12 + 7, 40 * 3 + 25])
def test_an_index_is_the_same_episode_as_in_agentgym(url: str, index: int) -> None:
    env = BabyAIEnv()
    begun, _ = env.reset(seed=0, options={"task": f"babyai/{AGENTGYM_LEVELS[index % 40]}/{index // 40}"})
    with httpx.Client(base_url=url, trust_env=False) as client:
        number = client.post("/create", json={}).json()["id"]
        reply = client.post("/reset", json={"id": number, "data_idx": index}).json()
        assert reply == {"observation": begun, "reward": 0.0, "score": 0.0, "done": False, "deleted": False}
        for command in list(env.oracle()):
            observation, reward, terminated, _, info = env.step(command)
            reply = client.post("/step", json={"id": number, "action": command}).json()
            assert reply == {"observation": observation, "reward": reward, "score": info["score"], "done": terminated}
        assert terminated and 0 < reply["score"] <= 1
        assert "has finished" in client.post("/step", json={"id": number, "action": "turn left"}).json()["error"]


def test_an_index_below_zero_is_an_error(url: str) -> None:
    with httpx.Client(base_url=url, trust_env=False) as client:
        number = client.post("/create", json={}).json()["id"]
        assert "from 0" in client.post("/reset", json={"id": number, "data_idx": -1}).json()["error"]


def test_render_returns_the_picture_as_png(url: str) -> None:
    env = BabyAIEnv(render_mode="rgb_array")
    env.reset(seed=0, options={"task": "babyai/GoToRedBall/2"})
    with httpx.Client(base_url=url, trust_env=False) as client:
        number = client.post("/create", json={}).json()["id"]
        client.post("/reset", json={"id": number, "data_idx": 81})
        head, _, data = client.post("/render", json={"id": number}).json().partition(",")
    assert head == "data:image/png;base64"
    assert np.array_equal(pixels(base64.b64decode(data)), env.render())


def pixels(png: bytes) -> np.ndarray:
    """Decode a PNG file without filters, with colours of eight bits."""
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    chunks, offset = {}, 8
    while offset < len(png):
        (length,), kind = struct.unpack(">I", png[offset : offset + 4]), png[offset + 4 : offset + 8]
        data = png[offset + 8 : offset + 8 + length]
        assert struct.unpack(">I", png[offset + 8 + length : offset + 12 + length])[0] == zlib.crc32(kind + data)
        chunks[kind] = data
        offset += 12 + length
    width, height, *kind_of = struct.unpack(">2I5B", chunks[b"IHDR"])
    assert kind_of == [8, 2, 0, 0, 0]
    rows = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(height, 1 + 3 * width)
    assert not rows[:, 0].any()
    return rows[:, 1:].reshape(height, width, 3)


def test_our_client_plays_over_the_dialect(url: str) -> None:
    local = BabyAIEnv()
    local.reset(seed=0, options={"task": "babyai/PickupLoc/1"})
    index = 40 + AGENTGYM_LEVELS.index("PickupLoc")
    env = gym.make(BABYAI, base_url=url, dialect="agentgym")
    try:
        env.reset(options={"task": f"babyai-agentgym/{index}"})
        for command in list(local.oracle()):
            *_, terminated, _, info = env.step(command)
        assert terminated and info["success"]
    finally:
        env.close()
