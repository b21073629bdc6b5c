"""Images of remote environments."""

from __future__ import annotations

import base64
import contextlib
import json
import warnings
import zlib
from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import httpx
import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentgym_envs import make_vec
from agentgym_envs.core import text_env
from agentgym_envs.errors import EnvError, UsageError
from agentgym_envs.hosting import RemoteEnv, WorkerPool
from agentgym_envs.hosting.images import MAX_BYTES, image_from_json, image_to_json
from agentgym_envs.http.openapi import ENDPOINTS
from agentgym_envs.http.run import background_server

BABY, CRAFT = "AgentGym/BabyAI-v0", "AgentGym/TextCraft-v0"
TASK = {"task": "babyai/GoToLocal/3"}
MODES = ["ansi", "rgb_array", "svg"]


def packed(data: bytes) -> str:
    return base64.b64encode(zlib.compress(data)).decode()


@given(st.integers(1, 9), st.integers(1, 9), st.data())
def test_a_picture_is_unchanged_by_json(height: int, width: int, data: st.DataObject) -> None:
    size = 3 * height * width
    pixels = data.draw(st.binary(min_size=size, max_size=size))
    image = np.frombuffer(pixels, np.uint8).reshape(height, width, 3)
    back = image_from_json(json.loads(json.dumps(image_to_json(image))))
    assert back.dtype == np.uint8 and np.array_equal(back, image)
    back[0, 0, 0] = 7  # the array is writable, as a local one


def test_a_slice_of_an_array_is_unchanged_by_json() -> None:
    part = np.arange(10 * 10 * 3, dtype=np.uint8).reshape(10, 10, 3)[::2, ::-3]
    assert np.array_equal(image_from_json(image_to_json(part)), part)


@pytest.mark.parametrize("text", [None, "", "a map", '{"shape": [1, 1, 3]}'])
def test_values_other_than_arrays_are_unchanged(text: str | None) -> None:
    assert image_to_json(text) == image_from_json(text) == text


@pytest.mark.parametrize(
    "array",
    [
        np.zeros((2, 2, 3)),
        np.zeros((2, 2), np.uint8),
        np.zeros((2, 2, 4), np.uint8),
        np.zeros((0, 2, 3), np.uint8),
        np.broadcast_to(np.uint8(0), (2**13, 2**13, 3)),
    ],
    ids=lambda array: f"{array.shape} {array.dtype}",
)
def test_other_arrays_are_refused(array: Any) -> None:
    with pytest.raises(EnvError, match=r"only \(height, width, 3\) of uint8"):
        image_to_json(array)


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"shape": [1, 1, 3]},
        {"zlib": packed(b"123")},
        {"shape": [1, 1, 3], "zlib": 5},
        {"shape": [1, 1, 3], "zlib": "no base64"},
        {"shape": [1, 1, 3], "zlib": "é"},
        {"shape": [1, 1, 3], "zlib": ""},
        {"shape": [1, 1, 3], "zlib": base64.b64encode(b"no zlib").decode()},
        {"shape": [1, 1, 3], "zlib": packed(b"12")},
        {"shape": [1, 1, 3], "zlib": packed(b"1234")},
        {"shape": [1, 1, 3], "zlib": base64.b64encode(zlib.compress(b"123")[:-2]).decode()},
        {"shape": [1, 1, 3], "zlib": packed(bytes(10**7))},
        {"shape": [1, 3], "zlib": packed(b"123")},
        {"shape": [3, 1, 1], "zlib": packed(b"123")},
        {"shape": [-1, -1, 3], "zlib": packed(b"123")},
        {"shape": [1.0, 1, 3], "zlib": packed(b"123")},
        {"shape": [True, True, 3], "zlib": packed(b"123")},
        {"shape": [MAX_BYTES // 3, 2, 3], "zlib": packed(b"123")},
        {"shape": "113", "zlib": packed(b"123")},
    ],
)
def test_objects_other_than_pictures_are_refused(data: dict[str, Any]) -> None:
    with pytest.raises(EnvError, match="this is not an image"):
        image_from_json(data)


@pytest.fixture(scope="module", params=["server", pytest.param("worker", marks=pytest.mark.slow)])
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    with background_server([BABY, CRAFT], isolate=request.param == "worker") as address:
        yield address


def check_same_images(env: gym.Env[str, str], remote: gym.Env[str, str]) -> None:
    """Compare images before the first reset, after it and after some steps."""
    for action in (None, "", "turn left", "move forward", "move forward"):
        assert_same(env.render(), remote.render())
        if action == "":
            env.reset(seed=0, options=TASK)
            remote.reset(seed=0, options=TASK)
        elif action:
            env.step(action)
            remote.step(action)
    assert_same(env.render(), remote.render())
    env.close()
    remote.close()


def assert_same(one: Any, other: Any) -> None:
    assert type(one) is type(other)
    if isinstance(one, np.ndarray):
        assert (one.shape, one.dtype, one.tobytes()) == (other.shape, other.dtype, other.tobytes())
        assert one.flags.writeable and other.flags.writeable
    else:
        assert one == other


@pytest.mark.parametrize("mode", MODES)
def test_an_environment_on_a_server_renders_the_same(mode: str, url: str) -> None:
    check_same_images(gym.make(BABY, render_mode=mode), gym.make(BABY, render_mode=mode, base_url=url))


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_an_environment_in_a_worker_renders_the_same(mode: str) -> None:
    with contextlib.closing(WorkerPool(1)) as pool:
        check_same_images(gym.make(BABY, render_mode=mode), RemoteEnv(BABY, pool, {"render_mode": mode}))


def test_a_remote_environment_has_the_render_modes_of_its_scenario(url: str) -> None:
    for env_id in (BABY, CRAFT):
        with gym.make(env_id, base_url=url) as remote:
            assert remote.unwrapped.metadata == text_env(gym.make(env_id)).metadata
            assert remote.render() is None
    with pytest.raises(UsageError) as here, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gym.make(CRAFT, render_mode="rgb_array")
    with pytest.raises(UsageError) as there, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gym.make(CRAFT, render_mode="rgb_array", base_url=url)
    assert str(here.value) == str(there.value)


def test_render_replies_have_the_described_forms(url: str) -> None:
    form = next(row.reply for row in ENDPOINTS if row.path.endswith("/render"))
    for mode, kind in ((None, type(None)), ("ansi", str), ("svg", str), ("rgb_array", dict)):
        options = {} if mode is None else {"render_mode": mode}
        made = httpx.post(f"{url}/v2/sessions", json={"env": BABY, "options": options}, trust_env=False).json()
        assert made["description"]["render_modes"] == MODES
        reply = httpx.post(f"{url}/v2/sessions/{made['session']}/render", json={}, trust_env=False).json()
        assert type(msgspec.convert(reply, form)) is kind


@pytest.mark.slow
def test_a_vector_of_remote_environments_renders() -> None:
    with contextlib.closing(make_vec(BABY, 2, backend="process", render_mode="rgb_array")) as vector:
        vector.reset(seed=0)
        assert [image.ndim for image in vector.render()] == [3, 3]
