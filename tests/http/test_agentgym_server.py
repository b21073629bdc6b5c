"""AgentGym's protocols on our server, field by field.

The scenarios but TextCraft are played by a toy, since what is tested is the protocol.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import numpy as np
import psutil
import pytest

from agentgym_envs.core import TextEnv, Transition
from agentgym_envs.errors import EnvError, InvalidAction, UnknownTask, UsageError
from agentgym_envs.http.app import EnvServer, create_app
from agentgym_envs.http.dialects.agentgym import ids
from agentgym_envs.http.dialects.agentgym.scenarios import TextCraftServer
from agentgym_envs.http.dialects.agentgym.server import SessionTable, agentgym_mount, agentgym_routes
from agentgym_envs.http.run import background_server
from agentgym_envs.registration import register
from agentgym_envs.task import Task, TaskSet
from tests.waiting import SECONDS, until

pytestmark = pytest.mark.slow  # too slow for the fast run

TEXTCRAFT, TOY = "AgentGym/TextCraft-v0", "Toy/Anything-v0"


class AnyTasks(TaskSet):
    """A task set with every id."""

    name, version, groups, digest = "any", 1, ("any",), "0" * 64

    def get(self, task_id: str) -> Task:
        if task_id == "webarena/13":
            raise UnknownTask("no such task")
        return Task(task_id, "test", "any", f"do {task_id}", {"sites": ["shopping"]})

    def draw(self, key: int, *, split: str | None = None, groups: Sequence[str] | None = None) -> Task:
        return self.get("drawn")

    def sample(self, count: int | None = None, **chosen: Any) -> list[Task]:
        return [self.get("taken")]


class AnythingEnv(TextEnv):
    """A scripted environment: `gain <percent>`, `win <percent>`, `fail`, `crash`; `tell` fills the info."""

    tasks = AnyTasks()

    def _begin(self, task: Task, rng: np.random.Generator) -> str:
        if task.id.endswith("/7"):
            raise EnvError("no power")
        return f"{task.goal}\nA room."

    def _act(self, command: str) -> Transition:
        match command.split():
            case ["gain", percent]:
                return Transition("Well done.", int(percent) / 100)
            case ["win", percent]:
                return Transition("Won.", int(percent) / 100, True, success=True)
            case ["fail"]:
                return Transition("Wrong.", -self._score, True, success=False)
            case ["crash"]:
                raise EnvError("the power went")
            case ["tell"]:
                return Transition(
                    "Told.", info={"possible_actions": ["look"], "possible_objects": [], "goal_progress": "none"}
                )
        raise InvalidAction(f"What is {command}?")


register(TOY, f"{__name__}:AnythingEnv")


class Client:
    """A client that sends the requests of AgentGym's clients, to an address with `/create` and so on."""

    def __init__(self, base: str) -> None:
        self.base, self.http = base, httpx.Client(trust_env=False)

    def post(self, path: str, status: int = 200, **body: Any) -> Any:
        return self._read(self.http.post(f"{self.base}/{path}", json=body), status)

    def get(self, path: str, status: int = 200, **query: Any) -> Any:
        return self._read(self.http.get(f"{self.base}/{path}", params=query), status)

    def _read(self, response: httpx.Response, status: int) -> Any:
        assert response.status_code == status, response.text
        return response.json()


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    names = ["babyai", "sciworld", "sciworld-4339", "searchqa", "webarena"]
    mount = agentgym_mount({"textcraft": TEXTCRAFT, **dict.fromkeys(names, TOY)})
    with background_server([TEXTCRAFT, TOY], mounts=[mount]) as address:
        yield f"{address}/agentgym"


@pytest.fixture
def client(url: str, request: pytest.FixtureRequest) -> Iterator[Client]:
    """A client of the scenario with which the test's name begins."""
    scenario = request.node.originalname.removeprefix("test_").split("_")[0]
    talker = Client(f"{url}/{scenario}")
    with talker.http:
        yield talker


def same(got: Any, wanted: Any) -> bool:
    """Compare as JSON: 1 differs from true, and the order of fields is ignored."""
    return json.dumps(got, sort_keys=True) == json.dumps(wanted, sort_keys=True)


def test_textcraft_replies_as_agentgym(client: Client) -> None:
    assert client.get("") == "This is environment TextCraft."
    made = client.post("create", minecraft_dir="agentenv_textcraft/", commands=None, goal=None)
    number = made["id"]
    assert type(number) is int and sorted(made) == ["done", "id", "observation", "reward"]
    assert made["observation"].startswith("Crafting commands:\ncraft ")
    begun = client.post("reset", id=number, data_idx=1)
    observation = begun.pop("observation")
    assert same(begun, {"id": number, "done": False, "reward": 0}) and observation.endswith("Goal: craft acacia wood.")
    assert client.get("observation", id=number) == observation
    assert same(
        client.post("step", id=number, action="get 4 acacia log"),
        {"observation": "Got 4 acacia log", "reward": 0, "done": False},
    )
    won = {"observation": "Crafted 3 minecraft:acacia_wood", "reward": 1, "done": True}
    assert same(client.post("step", id=number, action="craft 3 acacia wood using 4 acacia log"), won)
    assert same(client.get("detail", id=number), {**won, "deleted": False})
    finished = {"error": f"The task with environment {number} has finished."}
    assert client.post("step", id=number, action="inventory") == finished
    assert client.post("reset", id=number)["observation"].endswith("Goal: craft acacia planks.")
    assert client.post("step", id=number, action="inventory")["observation"].endswith("not carrying anything.")
    assert client.post("close", id=number) is True
    assert client.post("close", id=number) is False
    assert client.post("step", id=number, action="inventory") == {"error": f"The id {number} is not valid."}
    assert client.get("observation", id=number) == {"error": f"The id {number} is not valid."}


def test_textcraft_numbers_its_environments_and_starts_with_that_index(client: Client) -> None:
    numbers = []
    for _ in range(3):
        made = client.post("create")
        begun = client.post("reset", id=made["id"], data_idx=made["id"])
        assert begun["observation"] == made["observation"]
        numbers.append(made["id"])
    assert numbers == [*range(numbers[0], numbers[0] + 3)]


def test_textcraft_environments_are_independent(client: Client) -> None:
    def play(index: int) -> list[Any]:
        number = client.post("create")["id"]
        seen = [client.post("reset", id=number, data_idx=index)["observation"]]
        seen += [client.post("step", id=number, action=f"get {n} coal")["observation"] for n in range(1, 8)]
        seen.append(client.post("step", id=number, action="inventory")["observation"])
        assert client.post("close", id=number) is True
        return seen

    alone = [play(index) for index in range(8)]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(play, range(8))) == alone
    assert alone[0][-1] == "Inventory: [coal] (28) "


def test_concurrent_steps_are_serialized() -> None:
    """In a worker, where an undone step is three calls."""
    with background_server([TEXTCRAFT], mounts=[agentgym_routes], isolate=True) as address:
        client = Client(address)
        with client.http:
            craft_at_once(client)


def craft_at_once(client: Client) -> None:
    number = client.post("create")["id"]
    client.post("step", id=number, action="get 64 oak logs")
    with ThreadPoolExecutor(8) as pool:
        actions = ["craft 4 oak plank using 1 oak logs", "craft 4 oak planks using 1 oak logs"] * 16
        replies = list(pool.map(lambda action: client.post("step", id=number, action=action)["observation"], actions))
    assert sum(reply == "Crafted 4 minecraft:oak_planks" for reply in replies) == 16
    held = client.post("step", id=number, action="inventory")["observation"]
    assert held == "Inventory: [oak logs] (48) [oak planks] (64) "


@pytest.mark.parametrize("body", [{}, {"id": "zero"}, {"id": True}, {"id": 1.5}, {"id": None}])
def test_textcraft_refuses_bodies_that_lack_a_field(client: Client, body: dict[str, Any]) -> None:
    for path in ("reset", "step", "close"):
        assert "'id'" in client.post(path, status=400, **body)["error"]["message"]
    assert client.get("observation", status=400, **({"id": "x"} if body else {}))
    made = client.post("create")
    assert "'action'" in client.post("step", status=400, id=made["id"], action=3)["error"]["message"]
    assert client._read(client.http.post(f"{client.base}/step", content=b"[1]"), 400)


def test_textcraft_survives_junk(client: Client) -> None:
    number, before = client.post("create")["id"], client.post("create")["id"]
    for action in (
        "\x00",
        "\ud800",
        "é漢🙂",
        "x" * 1_000_000,
        "get " + "9" * 5000 + " coal",
        "craft " * 1000 + "using 1",
    ):
        reply = client._read(
            client.http.post(f"{client.base}/step", content=json.dumps({"id": number, "action": action})), 200
        )
        assert "error" in reply or (reply["reward"], reply["done"]) == (0, False)
    for content, status in ((b'{"id": "\xff"}', 400), (b"[" * 100_000, 400), (b'{"id"', 400), (b"x" * 5 * 2**20, 413)):
        for path in ("create", "reset", "step", "close"):
            assert "Traceback" not in str(
                client._read(client.http.post(f"{client.base}/{path}", content=content), status)
            )
    for index in (10**300, -1, 544):
        assert "Goal: craft" in client.post("reset", id=number, data_idx=index)["observation"]
    assert client.post("close", id=10**300) is False
    assert client.post("create")["id"] == before + 1, "a refused creation was carried out"


def test_babyai_scores_are_sums_of_rewards(client: Client) -> None:
    assert client.get("") == "This is environment BabyAI."
    made = client.post("create")
    number = made["id"]
    assert same(made, {"id": number})
    nothing = {"observation": "Environment not initialized", "reward": 0, "score": 0, "done": False, "deleted": False}
    assert same(client.get("observation", id=number), nothing)
    assert "no episode" in client.post("step", id=number, action="gain 1")["error"]
    begun = client.post("reset", id=number, data_idx=81)
    goal = "do babyai/GoToRedBall/2"
    assert same(
        begun, {"observation": f"{goal}\nA room.", "reward": 0.0, "score": 0.0, "done": False, "deleted": False}
    )
    assert same(
        client.post("step", id=number, action="gain 25"),
        {"observation": "Well done.", "reward": 0.25, "score": 0.25, "done": False},
    )
    assert client.post("step", id=number, action="pickup ball")["reward"] == 0.0
    seen = client.get("observation", id=number)
    assert seen["observation"] == f"Your goal: {goal}\nWhat is pickup ball?" and seen["score"] == 0.25
    assert same(
        client.post("step", id=number, action="win 50"),
        {"observation": "Won.", "reward": 0.5, "score": 0.75, "done": True},
    )
    finished = {"error": f"The task with environment {number} has finished."}
    assert client.post("step", id=number, action="gain 1") == finished
    assert client.get("observation", id=number) == finished
    assert "render" in client.post("render", id=number)["error"]
    assert client.post("close", id=number) is True and client.post("close", id=number) is False


def test_sciworld_scores_are_points(client: Client) -> None:
    assert client.get("") == "This is environment ScienceWorld."
    number = client.post("create")["id"]
    assert "reset first" in client.get("observation", id=number)["error"]
    assert same(client.get("detail", id=number), {"deleted": False, "done": False})
    begun = client.post("reset", id=number, data_idx=1096)
    task = "measure-melting-point-unknown-substance"
    wanted = {
        "task_name": task,
        "var_num": 0,
        "task_description": f"do sciworld/{task}/0",
        "observation": "A room.",
        "reward": 0,
        "score": 0,
        "deleted": False,
        "done": False,
    }
    assert same(begun, wanted)
    assert client.get("observation", id=number) == "A room."
    one = client.post("step", id=number, action="gain 17")
    assert same(one, {"observation": "Well done.", "reward": 17, "score": 17, "done": False})
    assert same(client.get("detail", id=number), {**wanted, **one})
    two = client.post("step", id=number, action="gain 8")
    assert same(two, {"observation": "Well done.", "reward": 8, "score": 25, "done": False})
    assert "does not report possible_actions" in client.get("action_hint", id=number)["error"]
    client.post("step", id=number, action="tell")
    assert client.get("action_hint", id=number) == {"possible_actions": ["look"], "possible_objects": []}
    assert client.get("goals", id=number) == {"goals": "none"}
    assert client.get("task_description", id=number) == {"task_description": f"do sciworld/{task}/0"}
    assert "object_tree" in client.get("object_tree", id=number)["error"]
    assert "step_visual" in client.post("step_visual", id=number)["error"]
    lost = client.post("step", id=number, action="fail")
    assert same(lost, {"observation": "Wrong.", "reward": -125, "score": -100, "done": True})
    assert "has finished" in client.get("observation", id=number)["error"]
    client.post("reset", id=number, data_idx=-1)
    won = client.post("step", id=number, action="win 100")
    assert same(won, {"observation": "Won.", "reward": 100, "score": 100, "done": True})
    assert client.post("reset", id=number, data_idx=4639) == {"error": "list index out of range"}
    assert client.post("close", id=number) is True
    assert client.post("close", id=number)["error"]
    deleted = {"error": f"The task with environment {number} has been deleted."}
    assert client.post("step", id=number, action="gain 1") == deleted
    assert client.post("step", id=10**6, action="gain 1") == {"error": "The id 1000000 is not valid."}


def test_sciworld_serves_both_numberings(client: Client) -> None:
    published = Client(f"{client.base}-4339")
    with published.http:
        for talker, size in ((client, 4639), (published, 4339)):
            number = talker.post("create")["id"]
            last = talker.post("reset", id=number, data_idx=size - 1)
            assert (last["task_name"], last["var_num"]) == ("identify-life-stages-2", 9)
            assert "error" in talker.post("reset", id=number, data_idx=size)
        shifted = published.post("reset", id=number, data_idx=1096)
        assert (shifted["task_name"], shifted["var_num"]) == ("power-component", 0)


def test_searchqa_replies_plain_values(client: Client) -> None:
    assert client.get("") == "ok"
    number = client.post("create", id=51713)
    assert type(number) is int
    prompt = client.get("observation", env_idx=number)
    assert prompt.endswith("\n\n Question: do searchqa/51713") and "<search>" in prompt
    assert client.post("reset", env_idx=number, id=0) == prompt.replace("51713", "0")
    reply = client.post("step", env_idx=number, action="tell")
    assert same(reply, {"observation": "Told.", "reward": 0.0, "done": False, "info": None})
    assert client.get("observation", env_idx=number) == prompt.replace("51713", "0")
    won = {"observation": "Won.", "reward": 1.0, "done": True, "info": None}
    assert same(client.post("step", env_idx=number, action="win 100"), won)
    assert client.post("close", env_idx=number) is True
    assert client.post("close", env_idx=number) is False
    client.post("step", status=500, env_idx=number, action="win 100")
    client.get("observation", status=500, env_idx=number)
    client.post("create", status=500, id=221328)
    assert type(client.post("create")) is int


def test_webarena_replies_have_terminated_and_truncated(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    assert client.get("") == "ok"
    number = client.post("create")["env_idx"]
    begun = client.post("reset", env_idx=number, seed=0, idx=5)
    assert begun == {"observation": "do webarena/5\nA room.", "sites": ["shopping"], "object": "do webarena/5"}
    one = client.post("step", env_idx=number, action="In summary, ```click [7]```")
    assert one["info"]["invalid_action"] and sorted(one) == ["info", "observation", "reward", "terminated", "truncated"]
    assert (one["reward"], one["terminated"], one["truncated"]) == (0.0, False, False)
    assert client.get("observation", env_idx=number) == one["observation"]
    assert client.post("step", env_idx=number, action="win 100")["info"]["invalid_action"]
    won = client.post("step", env_idx=number, action="I am done.\n```\nwin 100\n```\nElse:\n```\nfail\n```")
    assert (won["reward"], won["terminated"]) == (1.0, True)
    failed = {"observation": "TimeoutError", "sites": "Error", "object": "Error"}
    causes = {7: "EnvError: no power", 13: "no such task", 812: "there is no task 812", -1: "there is no task -1"}
    for index, cause in causes.items():
        caplog.clear()
        assert client.post("reset", env_idx=number, seed=0, idx=index) == failed
        assert f"no episode of index {index}: {cause}" in caplog.text and "WARNING" in caplog.text
    assert client.post("close", env_idx=number) == {"closed": "closed"}
    assert "Error" in client.post("close", env_idx=number)["closed"]
    assert "error" in client.post("step", env_idx=number, action="x")


@pytest.mark.parametrize(
    ("scenario", "fields"), [("babyai", {"id": 0, "data_idx": 0}), ("sciworld", {"id": 0, "data_idx": 0})]
)
def test_an_infrastructure_error_is_an_error_and_never_a_reward(
    url: str, scenario: str, fields: dict[str, int]
) -> None:
    client = Client(f"{url}/{scenario}")
    with client.http:
        fields = {**fields, "id": client.post("create")["id"]}
        client.post("reset", **fields)
        assert client.post("step", id=fields["id"], action="crash") == {"error": "EnvError: the power went"}
        assert "has finished" in client.post("step", id=fields["id"], action="gain 1")["error"]
        bad = {**fields, "data_idx": 7 * 40 if scenario == "babyai" else 7}
        assert client.post("reset", **bad) == {"error": "EnvError: no power"}
        assert "error" in client.post("step", id=fields["id"], action="gain 1")
        assert "observation" in client.post("reset", **fields)
        assert client.post("step", id=fields["id"], action="gain 1")["done"] is False


def test_one_environment_is_served_at_the_root_too() -> None:
    with background_server([TEXTCRAFT], mounts=[agentgym_routes], max_sessions=2) as address:
        client = Client(address)
        with client.http:
            assert client.get("") == "This is environment TextCraft."
            assert client.post("create")["id"] == 0
            assert client.post("step", id=0, action="inventory")["reward"] == 0
            assert client.get("health")["sessions"] == 1
            client.base += "/agentgym/textcraft"
            assert client.post("create")["id"] == 1
            refused = client.http.post(f"{client.base}/create")
            assert refused.status_code == 429 and refused.headers["Retry-After"]
            client.post("close", id=0)
            assert client.post("create")["id"] == 2


def test_a_token_in_the_address_is_accepted() -> None:
    """AgentGym's clients use `requests`, which sends user and password of an address in this way."""
    requests = pytest.importorskip("requests")
    with background_server([TEXTCRAFT], mounts=[agentgym_routes], token="s3cret") as address:
        for base in (f"{address}/agentgym/textcraft", address):
            assert requests.post(f"{base}/create", timeout=SECONDS).status_code == 401
            let_in = base.replace("http://", "http://agentgym:s3cret@")
            assert type(requests.post(f"{let_in}/create", timeout=SECONDS).json()["id"]) is int


def test_an_unused_environment_expires() -> None:
    tables: list[SessionTable] = []

    def mount(server: EnvServer) -> list[Any]:
        tables.append(SessionTable(server, TextCraftServer(), TEXTCRAFT))
        return tables[0].routes("")

    with background_server([TEXTCRAFT], mounts=[mount], max_sessions=3, idle_seconds=1.5) as address:
        client = Client(address)
        with client.http:
            for _ in range(3):
                client.post("create")
            until(lambda: client.get("health")["sessions"] == 0)
            assert [client.post("create")["id"] for _ in range(2)] == [3, 4]
            assert len(tables[0]._sessions) == 2, "the table grows with every client that disconnects"
            assert client.post("step", id=0, action="inventory") == {"error": "The id 0 is not valid."}
            assert client.post("reset", id=1) == {"error": "The id 1 is not valid."}
            assert client.post("step", id=4, action="inventory")["done"] is False


def test_a_dead_worker_is_an_error() -> None:
    mine = psutil.Process()
    others = set(mine.children(recursive=True))
    with background_server([TEXTCRAFT], mounts=[agentgym_routes], isolate=True) as address:
        client = Client(address)
        with client.http:
            number = client.post("create")["id"]
            client.post("step", id=number, action="get 1 oak logs")
            refused = client.post("step", id=number, action="craft 4 Oak Planks using 1 oak logs")
            assert refused["observation"].startswith("Could not find a valid recipe")
            held = client.post("step", id=number, action="inventory")
            assert same(held, {"observation": "Inventory: [oak logs] (1) ", "reward": 0, "done": False})
            for worker in set(mine.children(recursive=True)) - others:
                worker.kill()
            assert "error" in client.post("step", id=number, action="inventory")
            assert client.post("step", id=number, action="inventory") == {"error": f"The id {number} is not valid."}
            assert client.post("create")["id"] == number + 1


def test_a_mount_without_a_matching_environment_is_refused() -> None:
    with pytest.raises(UsageError, match="AgentGym has too"):
        create_app([TOY], mounts=[agentgym_routes])
    with pytest.raises(UsageError, match="no scenario 'chess'"):
        create_app([TOY], mounts=[agentgym_mount({"chess": TOY})])
    with pytest.raises(UsageError, match="is not served"):
        create_app([TOY], mounts=[agentgym_mount({"babyai": TEXTCRAFT})])


def test_index_ranges_match_agentgym() -> None:
    for before, after in zip(ids.SEARCH, ids.SEARCH[1:], strict=False):
        assert before.first + before.length == after.first
    assert [part.first for part in ids.SEARCH] == [0, 3610, 14923, 29190, 36595, 49171, 51588, 51713, 130881]
    assert ids.size(ids.SEARCH) == 221328
    assert ids.find(ids.SEARCH, 130880).range[::3] == ("nq", "train")


def test_sites_without_agentgyms_tasks_are_not_mounted() -> None:
    with pytest.raises(UsageError, match=r"none of AgentGym/WebArena-v0 is .*AgentGym/WebArenaOfficial-\.\.\."):
        create_app(["AgentGym/WebArena-v0"], mounts=[agentgym_routes])


def test_missing_questions_are_reported_at_the_start(caplog: pytest.LogCaptureFixture) -> None:
    create_app(["AgentGym/SearchRetry-v0"], mounts=[agentgym_routes])
    assert "without --env-arg questions=DIR, AgentGym's indices have no questions" in caplog.text
    caplog.clear()
    create_app(["AgentGym/SearchRetry-v0"], mounts=[agentgym_routes], env_args={"questions": "DIR"})
    assert "questions=DIR" not in caplog.text
