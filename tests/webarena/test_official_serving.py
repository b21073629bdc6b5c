"""WebArena's tasks as AgentGym's client plays them, on the stub sites."""

import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from agentgym_envs.chat_judge import BASE_URL, MODEL
from agentgym_envs.http.dialects.agentgym.server import agentgym_routes
from agentgym_envs.http.run import background_server
from tests.webarena.stub_sites import Stubs
from tests.webarena.test_official_env import DATA

OFFICIAL = "AgentGym/WebArenaOfficial-v0"
FAILED = {"observation": "TimeoutError", "sites": "Error", "object": "Error"}


class Client:
    """One environment, used like AgentGym's client: it sends the model's whole message."""

    def __init__(self, http: httpx.Client) -> None:
        self.http = http
        self.number = self._read(http.post("/create"))["env_idx"]

    def reset(self, index: int) -> Any:
        return self._read(self.http.post("/reset", json={"env_idx": self.number, "seed": 0, "idx": index}))

    def step(self, message: str) -> Any:
        return self._read(self.http.post("/step", json={"env_idx": self.number, "action": message}))

    def observe(self) -> Any:
        return self._read(self.http.get("/observation", params={"env_idx": self.number}))

    def close(self) -> Any:
        return self._read(self.http.post("/close", json={"env_idx": self.number}))

    def _read(self, response: httpx.Response) -> Any:
        assert response.status_code == 200, response.text
        return response.json()


@pytest.fixture(scope="module")
def http() -> Iterator[httpx.Client]:
    stubs = Stubs()
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv(BASE_URL, raising=False)
        patch.delenv(MODEL, raising=False)
        arguments = {"tasks": str(DATA / "official_tasks.json"), "sites": stubs.urls}
        with (
            background_server([OFFICIAL], mounts=[agentgym_routes], env_args=arguments) as address,
            httpx.Client(base_url=address, trust_env=False, timeout=60) as client,
        ):
            yield client


def element(role: str, name: str, observation: str) -> str:
    found = re.search(rf"\[(\d+)\] {role} '{re.escape(name)}'", observation)
    assert found, observation
    return found[1]


@pytest.mark.slow
def test_an_episode_from_creation_to_close(http: httpx.Client) -> None:
    client = Client(http)
    begun = client.reset(2)
    observation = begun["observation"]
    assert (begun["sites"], begun["object"]) == (["shopping"], "Show me my order number 180.")
    assert observation.startswith("OBSERVATION:\nTab 0 (current): One Stop Market\n")
    assert observation.endswith("OBJECTIVE: Show me my order number 180.\nPREVIOUS ACTION: None")
    orders = element("link", "My Orders", observation)
    unread = client.step(f"click [{orders}]")
    assert "between triple backticks" in unread["observation"] and unread["reward"] == 0.0
    phrase = "In summary, the next action I will perform is"
    listed = client.step(f"Let's see. {phrase} ```click [{orders}]``` and then ```stop [180]```")
    assert listed["observation"].endswith(f"PREVIOUS ACTION: click [{orders}]") and not listed["terminated"]
    order = element("link", "View Order 180", listed["observation"])
    shown = client.step(f"{phrase} ```click [{order}]```")
    assert client.observe() == shown["observation"]
    done = client.step(f"{phrase} ```stop []```")
    assert (done["reward"], done["terminated"], done["truncated"]) == (1.0, True, False)
    assert client.reset(2)["observation"].startswith("OBSERVATION:\n")
    assert client.step("```stop [180]```")["reward"] == 0.0
    assert client.close() == {"closed": "closed"}


@pytest.mark.slow
def test_an_unplayable_task_times_out_and_the_cause_is_logged(
    http: httpx.Client, caplog: pytest.LogCaptureFixture
) -> None:
    client = Client(http)
    causes = {
        8: f"needs a language model that judges its answer: set {BASE_URL}",
        12: "needs the address of 'map' and 'wikipedia': set WA_MAP",
        800: "there is no task 'webarena/800'",
        900: "there is no task 900; they go from 0 to 811",
    }
    for index, cause in causes.items():
        caplog.clear()
        assert client.reset(index) == FAILED
        assert f"AgentGym's webarena: no episode of index {index}: " in caplog.text and cause in caplog.text
    client.close()
