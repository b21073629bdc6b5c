"""Episodes of official tasks on the stub sites."""

import asyncio
import importlib.util
import json
import os
import pickle
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agentgym_envs.errors import NoOracle, UsageError
from agentgym_envs.webarena.browser.sites import LocalSites
from agentgym_envs.webarena.evaluators.verified import PYTHON
from agentgym_envs.webarena.official import env as official
from agentgym_envs.webarena.official.env import WebArenaOfficialEnv
from tests.webarena.stub_sites import Stubs

DATA = Path(__file__).parent / "data"
BASE_URL = "AGENTGYM_JUDGE_BASE_URL"
Make = Callable[..., WebArenaOfficialEnv]


class Agent:
    """Plays a task by its observations."""

    def __init__(self, env: WebArenaOfficialEnv, number: int) -> None:
        self.env = env
        self.observation, self.info = env.reset(seed=0, options={"task": f"webarena/{number}"})

    def act(self, command: str) -> dict[str, Any]:
        self.observation, self.reward, self.terminated, self.truncated, self.info = self.env.step(command)
        return self.info

    def click(self, role: str, name: str) -> None:
        assert self.act(f"click [{self._find(role, name)}]")["invalid_action"] is None

    def type(self, name: str, text: str) -> None:
        assert self.act(f"type [{self._find('textbox', name)}] [{text}] [0]")["invalid_action"] is None

    def goto(self, url: str) -> None:
        assert self.act(f"goto [{url}]")["invalid_action"] is None

    def stop(self, answer: str = "") -> float:
        self.act(f"stop [{answer}]")
        assert self.terminated and self.info["success"] == (self.reward == 1.0)
        return float(self.reward)

    def _find(self, role: str, name: str) -> int:
        found = re.search(rf"\[(\d+)\] {role} '{re.escape(name)}'", self.observation)
        assert found, f"no {role} {name!r} in:\n{self.observation}"
        return int(found[1])


class Reader:
    """A judge that records its questions."""

    def __init__(self, verdict: bool) -> None:
        self.verdict = verdict
        self.questions: list[tuple[str, str, str]] = []

    async def same_meaning(self, question: str, reference: str, answer: str) -> bool:
        self.questions.append((question, reference, answer))
        return self.verdict

    same_reason = same_meaning


@pytest.fixture(scope="module")
def all_sites() -> Stubs:
    return Stubs()


@pytest.fixture
def sites(all_sites: Stubs, monkeypatch: pytest.MonkeyPatch) -> Stubs:
    monkeypatch.delenv(BASE_URL, raising=False)
    monkeypatch.delenv("AGENTGYM_JUDGE_MODEL", raising=False)
    monkeypatch.setattr(official, "_QUIET", 0.03)  # these sites are local
    all_sites.reset()
    return all_sites


@pytest.fixture
def make(sites: Stubs) -> Iterator[Make]:
    made: list[WebArenaOfficialEnv] = []

    def make(**options: Any) -> WebArenaOfficialEnv:
        made.append(WebArenaOfficialEnv(**{"tasks": DATA / "official_tasks.json", "sites": sites.urls, **options}))
        return made[-1]

    yield make
    for env in made:
        env.close()


def test_exact_answers_are_scored(make: Make) -> None:
    env = make()
    agent = Agent(env, 0)
    assert (
        agent.observation.startswith("OBSERVATION:\nTab 0 (current): Energy Drink\n")
        and "'$12.50'" in agent.observation
    )
    assert "OBJECTIVE: Tell me what the energy drink costs." in agent.observation
    assert agent.stop("$12.50") == 1.0 and agent.info["reason"] == ""
    assert Agent(env, 0).stop("$13.50") == 0.0
    with pytest.raises(NoOracle):
        Agent(env, 0)
        env.oracle()


@pytest.mark.slow
def test_expected_addresses_are_scored(make: Make) -> None:
    env = make()
    agent = Agent(env, 2)
    agent.click("link", "My Orders")
    agent.click("link", "View Order 180")
    assert agent.stop() == 1.0
    agent = Agent(env, 2)
    agent.click("link", "My Orders")
    assert agent.stop() == 0.0 and "/sales/order/view/order_id/180/" in agent.info["reason"]


@pytest.mark.slow
def test_answers_must_include_all_references(make: Make) -> None:
    env = make()
    assert Agent(env, 1).stop("Order 180 is complete") == 1.0
    assert Agent(env, 1).stop("Order 1801 is complete") == 0.0


@pytest.mark.slow
def test_pages_found_by_a_helper_are_scored(make: Make, sites: Stubs) -> None:
    env = make()
    agent = Agent(env, 3)
    agent.click("link", "Energy Drink")
    agent.click("button", "Buy now")
    assert agent.stop() == 1.0
    sites.reset()
    agent = Agent(env, 3)
    assert agent.stop() == 0.0 and "'Candle'" in agent.info["reason"]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "stars", "score"), [("Emma", "4", 1.0), ("Emma", "5", 0.0), ("Eve", "4", 0.0)])
def test_values_returned_by_a_helper_are_scored(make: Make, name: str, stars: str, score: float) -> None:
    agent = Agent(make(), 4)
    agent.type("Nickname", name)
    agent.type("Stars", stars)
    agent.click("button", "Submit Review")
    assert agent.stop() == score


@pytest.mark.slow
@pytest.mark.parametrize(("title", "score"), [("I liked ulysses", 1.0), ("James Joyce!", 1.0), ("I liked it", 0.0)])
def test_a_post_is_scored_by_its_address_and_title(make: Make, title: str, score: float) -> None:
    agent = Agent(make(), 5)
    agent.click("link", "Submit")
    agent.type("Title", title)
    agent.click("button", "Create submission")
    agent.click("link", "a comment")  # the helper finds its post
    assert agent.info["url"].endswith("/f/books/1/-/comment/7")
    assert agent.stop() == score


@pytest.mark.slow
def test_a_post_scores_0_after_the_agent_left_it(make: Make) -> None:
    agent = Agent(make(), 5)
    agent.click("link", "Submit")
    agent.type("Title", "Ulysses")
    agent.click("button", "Create submission")
    agent.act("goto [/]")
    agent.goto(agent.env.sites.urls["reddit"])
    assert agent.stop() == 0.0 and "the last page is" in agent.info["reason"]


@pytest.mark.slow
def test_a_value_in_a_table_row_is_scored(make: Make) -> None:
    env = make()
    for role, score in (("Guest", 0.0), ("Developer", 1.0)):
        agent = Agent(env, 6)
        agent.goto(f"{env.sites.urls['gitlab']}/byteblaze/dotfiles/-/project_members")
        agent.type("User", "yjlou")
        agent.type("Role", role)
        agent.click("button", "Invite")
        agent.goto(env.sites.urls["gitlab"])
        assert agent.stop() == score


@pytest.mark.slow
def test_a_task_may_use_two_sites(make: Make, sites: Stubs) -> None:
    env = make()
    for text, score in (("dotfiles", 0.0), (f"{sites.urls['gitlab']}/byteblaze/dotfiles", 1.0)):
        agent = Agent(env, 7)
        agent.goto(f"{sites.urls['gitlab']}/byteblaze/dotfiles")
        assert "3 stars" in agent.observation
        agent.goto(f"{sites.urls['reddit']}/submit/books")
        agent.type("Body", f"See {text}")
        agent.click("button", "Create submission")
        assert agent.stop() == score
    assert (sites.code.logins, sites.forum.logins) == (1, 1)
    assert sites.urls["gitlab"] in env.instructions


@pytest.mark.slow
def test_a_task_may_begin_on_two_pages(make: Make) -> None:
    agent = Agent(make(), 10)
    assert "Tab 0 (current): Energy Drink | Tab 1: Tea" in agent.observation and agent.info["tabs"] == 2
    agent.act("tab_focus [1]")
    assert "heading 'Tea'" in agent.observation
    assert agent.stop("the Energy Drink") == 1.0


@pytest.mark.slow
def test_answer_and_address_are_both_required(make: Make) -> None:
    env = make()
    assert Agent(env, 13).stop("3") == 0.0
    agent = Agent(env, 13)
    agent.click("link", "dotfiles")
    assert agent.stop("It has 3 stars") == 1.0


@pytest.mark.slow
def test_answers_scored_by_the_judge(make: Make) -> None:
    judge = Reader(True)
    env = make(judge=judge)
    assert Agent(env, 8).stop("There are no reviews") == 1.0
    assert Agent(env, 9).stop("None came from there") == 1.0
    assert Agent(env, 9).stop("N/A") == 1.0
    judge.verdict = False
    assert Agent(env, 9).stop("Order 180") == 0.0
    assert judge.questions[0] == (
        "What do people think of the energy drink?",
        "Nobody has said anything about it",
        "There are no reviews",
    )
    assert [reference for _, reference, _ in judge.questions[1:]] == ["None of the orders came from Mars"] * 2


def test_unplayable_tasks_are_not_sampled_and_name_the_missing_setting(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    env = make(split=None)
    drawn = {env.tasks.draw(key, split=None).id for key in range(100)}
    assert {"webarena/0", "webarena/13"} <= drawn
    assert not drawn & {f"webarena/{number}" for number in (8, 9, 11, 12, 14, 15)}
    with pytest.raises(UsageError, match=f"'webarena/8' .* set {BASE_URL} and AGENTGYM_JUDGE_MODEL, or pass judge="):
        env.reset(options={"task": "webarena/8"})
    with pytest.raises(UsageError, match="'map' and 'wikipedia': set WA_MAP or MAP and WA_WIKIPEDIA or WIKIPEDIA"):
        env.reset(options={"task": "webarena/12"})
    with pytest.raises(UsageError, match=r"group 'maps' .*needs the address of 'map': set WA_MAP"):
        env.reset(options={"group": "maps"})
    with pytest.raises(UsageError, match=r"group 'cms' .* set WA_SHOPPING_ADMIN or"):
        make(groups=["shopping", "cms"])
    monkeypatch.setenv(BASE_URL, "http://127.0.0.1:1/v1")
    with pytest.raises(UsageError, match="AGENTGYM_JUDGE_MODEL is not set"):
        make()
    monkeypatch.setenv("AGENTGYM_JUDGE_MODEL", "m")
    assert make().judge is not None


def test_invalid_arguments_are_refused(make: Make) -> None:
    with pytest.raises(UsageError, match=r"set WA_SHOPPING, .*or pass sites="):
        make(sites={})
    with pytest.raises(UsageError, match="login is 'form', 'header', 'none' or a folder"):
        make(login="magic")
    with pytest.raises(UsageError, match="reset is None"):
        make(reset="sometimes")
    with pytest.raises(UsageError, match="settle_seconds is a number above 0"):
        make(settle_seconds=0)
    with pytest.raises(UsageError, match="http"):
        make(hosts=["tiles.test"])


@pytest.mark.slow
def test_only_the_sites_can_be_visited(make: Make) -> None:
    other = LocalSites()
    agent = Agent(make(), 0)
    assert agent.act(f"goto [http://{other.address}/]")["invalid_action"]
    assert agent.env.session.url.endswith("/energy-drink.html")
    assert make(hosts=[f"http://{other.address}"])._hosts.allows(f"http://{other.address}/tile.png")


@pytest.mark.slow
def test_a_login_is_reused_until_it_is_invalid(make: Make, sites: Stubs) -> None:
    env, other = make(), make()
    assert "Welcome, Emma Lopez!" in Agent(env, 2).observation
    assert "Welcome, Emma Lopez!" in Agent(env, 2).observation and sites.shop.logins == 1
    agent = Agent(other, 2)
    assert sites.shop.logins == 2  # each environment has its own
    agent.goto(f"{sites.urls['shopping']}/logout")
    assert "Please sign in" in agent.observation
    assert "Welcome, Emma Lopez!" in Agent(other, 2).observation and sites.shop.logins == 3
    agent = Agent(env, 2)
    agent.click("link", "My Orders")
    assert "View Order 180" in agent.observation and sites.shop.logins == 3


@pytest.mark.slow
def test_a_login_form_on_any_page_is_filled_in(make: Make, sites: Stubs) -> None:
    env = make(sites={"shopping_admin": sites.admin_url}, groups=["cms"])
    agent = Agent(env, 14)
    agent.click("button", "Settings")
    assert agent.stop() == 1.0
    assert Agent(env, 15).stop("1") == 1.0 and sites.admin.logins == 1
    sites.admin.sessions.clear()
    assert "Tab 0 (current): Dashboard" in Agent(env, 15).observation and sites.admin.logins == 2


@pytest.mark.slow
def test_a_refused_login_is_an_env_error(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WA_GITLAB_PASSWORD", "wrong")
    agent = Agent(make(), 6)
    assert agent.info["stop_reason"] == "env_error"
    assert "does not let 'byteblaze' in; set WA_GITLAB_USERNAME and WA_GITLAB_PASSWORD" in agent.info["error"]


@pytest.mark.slow
def test_login_header_signs_in(make: Make, sites: Stubs) -> None:
    env = make(login="header")
    assert "Welcome, Emma Lopez!" in Agent(env, 2).observation
    agent = Agent(env, 7)
    agent.goto(f"{sites.urls['reddit']}/submit/books")
    assert "textbox 'Title'" in agent.observation
    agent.goto(f"{sites.urls['gitlab']}/byteblaze/dotfiles")
    assert "3 stars" in agent.observation
    assert (sites.shop.logins, sites.forum.logins, sites.code.logins) == (0, 0, 1)


@pytest.mark.slow
def test_login_files_sign_in(make: Make, sites: Stubs, tmp_path: Path) -> None:
    def write(name: str, **cookies: str) -> None:
        rest = {"domain": "127.0.0.1", "path": "/", "expires": -1, "httpOnly": False, "secure": False}
        state = {"cookies": [{"name": n, "value": v, "sameSite": "Lax", **rest} for n, v in cookies.items()]}
        (tmp_path / f"{name}_state.json").write_text(json.dumps({**state, "origins": []}), encoding="utf-8")

    env = make(login=tmp_path)
    with pytest.raises(UsageError, match=r"shopping_state\.json to sign in, which is not there"):
        env.reset(options={"task": "webarena/2"})
    write("shopping", PHPSESSID="old")
    assert "do not sign in to shopping (any more)" in Agent(env, 2).info["error"]
    sites.shop.sessions.add("new")
    write("shopping", PHPSESSID="new")
    assert "Welcome, Emma Lopez!" in Agent(env, 2).observation
    sites.code.sessions.add("c")
    sites.forum.sessions.add("f")
    write("gitlab.reddit", PHPSESSID="f", _gitlab_session="c")
    assert Agent(env, 7).info["stop_reason"] is None
    (tmp_path / "shopping_state.json").write_text("{}", encoding="utf-8")
    with pytest.raises(UsageError, match="not a storage state"):
        env.reset(options={"task": "webarena/2"})


@pytest.mark.slow
def test_login_none_stays_signed_out(make: Make, sites: Stubs) -> None:
    assert "Please sign in" in Agent(make(login="none"), 2).observation and sites.shop.logins == 0


@pytest.mark.slow
def test_a_missing_start_page_is_an_env_error(make: Make, sites: Stubs) -> None:
    env = make(login="none")
    sites.shop.broken = 503
    assert "answers with status 503" in Agent(env, 2).info["error"]
    sites.shop.broken, sites.shop.public_url = 0, "http://shop.example.com/"
    assert "led to http://shop.example.com/" in Agent(env, 2).info["error"]
    sites.shop.tea_away = True
    assert "/tea.html led to http://tea.example.com/" in Agent(env, 10).info["error"]  # the second of two tabs


@pytest.mark.slow
def test_a_site_that_fails_during_scoring_is_an_env_error(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WA_SHOPPING_SITE_ADMIN_PASSWORD", "wrong")
    agent = Agent(make(), 3)
    assert agent.act("stop []")["stop_reason"] == "env_error" and "REST interface failed" in agent.info["error"]


@pytest.mark.slow
def test_sites_are_reset_before_every_episode(make: Make, sites: Stubs) -> None:
    calls = []

    def hook() -> None:
        calls.append(len(sites.shop.orders))
        sites.reset()

    env = make(reset=hook)
    agent = Agent(env, 3)
    agent.click("link", "Energy Drink")
    agent.click("button", "Buy now")
    assert agent.stop() == 1.0
    assert Agent(env, 3).stop() == 0.0 and calls == [1, 2]


@pytest.mark.slow
def test_a_reset_during_another_episode_is_refused(make: Make, sites: Stubs) -> None:
    env, other = make(), make(reset=sites.reset)
    agent = Agent(env, 2)
    with pytest.raises(UsageError, match="another environment is playing an episode"):
        other.reset(options={"task": "webarena/2"})
    assert other.status()["stop_reason"] == "closed" and sites.shop.logins == 1
    agent.stop()
    assert Agent(other, 2).info["stop_reason"] is None


@pytest.mark.slow
def test_a_failing_reset_is_an_env_error(make: Make) -> None:
    def hook() -> None:
        raise RuntimeError("no docker here")

    assert "no docker here" in Agent(make(reset=hook), 2).info["error"]


@pytest.mark.slow
def test_concurrent_episodes_have_their_own_scores(make: Make, sites: Stubs) -> None:
    async def play(env: WebArenaOfficialEnv, answer: str) -> float:
        await env.areset(seed=1, options={"task": "webarena/1"})
        return (await env.astep(f"stop [{answer}]"))[1]

    async def play_all() -> list[float]:
        return await asyncio.gather(*(play(make(), f"180 is {state}") for state in ("complete", "lost", "complete")))

    assert asyncio.run(play_all()) == [1.0, 0.0, 1.0] and sites.shop.logins == 3


@pytest.mark.slow
def test_an_episode_continues_in_another_process(make: Make) -> None:
    agent = Agent(make(), 2)
    agent.click("link", "My Orders")
    copy = pickle.loads(pickle.dumps(agent.env))
    try:
        assert copy.session.view.tree == agent.env.session.view.tree
        assert copy.step("stop []")[1] == 0.0
    finally:
        copy.close()


def has_verified() -> bool:
    return bool(os.environ.get(PYTHON)) or importlib.util.find_spec("webarena_verified") is not None


@pytest.mark.slow
@pytest.mark.skipif(not has_verified(), reason=f"needs webarena-verified: install it, or set {PYTHON}")
def test_tasks_of_webarena_verified_are_scored(make: Make, sites: Stubs, tmp_path: Path) -> None:
    sites.shop.orders.append({"increment_id": "000000189", "items": "Tea", "status": "pending"})
    rows = json.loads((DATA / "official_verified.json").read_text(encoding="utf-8"))
    (tmp_path / "tasks.json").write_text(json.dumps([*rows, {**rows[0], "task_id": 319}]), encoding="utf-8")
    env = make(tasks=tmp_path / "tasks.json")
    assert "webarena/319" not in {task.id for task in env.tasks.sample(split=None)}  # always scores 0
    assert '"retrieved_data"' in env.instructions
    shown = '{"task_type": "NAVIGATE", "status": "SUCCESS", "retrieved_data": null}'
    agent = Agent(env, 300)
    assert agent.stop(shown) == 0.0 and agent.info["reason"]
    for answer, score in (("Here it is", 0.0), (shown, 1.0)):
        agent = Agent(env, 300)
        agent.click("link", "My Orders")
        agent.click("link", "View Order 189")
        assert agent.stop(answer) == score


@pytest.mark.skipif(has_verified(), reason="webarena-verified is there")
def test_tasks_of_webarena_verified_need_its_package(make: Make) -> None:
    with pytest.raises(UsageError, match="pip install webarena-verified"):
        make(tasks=DATA / "official_verified.json")
