"""The inspector: the sites for a person, with a task and its current score."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from agentgym_envs.webarena.env import browser_options
from agentgym_envs.webarena.evaluators.dom import PageHolds
from agentgym_envs.webarena.inspector.app import DOMAIN, InspectorApp
from agentgym_envs.webarena.inspector.session import InspectorSession
from agentgym_envs.webarena.sites.episodes import episodes
from agentgym_envs.webarena.sites.framework.site import HOSTS, ORIGINS
from agentgym_envs.webarena.tasks.answers import Says
from agentgym_envs.webarena.tasks.scoring import evaluators_for
from agentgym_envs.webarena.tasks.table import load

PORT = 8123
SAME_ORIGIN = {"origin": f"http://inspector.{DOMAIN}:{PORT}"}


@pytest.fixture
def inspector() -> Iterator[InspectorApp]:
    session = InspectorSession(load(2), browser_options(None), 1)
    yield InspectorApp(session, PORT)
    episodes().close(session.episode)


@pytest.fixture
def person(inspector: InspectorApp) -> Any:
    from starlette.testclient import TestClient

    return TestClient(inspector, base_url=f"http://inspector.{DOMAIN}:{PORT}", follow_redirects=False)


def visit(person: Any, url: str) -> Any:
    """Open a page as a browser does in a frame."""
    return person.get(url, headers={"sec-fetch-dest": "iframe"})


def test_without_a_task_the_sites_can_be_explored(person: Any, inspector: InspectorApp) -> None:
    assert "Random task" in person.get("/").text
    assert person.get("/inspector.css").headers["content-type"].startswith("text/css")
    assert person.get("/other.css").status_code == 404
    status = person.get("/status").json()
    assert (status["task"], status["score"], status["evaluators"]) == (None, 0.0, [])
    assert [site["origin"] for site in status["sites"]] == list(ORIGINS.values())


@pytest.mark.parametrize("name", HOSTS)
def test_every_site_is_served_under_a_local_host(person: Any, inspector: InspectorApp, name: str) -> None:
    page = visit(person, f"{inspector.origins[name]}/")
    assert page.status_code == 200
    assert f"frame-ancestors {inspector.origin}" in page.headers["content-security-policy"]
    assert not any(origin in page.text for origin in ORIGINS.values())
    assert person.get("/status").json()["url"] == f"{ORIGINS[name]}/"


@pytest.mark.slow
def test_a_task_is_begun_and_scored_continuously(person: Any, inspector: InspectorApp) -> None:
    task = next(t for t in load() if t.data["kind"] == "information" and t.split == "test")
    wanted = next(e for e in evaluators_for(task) if isinstance(e, Says))
    status = person.post("/begin", json={"task": task.id}, headers=SAME_ORIGIN).json()
    assert (status["task"]["goal"], status["world"], status["score"]) == (task.goal, task.data["world"], 0.0)
    visit(person, status["start"])
    assert person.get("/status").json()["score"] == 0.0
    right = " and ".join(wanted.wanted)
    assert person.post("/answer", json={"answer": right}, headers=SAME_ORIGIN).json()["score"] == 1.0
    wrong = person.post("/answer", json={"answer": "who knows"}, headers=SAME_ORIGIN).json()
    assert wrong["score"] == 0.0
    assert any("who knows" in one["reason"] for one in wrong["evaluators"])


@pytest.mark.slow
def test_all_tabs_of_a_task_are_offered(person: Any, inspector: InspectorApp) -> None:
    task = next(task for task in load(2) if "tabs" in task.data)
    status = person.post("/begin", json={"task": task.id}, headers=SAME_ORIGIN).json()
    assert status["tabs"][0] == status["start"] and len(status["tabs"]) == len(task.data["tabs"])
    assert all(visit(person, url).status_code == 200 for url in status["tabs"])


def test_changes_count_until_the_task_is_restarted(person: Any, inspector: InspectorApp) -> None:
    task = next(t for t in load() if t.data["kind"] == "information")
    person.post("/begin", json={"task": task.id}, headers=SAME_ORIGIN)
    token = inspector.session.episode.token
    person.post(f"{inspector.origins['forum']}/sign-out")
    with inspector.session.episode.lock:
        inspector.session.episode.database.execute("UPDATE shop_settings SET value = 'other' WHERE id = 1")
    visit(person, f"{inspector.origins['shop']}/")
    reasons = [one["reason"] for one in person.get("/status").json()["evaluators"]]
    assert any("shop_settings" in reason for reason in reasons)
    again = person.post("/begin", json={"task": ""}, headers=SAME_ORIGIN).json()
    assert again["task"]["id"] == task.id and again["episode"] != token
    assert not any("shop_settings" in one["reason"] for one in again["evaluators"])


def test_requests_are_recorded_with_an_agents_origins(person: Any, inspector: InspectorApp) -> None:
    visit(person, f"{inspector.origins['shop']}/nowhere?q=1")
    person.post(f"{inspector.origins['forum']}/sign-in", data={"user": "x", "password": "y"})
    requests = [
        (e["request"]["method"], e["request"]["url"], e["response"]["status"]) for e in inspector.recorder.entries
    ]
    assert requests == [("GET", "http://shop.test/nowhere?q=1", 404), ("POST", "http://forum.test/sign-in", 401)]
    assert inspector.recorder.entries[1]["request"]["postData"]["text"] == "user=x&password=y"
    assert inspector.recorder.local_url("http://shop.test/a?b=c", PORT) == f"http://shop.{DOMAIN}:{PORT}/a?b=c"


@pytest.mark.slow
def test_tasks_are_found_by_words(person: Any) -> None:
    task = load().tasks[7]
    word = task.data["template"]
    found = person.get("/tasks", params={"q": f"{word} {task.data['world']}/"}).json()
    assert found and all(word in one["id"] for one in found)
    assert person.get("/tasks", params={"q": "no such words at all"}).json() == []
    assert person.post("/begin", json={"task": "no/such"}, headers=SAME_ORIGIN).status_code == 404
    assert person.post("/begin", json={"task": "*"}, headers=SAME_ORIGIN).json()["task"]


def test_requests_of_other_pages_are_refused(person: Any, inspector: InspectorApp) -> None:
    before = inspector.session.episode.token
    for origin in ({}, {"origin": "http://evil.test"}, {"origin": inspector.origins["shop"]}):
        assert person.post("/begin", json={"task": "*"}, headers=origin).status_code == 403
        assert person.post("/answer", json={"answer": "x"}, headers=origin).status_code == 403
    assert person.post("/answer", content="not json", headers=SAME_ORIGIN).status_code == 403
    assert person.post("/answer", json=[1], headers=SAME_ORIGIN).status_code == 403
    assert (inspector.session.episode.token, inspector.session.answer) == (before, "")
    assert person.get("http://127.0.0.1/").status_code == 404
    assert person.get("http://elsewhere.test/").status_code == 404


@pytest.mark.slow
def test_page_content_is_read_in_a_browser_of_the_inspector(person: Any, inspector: InspectorApp) -> None:
    task = next(t for t in load() if any(isinstance(e, PageHolds) for e in evaluators_for(t)))
    status = person.post("/begin", json={"task": task.id}, headers=SAME_ORIGIN).json()
    visit(person, status["start"])
    statuses = person.get("/status").json()["evaluators"]
    (shown,) = [one for one in statuses if one["about"] == "The content of a page"][:1]
    assert "cannot be judged" not in shown["reason"]
