"""The desk: the sites for a person, with a task and its score beside them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from agentgym_envs.webarena.env import browser_options
from agentgym_envs.webarena.inspector.app import DOMAIN, DeskApp
from agentgym_envs.webarena.inspector.session import InspectorSession
from agentgym_envs.webarena.sites.episodes import episodes
from agentgym_envs.webarena.sites.framework.site import HOSTS, ORIGINS
from agentgym_envs.webarena.tasks.scoring import evaluators_for
from agentgym_envs.webarena.tasks.table import load

PORT = 8123
HERE = {"origin": f"http://desk.{DOMAIN}:{PORT}"}


@pytest.fixture
def desk() -> Iterator[DeskApp]:
    made = InspectorSession(load(), browser_options(None), 1)
    yield DeskApp(made, PORT)
    episodes().close(made.episode)


@pytest.fixture
def person(desk: DeskApp) -> Any:
    from starlette.testclient import TestClient

    return TestClient(desk, base_url=f"http://desk.{DOMAIN}:{PORT}", follow_redirects=False)


def visit(person: Any, url: str) -> Any:
    """As a browser asks for a page in the frame."""
    return person.get(url, headers={"sec-fetch-dest": "iframe"})


def test_without_a_task_one_looks_around(person: Any, desk: DeskApp) -> None:
    assert "Any task" in person.get("/").text
    assert person.get("/desk.css").headers["content-type"].startswith("text/css")
    assert person.get("/other.css").status_code == 404
    status = person.get("/status").json()
    assert (status["task"], status["score"], status["standings"]) == (None, 0.0, [])
    assert [site["origin"] for site in status["sites"]] == list(ORIGINS.values())


@pytest.mark.parametrize("name", HOSTS)
def test_every_site_is_there_under_a_name_of_this_machine(person: Any, desk: DeskApp, name: str) -> None:
    page = visit(person, f"{desk.origins[name]}/")
    assert page.status_code == 200
    assert f"frame-ancestors {desk.origin}" in page.headers["content-security-policy"]
    assert not any(origin in page.text for origin in ORIGINS.values())
    assert person.get("/status").json()["url"] == f"{ORIGINS[name]}/"


def test_a_task_is_begun_and_scored_as_it_goes(person: Any, desk: DeskApp) -> None:
    task = next(t for t in load() if t.data["kind"] == "information" and t.split == "test")
    wanted = next(e for e in evaluators_for(task) if type(e).__name__ == "Says")
    status = person.post("/begin", json={"task": task.id}, headers=HERE).json()
    assert (status["task"]["goal"], status["world"], status["score"]) == (task.goal, task.data["world"], 0.0)
    visit(person, status["start"])
    assert person.get("/status").json()["score"] == 0.0
    right = " and ".join(wanted.wanted)  # type: ignore[attr-defined]
    assert person.post("/answer", json={"answer": right}, headers=HERE).json()["score"] == 1.0
    wrong = person.post("/answer", json={"answer": "who knows"}, headers=HERE).json()
    assert wrong["score"] == 0.0
    assert any("who knows" in standing["reason"] for standing in wrong["standings"])


@pytest.mark.slow
def test_what_is_changed_counts_until_it_is_begun_again(person: Any, desk: DeskApp) -> None:
    task = next(t for t in load() if t.data["kind"] == "information")
    person.post("/begin", json={"task": task.id}, headers=HERE)
    token = desk.desk.episode.token
    person.post(f"{desk.origins['forum']}/sign-out")
    with desk.desk.episode.lock:
        desk.desk.episode.database.execute("UPDATE shop_settings SET value = 'other' WHERE id = 1")
    visit(person, f"{desk.origins['shop']}/")
    reasons = [standing["reason"] for standing in person.get("/status").json()["standings"]]
    assert any("shop_settings" in reason for reason in reasons)
    again = person.post("/begin", json={"task": ""}, headers=HERE).json()
    assert again["task"]["id"] == task.id and again["episode"] != token
    assert not any("shop_settings" in standing["reason"] for standing in again["standings"])


def test_what_is_requested_is_kept_as_an_agents_would_be(person: Any, desk: DeskApp) -> None:
    visit(person, f"{desk.origins['shop']}/nowhere?q=1")
    person.post(f"{desk.origins['forum']}/sign-in", data={"user": "x", "password": "y"})
    asked = [(e["request"]["method"], e["request"]["url"], e["response"]["status"]) for e in desk.watch.entries]
    assert asked == [("GET", "http://shop.test/nowhere?q=1", 404), ("POST", "http://forum.test/sign-in", 401)]
    assert desk.watch.entries[1]["request"]["postData"]["text"] == "user=x&password=y"
    assert desk.watch.address_here("http://shop.test/a?b=c", PORT) == f"http://shop.{DOMAIN}:{PORT}/a?b=c"


def test_tasks_are_found_by_their_words(person: Any) -> None:
    task = load().tasks[7]
    word = task.data["template"]
    found = person.get("/tasks", params={"q": f"{word} {task.data['world']}/"}).json()
    assert found and all(word in one["id"] for one in found)
    assert person.get("/tasks", params={"q": "no such words at all"}).json() == []
    assert person.post("/begin", json={"task": "no/such"}, headers=HERE).status_code == 404
    assert person.post("/begin", json={"task": "*"}, headers=HERE).json()["task"]


def test_other_pages_cannot_play_here(person: Any, desk: DeskApp) -> None:
    before = desk.desk.episode.token
    for origin in ({}, {"origin": "http://evil.test"}, {"origin": desk.origins["shop"]}):
        assert person.post("/begin", json={"task": "*"}, headers=origin).status_code == 403
        assert person.post("/answer", json={"answer": "x"}, headers=origin).status_code == 403
    assert person.post("/answer", content="not json", headers=HERE).status_code == 403
    assert person.post("/answer", json=[1], headers=HERE).status_code == 403
    assert (desk.desk.episode.token, desk.desk.answer) == (before, "")
    assert person.get("http://127.0.0.1/").status_code == 404
    assert person.get("http://elsewhere.test/").status_code == 404


@pytest.mark.slow
def test_what_a_page_shows_is_read_by_a_browser_of_the_desks(person: Any, desk: DeskApp) -> None:
    task = next(t for t in load() if any(type(e).__name__ == "PageHolds" for e in evaluators_for(t)))
    status = person.post("/begin", json={"task": task.id}, headers=HERE).json()
    visit(person, status["start"])
    standings = person.get("/status").json()["standings"]
    (shown,) = [one for one in standings if one["about"] == "What a page shows"][:1]
    assert "cannot be judged" not in shown["reason"]
