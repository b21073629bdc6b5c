"""Task requests to a server with BabyAI: a world takes milliseconds, and many must not block other clients."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from agentgym_envs.babyai.tasks import BabyTasks
from agentgym_envs.http.run import background_server
from tests.http.tools import Api, error

BABYAI = "AgentGym/BabyAI-v0"


@pytest.fixture
def api() -> Iterator[Api]:
    with background_server([BABYAI]) as url:
        api = Api(url)
        with api.http:
            yield api


@pytest.mark.slow
def test_many_task_requests_do_not_block_the_server(api: Api) -> None:
    session, answers = api.create(BABYAI, levels="Unlock"), 0
    with ThreadPoolExecutor(1) as threads:
        taking = threads.submit(api.call, session, "sample", count=200, seed=4, seq=1)
        while not taking.done():
            answers += api.http.get("/health").status_code == 200
    assert answers >= 3, "it answered nobody meanwhile"
    tasks = BabyTasks(("Unlock",)).sample(3, seed=4)
    assert [row["id"] for row in taking.result().json()[:3]] == [task.id for task in tasks]


@pytest.mark.slow
def test_task_requests_respect_sequence_numbers(api: Api) -> None:
    session = api.create(BABYAI, levels="GoToObj")
    taken = api.call(session, "sample", count=3, seq=1)
    assert len(taken.json()) == 3
    assert api.call(session, "sample", count=3, seq=1).content == taken.content
    assert error(api.call(session, "sample", count=4, seq=1), 409) == "OutOfOrder"
    for _ in range(2):
        assert error(api.call(session, "sample", count=10_000, split="test", seq=2), 422) == "UsageError"
    assert api.call(session, "reset", seed=0, seq=3).status_code == 200
    assert error(api.call("nobody", "sample", count=1), 404) == "SessionLost"


@pytest.mark.slow
def test_a_remote_client_can_set_levels_actions_and_numbering(api: Api) -> None:
    session = api.create(BABYAI, levels=["GoToObj"], actions="primitive", numbering="stable")
    begun = api.call(session, "reset", seed=0).json()
    assert begun["task"]["data"]["level"] == "GoToObj" and "done" in begun["info"]["available_actions"]
    refused = {"levels": "Nowhere"}, {"levels": ["GoToObj"] * 10_000}, {"levels": [["GoToObj"]]}, {"actions": 1}
    for options in refused:
        assert error(api.http.post("/v2/sessions", json={"env": BABYAI, "options": options}), 422) == "UsageError"
