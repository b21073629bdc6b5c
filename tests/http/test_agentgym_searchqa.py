"""AgentGym's searchqa protocol with the real environment, the indices of the published sets, and our client."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import httpx
import pytest

from agentgym_envs.core import text_env
from agentgym_envs.http.dialects.agentgym.server import _match, agentgym_routes
from agentgym_envs.http.run import background_server
from agentgym_envs.search.retrieval.base import Passage
from agentgym_envs.search.retrieval.index import build_index
from tests.search.published import write_sets

RETRY = "AgentGym/SearchRetry-v0"
PASSAGES = (
    Passage("p0", '"Bamboogle"\nBamboogle 1 is a question </information> of many.'),
    Passage("p1", '"Wombat"\nWombats are not bamboo.'),
)
WRONG = "Sorry, your answer is incorrect. Please try again."
RIGHT = "Congratulations! You have answered the question correctly."


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("searchqa")
    build_index(PASSAGES, folder / "index", corpus="tiny")
    where = {"index": str(folder / "index"), "questions": str(write_sets(folder, rows=3))}
    with background_server([RETRY], mounts=[agentgym_routes], env_args=where) as address:
        yield f"{address}/agentgym/searchqa"


class Client:
    """A client that sends the requests of AgentGym's client."""

    def __init__(self, url: str, index: int) -> None:
        self.http = httpx.Client(base_url=url, trust_env=False)
        self.number = self.post("create", id=index)

    def post(self, path: str, status: int = 200, **body: Any) -> Any:
        reply = self.http.post(f"/{path}", json=body)
        assert reply.status_code == status, reply.text
        return reply.json()

    def step(self, action: str) -> tuple[str, float, bool]:
        reply = self.post("step", env_idx=self.number, action=action)
        assert set(reply) == {"observation", "reward", "done", "info"} and reply["info"] is None
        assert type(reply["reward"]) is float
        return reply["observation"], reply["reward"], reply["done"]


@pytest.fixture
def client(url: str) -> Iterator[Client]:
    talker = Client(url, 51_589)
    yield talker
    talker.http.close()


def test_an_episode_continues_until_the_answer_is_right(client: Client) -> None:
    prompt = client.http.get("/observation", params={"env_idx": client.number}).json()
    assert prompt.endswith("\n\n Question: Which one is bamboogle/test.jsonl 1?")
    found = (
        '<information>Doc 1(Title: "Bamboogle") Bamboogle 1 is a question &lt;/information> of many.</information>',
        0.0,
        False,
    )
    assert client.step("<think>Hm.</think><search> bamboogle </search>") == found
    assert client.step("<answer>Rome</answer>") == (WRONG, 0.0, False)
    observation, *rest = client.step("What?")
    assert observation.startswith("Your previous action is invalid. If you want to search, ") and rest == [0.0, False]
    assert observation.endswith("<answer> and </answer>. Please try again.")
    assert client.step("<think><answer>bamboogle 1</answer></think>")[0] == observation
    assert client.step("<search></search>")[0] == observation
    assert client.step("<answer>x</answer><answer>bamboogle 1</answer>") == (WRONG, 0.0, False)
    assert client.step("<answer> The Bamboogle 1. </answer>") == (RIGHT, 1.0, True)
    assert client.http.get("/observation", params={"env_idx": client.number}).json() == prompt
    assert "error" in client.post("step", status=500, env_idx=client.number, action="<answer>a</answer>")
    again = client.post("reset", env_idx=client.number, id=130_882)
    assert again == prompt.replace("bamboogle/test", "hotpotqa/train")
    assert client.step("<answer>ÖNE</answer>") == (RIGHT, 1.0, True)


def test_an_index_without_a_question_raises_with_its_file_name(client: Client) -> None:
    missing = client.post("reset", status=500, env_idx=client.number, id=3)
    assert "row 4 of" in missing["error"] and "nq/test.jsonl" in missing["error"]
    assert "no index 221328" in client.post("create", status=500, id=221_328)["error"]
    assert "no index -1" in client.post("reset", status=500, env_idx=client.number, id=-1)["error"]


def test_the_variant_that_allows_several_answers_is_preferred() -> None:
    assert _match(["AgentGym/Search-v0", RETRY]) == _match([RETRY]) == {"searchqa": RETRY}
    assert _match(["AgentGym/Search-v0"]) == {}
    both = {"textcraft": "AgentGym/TextCraft-v0", "searchqa": RETRY}
    assert _match(["AgentGym/TextCraft-v0", RETRY, "AgentGym/TextCraft-v1"]) == both


def test_our_client_plays_the_same_episode_over_the_dialect(url: str) -> None:
    with contextlib.closing(text_env(gym.make(RETRY, base_url=url, dialect="agentgym"))) as env:
        observation, info = env.reset(options={"task": "searchqa-agentgym/51589"})
        assert observation.endswith("Question: Which one is bamboogle/test.jsonl 1?")
        assert env.instructions.startswith("Think first")
        steps = [env.step(action) for action in ("nothing", "<answer>no</answer>", "<answer>bamboogle 1</answer>")]
    assert [(reward, terminated) for _, reward, terminated, _, _ in steps] == [(0.0, False), (0.0, False), (1.0, True)]
    assert steps[0][4]["invalid_action"].startswith("Your previous action is invalid.")
    assert steps[2][4]["success"] and info["task_id"] == "searchqa-agentgym/51589"
    json.dumps(steps)


@pytest.mark.slow
def test_the_embedded_questions_have_no_index() -> None:
    with (
        background_server([RETRY], mounts=[agentgym_routes]) as address,
        httpx.Client(base_url=address, trust_env=False) as http,
    ):
        reply = http.post("/create", json={"id": 5})
    assert reply.status_code == 500 and "questions=" in reply.json()["error"]
