"""Our client of AgentGym's servers, on our own server in AgentGym's dialect and on fake servers with its quirks."""

from __future__ import annotations

import contextlib
import json
import pickle
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import gymnasium as gym
import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from agentgym_envs.core import ENV_FAILED, TextEnv, text_env
from agentgym_envs.errors import EnvError, EpisodeOver, ServerFull, SessionLost, UnknownTask, UsageError
from agentgym_envs.http.dialects.agentgym.client import AgentGymEnv
from agentgym_envs.http.dialects.agentgym.server import agentgym_routes
from agentgym_envs.http.dialects.agentgym.tasks import IndexTasks, index_groups
from agentgym_envs.http.run import background_server
from agentgym_envs.textcraft.recipes import load_recipe_book
from tests import contract
from tests.ports import free_port
from tests.waiting import until

pytestmark = pytest.mark.slow  # too slow for the fast run

TEXTCRAFT = "AgentGym/TextCraft-v0"
Handler = Callable[[dict[str, Any]], Any]


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with background_server([TEXTCRAFT], mounts=[agentgym_routes]) as address:
        yield address


def make(base_url: Any, **options: Any) -> TextEnv:
    return text_env(gym.make(TEXTCRAFT, base_url=base_url, dialect="agentgym", **options))


SPLITLESS = {contract.tasks_are_sound, contract.oracle_solves}
"""The checks for an environment whose tasks have one split and no oracle."""


@pytest.mark.parametrize("check", [c for c in contract.CHECKS if c not in SPLITLESS], ids=lambda check: check.__name__)
def test_the_client_keeps_the_contract(check: Callable[[contract.Make], None], url: str) -> None:
    check(partial(gym.make, TEXTCRAFT, base_url=f"{url}/agentgym/textcraft", dialect="agentgym"))


def test_episodes_over_the_dialect_equal_local_ones(url: str) -> None:
    with contextlib.closing(make(url)) as env, contextlib.closing(text_env(gym.make(TEXTCRAFT))) as local:
        assert env.rules == local.rules and env.instructions == local.instructions
        for index in (0, 100, 300, 540):
            env.reset(options={"task": f"textcraft-agentgym/{index}"})
            seen, _ = local.reset(seed=42, options={"task": f"textcraft/{index}"})
            assert env.render() is None and env.reset(options={"task": f"textcraft-agentgym/{index}"})[0] == seen
            total = 0.0
            for command in local.oracle():
                assert not env.status()["success"]
                _, reward, terminated, truncated, info = env.step(command)
                total += reward
            assert (total, terminated, truncated) == (1.0, True, False)
            assert (info["score"], info["success"], info["stop_reason"]) == (1.0, True, "success")
            with pytest.raises(EpisodeOver):
                env.step("inventory")


def test_the_tasks_are_indices() -> None:
    for scenario, size in {"textcraft": 544, "babyai": 40_000, "sciworld": 4639, "webarena": 812}.items():
        tasks = IndexTasks(f"{scenario}-agentgym", index_groups(scenario))
        found = tasks.sample()
        assert sorted(task.data["index"] for task in found) == list(range(size))
        assert {task.split for task in found} == {"test"}
        by_group = Counter(task.group for task in found)
        assert tasks.counts() == {
            group: {"train": 0, "validation": 0, "test": by_group[group]} for group in tasks.groups
        }
        for task in tasks.sample(20, seed=3):
            assert tasks.get(task.id) == task and task.group in tasks.groups
        assert tasks.draw(5) == tasks.draw(5 + size)
        for wrong in (
            f"{scenario}-agentgym/{size}",
            f"{scenario}-agentgym/00",
            f"{scenario}-agentgym/-1",
            "x/1",
            None,
            7,
        ):
            with pytest.raises(UnknownTask):
                tasks.get(wrong)  # type: ignore[arg-type]
    level = IndexTasks("b", index_groups("babyai")).get("b/81")
    assert (level.group, level.split) == ("GoToRedBall", "test")


def test_searchqa_questions_have_splits() -> None:
    tasks = IndexTasks("searchqa-agentgym", index_groups("searchqa"))
    assert len({tasks.draw(n, split="train").id for n in (0, 169_614, 169_615)}) == 2
    assert tasks.draw(169_614, split="train").data["index"] == 221_327
    assert {task.group for task in tasks.sample(200, split="train")} == {"nq", "hotpotqa"}
    counts = tasks.counts()
    for split in ("train", "test"):
        assert sum(splits[split] for splits in counts.values()) == len(tasks.sample(split=split))
    assert tasks.draw(51_712, split="test").group == "bamboogle"
    with pytest.raises(UnknownTask):
        tasks.draw(0, split="validation")
    with pytest.raises(UsageError, match="51713"):
        tasks.sample(51_714, split="test")


class Fake:
    """A fake server over a real socket, with scripted replies. `asked` are the requests received."""

    def __init__(self, **answers: Any) -> None:
        self.answers: dict[str, Any] = {"close": True, **answers}
        self.asked: list[tuple[str, dict[str, Any]]] = []
        app = Starlette(routes=[Route("/{path}", self._handle, methods=["POST"])])
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._server = uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False))
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [self._listener]}, daemon=True)

    async def _handle(self, request: Request) -> Response:
        path, body = request.path_params["path"], json.loads(await request.body())
        self.asked.append((path, body))
        answer = self.answers[path]
        if isinstance(answer, list):
            answer = answer.pop(0) if len(answer) > 1 else answer[0]
        return answer if isinstance(answer, Response) else JSONResponse(answer)

    def paths(self) -> list[str]:
        return [path for path, _ in self.asked]

    def __enter__(self) -> Fake:
        self._thread.start()
        until(lambda: self._server.started)
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join(20)
        self._listener.close()


TEXT = {"create": {"id": 3, "observation": "o", "done": False, "reward": 0}}
TEXT_BEGUN = {"id": 3, "observation": "Goal: craft x.", "done": False, "reward": 0}


@contextlib.contextmanager
def played(scenario: str, fake: Fake, **options: Any) -> Iterator[AgentGymEnv]:
    with fake, contextlib.closing(AgentGymEnv(scenario, [fake.url], connect_timeout=0, **options)) as env:
        yield env


def play(env: TextEnv, index: int, *actions: str) -> tuple[str, list[tuple[str, float, bool, bool, dict[str, Any]]]]:
    name = env.tasks.name
    observation, _ = env.reset(seed=0, options={"task": f"{name}/{index}"})
    return observation, [env.step(action) for action in actions]


def test_textcraft_sends_the_requests_of_agentgym() -> None:
    step = {"observation": "Got 1 coal", "reward": 0, "done": False}
    fake = Fake(**TEXT, reset=TEXT_BEGUN, step=step)
    with played("textcraft", fake) as env:
        play(env, 17, "  get 1 coal ")
    assert fake.asked == [
        ("create", {}),
        ("reset", {"id": 3, "data_idx": 17}),
        ("step", {"id": 3, "action": "get 1 coal"}),
        ("close", {"id": 3}),
    ]


def test_babyai_scores_are_clipped_and_gains_are_rewards() -> None:
    def step(score: float, done: bool = False) -> dict[str, Any]:
        return {"observation": "s", "reward": 9.9, "score": score, "done": done}

    begun = {"observation": "Your goal: g", "reward": 0, "score": 0, "deleted": False, "done": False}
    scores = [0.325, 0.325, 0.622, 2.08, -1.81, 0.95]
    fake = Fake(create={"id": 0}, reset=begun, step=[*map(step, scores), step(1.9, True)])
    with played("babyai", fake) as env:
        observation, steps = play(env, 81, *["toggle"] * 5, "pick up red ball 1", "Pick UP key 2")
    assert observation == "Your goal: g"
    assert [info["score"] for *_, info in steps] == pytest.approx([0.325, 0.325, 0.622, 1.0, 0.0, 0.95, 1.0])
    assert sum(step[1] for step in steps) == pytest.approx(1.0)
    assert [step[2] for step in steps] == [False] * 6 + [True]
    assert steps[-1][4]["success"] is True
    assert [body["action"] for path, body in fake.asked if path == "step"][-2:] == ["pickup red ball 1", "pickup key 2"]


def test_a_babyai_success_does_not_depend_on_the_score() -> None:
    fake = Fake(
        create={"id": 0},
        reset={"observation": "o", "reward": 0, "score": 0, "deleted": False, "done": False},
        step={"observation": "The task is completed.", "reward": 0.6, "score": 0.6, "done": True},
    )
    with played("babyai", fake) as env:
        _, [(_, reward, terminated, _, info)] = play(env, 0, "go to red ball 1")
    assert (reward, terminated, info["success"], info["stop_reason"]) == (0.6, True, True, "success")


@pytest.mark.parametrize(
    ("points", "done", "score", "stop"),
    [(17, False, 0.17, None), (100, True, 1.0, "success"), (-100, True, 0.0, "failure"), (42, True, 0.42, "failure")],
)
def test_sciworld_points_become_scores(points: int, done: bool, score: float, stop: str | None) -> None:
    begun = {
        "task_name": "boil",
        "var_num": 0,
        "task_description": "Task Description:\nBoil water.",
        "observation": "This room is called the hallway.",
        "reward": 0,
        "score": 0,
        "deleted": False,
        "done": False,
    }
    first = {"observation": "a", "reward": 8, "score": 8, "done": False}
    second = {"observation": "b", "reward": points - 8, "score": points, "done": done}
    with played("sciworld", Fake(create={"id": 0}, reset=begun, step=[first, second])) as env:
        observation, steps = play(env, 0, "focus on water", "wait")
    assert observation == "Task Description:\nBoil water.\nThis room is called the hallway."
    (_, one, *_), (_, two, terminated, truncated, info) = steps
    assert (one, one + two) == pytest.approx((0.08, score))
    assert (info["score"], terminated, truncated, info["stop_reason"]) == (pytest.approx(score), done, False, stop)
    assert info["success"] is (stop == "success")


def test_searchqa_replies_are_plain_values() -> None:
    wrong = {"observation": "Sorry, ...", "reward": 0.0, "done": False, "info": None}
    right = {"observation": "Congratulations!", "reward": 1.0, "done": True, "info": None}
    invalid = wrong | {"observation": "Your previous action is invalid. If you want ..."}
    fake = Fake(create=5, reset="Answer. Question: who?", step=[wrong, invalid, right])
    with played("searchqa", fake) as env:
        observation, steps = play(env, 51_713, "<answer>a</answer>", "what?", "<answer>b</answer>")
    assert observation == "Answer. Question: who?"
    assert [(step[1], step[2]) for step in steps] == [(0.0, False), (0.0, False), (1.0, True)]
    assert [step[4]["invalid_action"] for step in steps] == [None, invalid["observation"], None]
    assert fake.asked[:2] == [("create", {"id": 0}), ("reset", {"env_idx": 5, "id": 51_713})]


def test_only_the_last_webarena_reward_counts() -> None:
    def step(reward: float, done: bool, info: Any, text: str = "OBSERVATION") -> dict[str, Any]:
        return {"observation": text, "reward": reward, "terminated": done, "truncated": False, "info": info}

    steps = [step(0.5, False, {}), step(0, False, None, "Cannot parse action"), step(1.0, True, {})]
    begun = {"observation": "OBSERVATION", "sites": ["map"], "object": "find"}
    fake = Fake(create={"env_idx": 2}, reset=begun, step=steps)
    with played("webarena", fake) as env:
        _, seen = play(env, 7, "```click [1]```", "what?", "```stop [x]```")
    assert [(step[1], step[2]) for step in seen] == [(0.0, False), (0.0, False), (1.0, True)]
    assert [step[4]["invalid_action"] for step in seen] == [None, "Cannot parse action", None]
    assert fake.asked[1] == ("reset", {"env_idx": 2, "seed": 0, "idx": 7})


GOOD_STEP = {"observation": "Got 1 coal", "reward": 0, "done": False}
BAD: Mapping[str, tuple[Any, str]] = {
    "error with status 200": ({"error": "The id 3 is not valid."}, "not valid"),
    "status 500": (Response("Internal Server Error", 500), "HTTP 500"),
    "status 404": (JSONResponse({"detail": "Not Found"}, 404), "HTTP 404"),
    "no JSON": (Response("<html>", 200), "without JSON"),
    "nothing": (None, "no 'reward'"),
    "a list": ([[GOOD_STEP]], "no 'reward'"),
    "no observation": ({"reward": 0, "done": False}, "no 'observation'"),
    "no reward": ({"observation": "o", "done": False}, "no 'reward'"),
    "no done": ({"observation": "o", "reward": 0}, "no 'done'"),
    "a reward that is text": ({**GOOD_STEP, "reward": "1"}, "not a number"),
    "a reward that is true": ({**GOOD_STEP, "reward": True}, "not a number"),
    "a reward that is null": ({**GOOD_STEP, "reward": None}, "not a number"),
    "a reward that is not finite": (Response('{"observation": "o", "reward": NaN, "done": false}'), "not a number"),
    "done that is a number": ({**GOOD_STEP, "done": 1}, "neither true nor false"),
    "an observation that is not a text": ({**GOOD_STEP, "observation": None}, "not a text"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_reply_ends_the_episode_and_the_next_has_another_environment(name: str) -> None:
    answer, message = BAD[name]
    fake = Fake(create=[{"id": 3}, {"id": 4}], reset=TEXT_BEGUN, step=[GOOD_STEP, answer, GOOD_STEP])
    with played("textcraft", fake) as env:
        _, steps = play(env, 0, "get 1 coal", "get 1 coal")
        observation, reward, terminated, truncated, info = steps[-1]
        assert (observation, reward, terminated, truncated) == (ENV_FAILED, 0.0, False, True)
        assert info["stop_reason"] == "env_error" and message in info["error"]
        with pytest.raises(EpisodeOver):
            env.step("get 1 coal")
        assert play(env, 1, "get 1 coal")[1][0][4]["stop_reason"] is None
    assert ("close", {"id": 3}) in fake.asked and ("step", {"id": 4, "action": "get 1 coal"}) in fake.asked


@pytest.mark.parametrize(
    "answer", [{"error": "list index out of range"}, Response("no", 500), {"id": 3}, {"observation": 3}, None]
)
def test_a_bad_reset_is_an_env_error(answer: Any) -> None:
    with played("textcraft", Fake(**TEXT, reset=answer, step=GOOD_STEP)) as env:
        observation, info = env.reset(seed=0)
        assert observation == ENV_FAILED and info["stop_reason"] == "env_error"


def test_a_failed_webarena_reset_is_an_env_error() -> None:
    begun = {"observation": "TimeoutError", "sites": "Error", "object": "Error"}
    with played("webarena", Fake(create={"env_idx": 0}, reset=begun)) as env:
        assert "TimeoutError" in env.reset(seed=0)[1]["error"]


def test_a_webarena_episode_truncated_by_the_server_is_an_env_error() -> None:
    begun = {"observation": "o", "sites": [], "object": "x"}
    truncated = {"observation": "o", "reward": 0, "terminated": False, "truncated": True, "info": {}}
    with played("webarena", Fake(create={"env_idx": 0}, reset=begun, step=truncated)) as env:
        assert "truncated" in play(env, 0, "x")[1][0][4]["error"]


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ({"error": "no java"}, EnvError),
        (Response("x", 500), EnvError),
        (Response("x", 429), ServerFull),
        ({"observation": "o"}, EnvError),
        ({"id": "3"}, EnvError),
        ({"id": True}, EnvError),
    ],
)
def test_a_server_that_makes_no_environment_raises(answer: Any, kind: type[Exception]) -> None:
    with Fake(create=answer) as fake, pytest.raises(kind):
        make(fake.url, connect_timeout=1.5)
    assert (len(fake.asked) > 1) is (kind is ServerFull), "only a full server is tried again"


def test_an_unreachable_server_raises_session_lost() -> None:
    closed = f"http://127.0.0.1:{free_port()}"
    with pytest.raises(SessionLost, match="cannot be reached"):
        make(closed, connect_timeout=0)
    with Fake(**TEXT, reset=TEXT_BEGUN, step=GOOD_STEP) as fake:
        for _ in range(3):  # the first address in turn may be the unreachable one
            with contextlib.closing(make([closed, fake.url], connect_timeout=0)) as env:
                env.reset(seed=0)


def test_a_silent_server_is_an_env_error_after_the_timeout() -> None:
    fake = Fake(**TEXT, reset=TEXT_BEGUN)
    with socket.create_server(("127.0.0.1", 0)) as deaf, played("textcraft", fake, timeout=1.5) as env:
        env.reset(seed=0)
        assert env._address is not None
        env._address = env._address._replace(url=f"http://127.0.0.1:{deaf.getsockname()[1]}")
        began = time.monotonic()
        *_, info = env.step("get 1 coal")
        assert "ReadTimeout" in info["error"] and time.monotonic() - began < 60
        assert env.reset(seed=0)[1]["stop_reason"] is None


def test_an_episode_follows_a_server_restart() -> None:
    with Fake(**TEXT, reset=TEXT_BEGUN, step=GOOD_STEP) as fake:
        env = AgentGymEnv("textcraft", [fake.url], connect_timeout=0)
        env.reset(seed=0)
    assert env.step("get 1 coal")[4]["stop_reason"] == "env_error"
    assert env.reset(seed=0)[1]["stop_reason"] == "env_error"
    with Fake(**TEXT, reset=TEXT_BEGUN, step=GOOD_STEP) as other:
        env._urls = (other.url,)
        assert env.reset(seed=0)[1]["stop_reason"] is None
        env.close()
        assert other.paths() == ["create", "reset", "close"]


def test_the_token_is_sent_and_wrong_arguments_are_refused(url: str) -> None:
    with background_server([TEXTCRAFT], mounts=[agentgym_routes], token="secret") as locked:
        with pytest.raises(EnvError, match="401"):
            make(locked)
        with contextlib.closing(make(locked, token="secret")) as env:
            assert env.reset(seed=0)[1]["stop_reason"] is None
    with pytest.raises(UsageError, match="no scenario 'chess'"):
        AgentGymEnv("chess", [url])
    with pytest.raises(UsageError, match="dialect"):
        gym.make(TEXTCRAFT, base_url=url, dialect="klingon")
    with pytest.raises(UsageError, match="no split"):
        make(url, split="dev")


def test_an_unpickled_environment_continues_its_episode(url: str) -> None:
    with contextlib.closing(make(url)) as env:
        index = next(
            n for n, goal in enumerate(load_recipe_book().goals) if load_recipe_book().items[goal] == "oak_planks"
        )
        env.reset(options={"task": f"textcraft-agentgym/{index}"})
        env.step("get 1 oak logs")
        with contextlib.closing(pickle.loads(pickle.dumps(env))) as copy:
            for one in (env, copy):
                assert one.step("craft 4 oak planks using 1 oak logs")[1] == 1.0
