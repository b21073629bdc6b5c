"""AgentGym's SciWorld protocol with the real environment: its indices, its points, its limit of moves."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import gymnasium as gym
import httpx
import pytest

from agentgym_envs.http.dialects.agentgym.server import agentgym_routes
from agentgym_envs.http.run import background_server
from agentgym_envs.sciworld.env import SciWorldEnv

pytestmark = pytest.mark.slow

SCIWORLD = "AgentGym/SciWorld-v0"
THING, INDEX = "sciworld/find-non-living-thing/0", 3236
GOLD = ("open door to kitchen", "go to kitchen", "focus on cupboard", "move cupboard to red box")


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with background_server([SCIWORLD], mounts=[agentgym_routes]) as address:
        yield f"{address}/agentgym"


class Client:
    """An environment of a server, as AgentGym's client uses it."""

    def __init__(self, http: httpx.Client) -> None:
        self.http, self.number = http, http.post("/create").json()["id"]

    def post(self, path: str, **body: Any) -> Any:
        return self.http.post(path, json={"id": self.number, **body}).json()

    def get(self, path: str) -> Any:
        return self.http.get(path, params={"id": self.number}).json()


@contextmanager
def client_of(base: str) -> Iterator[Client]:
    with httpx.Client(base_url=base, trust_env=False, timeout=60) as http:
        client = Client(http)
        yield client
        assert client.post("/close") is True


@pytest.fixture
def client(url: str) -> Iterator[Client]:
    with client_of(f"{url}/sciworld") as made:
        yield made


def test_an_index_is_the_same_episode_here_and_there(client: Client) -> None:
    with closing(SciWorldEnv()) as env:
        begun, _ = env.reset(seed=0, options={"task": THING})
        told = client.post("/reset", data_idx=INDEX)
        goal = env.tasks.get(THING).goal
        assert told["task_description"] + "\n" + told["observation"] == begun and told["task_description"] == goal
        assert (told["task_name"], told["var_num"]) == ("find-non-living-thing", 0)
        assert (told["reward"], told["score"], told["done"], told["deleted"]) == (0, 0, False, False)
        points = 0
        for command in GOLD:
            observation, _, terminated, _, info = env.step(command)
            told, before, points = client.post("/step", action=command), points, round(100 * info["score"])
            assert told == {
                "observation": observation,
                "reward": points - before,
                "score": points,
                "done": terminated,
            }
        assert told["done"] and told["score"] == 100
    assert "has finished" in client.post("/step", action="look around")["error"]


@pytest.mark.parametrize(
    ("name", "index", "task", "variation"),
    [
        ("sciworld", 0, "boil", 0),
        ("sciworld", 1095, "measure-melting-point-known-substance", 435),
        ("sciworld", 1096, "measure-melting-point-unknown-substance", 0),
        ("sciworld", 4638, "identify-life-stages-2", 9),
        ("sciworld", -1, "identify-life-stages-2", 9),
        ("sciworld-4339", 1095, "measure-melting-point-known-substance", 435),
        ("sciworld-4339", 1096, "power-component", 0),
        ("sciworld-4339", 4338, "identify-life-stages-2", 9),
    ],
)
def test_both_numberings(url: str, name: str, index: int, task: str, variation: int) -> None:
    with client_of(f"{url}/{name}") as client:
        told = client.post("/reset", data_idx=index)
        assert (told["task_name"], told["var_num"]) == (task, variation)
        with closing(SciWorldEnv()) as env:
            assert told["task_description"] == env.tasks.get(f"sciworld/{task}/{variation}").goal
        size = 4639 if name == "sciworld" else 4339
        assert client.post("/reset", data_idx=size) == {"error": "list index out of range"}


def test_a_wrong_focus_costs_a_hundred(client: Client) -> None:
    client.post("/reset", data_idx=4490 + 5)
    for command in ("open door to hallway", "go to hallway", "open door to greenhouse", "go to greenhouse"):
        client.post("/step", action=command)
    for command in ("open door to outside", "go to outside", "focus on crocodile"):
        points = client.post("/step", action=command)["score"]
    assert points > 40
    lost = client.post("/step", action="focus on air")
    assert (lost["score"], lost["reward"], lost["done"]) == (-100, -100 - points, True)


def test_more_than_a_hundred_moves_end_it(client: Client) -> None:
    client.post("/reset", data_idx=INDEX)
    for _ in range(9):
        assert client.post("/step", action="wait")["done"] is False
    assert client.post("/step", action="inventory")["done"] is False
    assert client.post("/step", action="look at air")["done"] is False
    assert client.post("/step", action="nonsense") == {
        "observation": "No known action matches that input.",
        "reward": 0,
        "score": 0,
        "done": False,
    }
    last = client.post("/step", action="look at air")
    assert (last["done"], last["score"]) == (True, 0)


def test_what_else_is_told(client: Client) -> None:
    begun = client.post("/reset", data_idx=INDEX)
    assert client.get("/task_description") == {"task_description": begun["task_description"]}
    assert client.get("/observation") == begun["observation"] and client.get("/detail") == begun
    hint = client.get("/action_hint")
    assert sorted(hint) == ["possible_actions", "possible_objects"]
    assert "focus on OBJ" in hint["possible_actions"] and "door to kitchen" in hint["possible_objects"]
    goals = client.get("/goals")["goals"]
    client.post("/step", action=GOLD[0])
    client.post("/step", action=GOLD[1])
    assert client.get("/goals")["goals"] != goals
    assert "cupboard" in client.get("/action_hint")["possible_objects"]
    assert "does not report object_tree" in client.get("/object_tree")["error"]
    assert "state" in client.get("/state")["error"] and "step_visual" in client.post("/step_visual")["error"]


def test_our_client_plays_on_the_dialect(url: str) -> None:
    env = gym.make(SCIWORLD, base_url=f"{url}/sciworld", dialect="agentgym")
    try:
        observation, info = env.reset(options={"task": f"sciworld-agentgym/{INDEX}"})
        assert "find a(n) non-living thing" in observation
        total = 0.0
        for command in GOLD:
            _, reward, terminated, _, info = env.step(command)
            total += float(reward)
        assert terminated and info["success"] and info["score"] == pytest.approx(total) == pytest.approx(1.0)
    finally:
        env.close()
