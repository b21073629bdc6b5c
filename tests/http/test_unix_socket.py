"""Servers on a Unix socket."""

import os
import pickle
import socket
import stat
from pathlib import Path

import gymnasium as gym
import httpx
import pytest

from agentgym_envs import make_vec
from agentgym_envs.errors import EnvError, UsageError
from agentgym_envs.http.address import parse_address
from agentgym_envs.http.client import remote_env
from agentgym_envs.http.dialects.agentgym.server import agentgym_routes
from agentgym_envs.http.run import background_server
from agentgym_envs.http.unix_socket import UnixListener, socket_path
from tests.http.tools import COUNT, TOYS

TEXTCRAFT = "AgentGym/TextCraft-v0"


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "s")


def test_a_client_plays_over_a_socket(path):
    with background_server(TOYS, host=f"unix:{path}", token="sesame") as url:
        assert url == f"unix:{path}" and stat.S_IMODE(os.stat(path).st_mode) == 0o600
        env = gym.make(COUNT, base_url=url, token="sesame")
        env.reset(seed=0, options={"task": "count/9"})
        assert env.step("up")[0] == "1"
        copy = pickle.loads(pickle.dumps(env.unwrapped))
        assert (copy.step("up")[0], env.step("up")[0]) == ("2", "2")
        vec = make_vec(COUNT, 3, base_url=[url], token="sesame")
        vec.reset(seed=0, options={"task": "count/9"})
        assert vec.step(["up"] * 3)[0] == ("1", "1", "1")
        with pytest.raises(UsageError, match="token"):
            gym.make(COUNT, base_url=url, token="wrong", connect_timeout=0)
        for each in (vec, copy, env):
            each.close()
        with httpx.Client(transport=httpx.HTTPTransport(uds=path)) as http:
            assert http.get("http://x/health").json()["sessions"] == 0
    assert not os.path.exists(path)


def test_the_dialect_of_agentgym_is_reached_over_sockets(tmp_path):
    paths = [f"unix:{tmp_path}/{name}" for name in "ab"]
    with (
        background_server([TEXTCRAFT], host=paths[0], mounts=[agentgym_routes]),
        background_server([TEXTCRAFT], host=paths[1], mounts=[agentgym_routes]),
    ):
        envs = [gym.make(TEXTCRAFT, base_url=paths, dialect="agentgym") for _ in range(2)]
        used = {env.unwrapped._address.url for env in envs}  # type: ignore[attr-defined]
        for env in envs:
            env.reset(seed=0)
            assert env.step("inventory")[0].startswith("Inventory")
            env.close()
    assert used == set(paths)


def test_without_a_server_the_error_names_the_socket(path):
    with pytest.raises(EnvError, match=f"unix:{path} cannot be reached"):
        gym.make(COUNT, base_url=f"unix:{path}", connect_timeout=0)


def test_the_file_of_a_killed_server_is_replaced(path):
    with socket.socket(socket.AF_UNIX) as killed:
        killed.bind(path)
    with background_server([COUNT], host=f"unix:{path}") as url:
        gym.make(COUNT, base_url=url).close()


def test_a_socket_in_use_is_refused_and_stays(path):
    with background_server([COUNT], host=f"unix:{path}") as url:
        with pytest.raises(EnvError, match="in use"):
            background_server([COUNT], host=url).__enter__()
        gym.make(COUNT, base_url=url).close()


def test_other_files_are_never_replaced(path):
    Path(path).write_text("precious")
    with pytest.raises(EnvError, match="no socket"):
        background_server([COUNT], host=f"unix:{path}").__enter__()
    assert Path(path).read_text() == "precious"


def test_a_listener_removes_only_its_own_file(path):
    first = UnixListener(path)
    os.unlink(path)
    second = UnixListener(path)
    first.close()
    assert os.path.exists(path)
    second.close()
    second.close()
    assert not os.path.exists(path)


@pytest.mark.parametrize(
    "text", ["unix:", "unix:relative", "unix://host/path", "unix:/", "unix:/a/", "unix:/" + "x" * 107, "unix:/\0"]
)
def test_invalid_sockets_are_refused(text):
    assert parse_address(text) is None
    with pytest.raises(UsageError, match="base_url"):
        remote_env(COUNT, base_url=text)
    with pytest.raises(UsageError, match="absolute path"):
        socket_path(text)


def test_both_ways_to_write_a_socket_are_read():
    assert socket_path("unix:/a/b") == socket_path("unix:///a/b") == "/a/b"
