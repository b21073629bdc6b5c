"""The web framework of the embedded sites: parsing of requests, transactions, login, security headers."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentgym_envs.webarena.sites import clock
from agentgym_envs.webarena.sites.episodes import HEADER, Episode, episodes
from agentgym_envs.webarena.sites.framework import app as framework_app
from agentgym_envs.webarena.sites.framework.app import MAX_BODY_BYTES, make_app
from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.fields import MOST_FIELDS, Fields
from agentgym_envs.webarena.sites.framework.login import cookie_name
from agentgym_envs.webarena.sites.framework.paging import Paging
from agentgym_envs.webarena.sites.framework.rendering import money, paragraphs, plural
from agentgym_envs.webarena.sites.framework.responses import RawResponse, Redirect
from agentgym_envs.webarena.sites.framework.site import ORIGINS, PASSWORD, Routes, load_site
from agentgym_envs.webarena.sites.world import world
from tests.webarena.embedded import client

ROUTES = Routes()


@ROUTES.post("/halfway")
def halfway(context: RequestContext) -> Any:
    context.flash("written before the failure")
    raise ValueError("halfway")


@ROUTES.get("/writes")
def writes(context: RequestContext) -> Any:
    context.flash("a GET request must not write")
    return RawResponse("")


@ROUTES.get("/whoami")
def whoami(context: RequestContext) -> Any:
    return RawResponse(str(context.account))


@ROUTES.get("/mine")
def mine(context: RequestContext) -> Any:
    context.require_login()
    return RawResponse("yours")


@ROUTES.get("/row/{id:int}")
def row(context: RequestContext, id: int) -> Any:
    context.one("SELECT 1 FROM web_logins WHERE account = ?", id)
    return RawResponse("")


@ROUTES.post("/kept")
def kept(context: RequestContext) -> Any:
    context.flash(context.form.text("text"), "notice")
    return context.redirect_back("/whoami")


@ROUTES.get("/no")
def no(context: RequestContext) -> Any:
    context.require(False, "Not this one.")
    return Redirect("/")


@pytest.fixture
def forum(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Any, Episode]]:
    """The forum with additional routes. Some of their handlers fail."""
    changed = replace(load_site("forum"), routes=(*ROUTES.all, *load_site("forum").routes))
    monkeypatch.setattr(framework_app, "load_site", lambda name: changed)
    http, episode = client("forum")
    yield http, episode
    episodes().close(episode)


def messages(episode: Episode) -> list[str]:
    return [text for (text,) in episode.database.execute("SELECT text FROM web_messages").fetchall()]


def test_a_failing_handler_is_rolled_back_and_recorded_as_our_failure(forum: tuple[Any, Episode]) -> None:
    http, episode = forum
    response = http.post("/halfway")
    assert (response.status_code, response.text) == (500, "Something went wrong on our side.")
    assert messages(episode) == []
    assert episode.failures == ["POST /halfway: ValueError: halfway"]


def test_a_get_handler_cannot_write(forum: tuple[Any, Episode]) -> None:
    http, episode = forum
    assert http.get("/writes").status_code == 500
    assert "AssertionError" in episode.failures[0]


def test_an_unknown_episode_token_gets_a_plain_404() -> None:
    http, episode = client("forum")
    for headers in ({HEADER: ""}, {HEADER: "guessed"}, {HEADER: episode.token[:-1]}, {HEADER: "\x7f'--"}):
        response = http.get("/", headers=headers)
        assert (response.status_code, response.headers["content-type"]) == (404, "text/plain; charset=utf-8")
    episodes().close(episode)
    assert http.get("/").status_code == 404
    assert http.post("/sign-out").status_code == 404


def test_an_unknown_host_gets_404() -> None:
    http, episode = client("forum")
    assert http.get("http://elsewhere.test/").status_code == 404
    episodes().close(episode)


def test_impossible_ids_get_404(forum: tuple[Any, Episode]) -> None:
    http, episode = forum
    for id in ("7", "99999999999999999999999999"):
        assert http.get(f"/row/{id}").status_code == 404
    assert http.get("/no").status_code == 403
    assert "Not this one." in http.get("/no").text
    assert http.get(f"/row/{'9' * 5_000}").status_code == 404
    assert http.put("/").status_code == 405
    assert episode.failures == []


def test_a_form_that_is_too_large_is_refused(forum: tuple[Any, Episode]) -> None:
    http, episode = forum
    assert http.post("/kept", data={"text": "x" * MAX_BODY_BYTES}).status_code == 413
    assert messages(episode) == []


def test_users_sign_out_and_sign_in(forum: tuple[Any, Episode]) -> None:
    http, episode = forum
    owner = http.get("/whoami").text
    assert owner != "0"
    name = episode.database.execute("SELECT name FROM forum_users WHERE id = ?", (owner,)).fetchone()[0]
    assert http.post("/sign-out").headers["location"] == "/"
    assert http.get("/whoami").text == "0"
    assert http.get("/mine").headers["location"] == "/sign-in?after=%2Fmine"
    wrong = http.post("/sign-in", data={"user": name, "password": "guess", "after": "/mine"})
    assert wrong.status_code == 401 and name in wrong.text
    right = http.post("/sign-in", data={"user": name.upper(), "password": PASSWORD, "after": "/mine"})
    assert right.headers["location"] == "/mine"
    assert http.get("/whoami").text == owner
    assert http.get("/mine").text == "yours"
    http.cookies.clear()
    http.cookies.set(cookie_name(episode), "made up")
    assert http.get("/whoami").text == "0"


@pytest.mark.parametrize("after", ["//evil.test/", "http://evil.test/", "/\\evil.test", "javascript:alert(1)"])
def test_sign_in_never_redirects_to_another_site(after: str) -> None:
    http, episode = client("forum")
    name = episode.database.execute("SELECT name FROM forum_users WHERE id = 1").fetchone()[0]
    data = {"user": name, "password": PASSWORD, "after": after}
    assert http.post("/sign-in", data=data).headers["location"] == "/"
    episodes().close(episode)


def test_sign_out_affects_one_episode_only(forum: tuple[Any, Episode]) -> None:
    http, _ = forum
    http.post("/sign-out")
    assert http.get("/whoami").text == "0"
    another = episodes().open(world(1))
    assert http.get("/whoami", headers={HEADER: another.token}).text == "1"
    episodes().close(another)


def test_cross_origin_forms_are_refused(forum: tuple[Any, Episode]) -> None:
    http, episode = forum
    for origin in ("http://evil.test", "null", f"{ORIGINS['forum']}:81"):
        assert http.post("/sign-out", headers={"origin": origin}).status_code == 403
    assert messages(episode) == []
    assert http.post("/sign-out", headers={"origin": ORIGINS["forum"]}).status_code == 303


def test_flash_messages_are_shown_once_and_escaped(forum: tuple[Any, Episode]) -> None:
    http, _ = forum
    same_site = {"referer": f"{ORIGINS['forum']}/no?x=1"}
    assert http.post("/kept", data={"text": "<b>&"}, headers=same_site).headers["location"] == "/no?x=1"
    for referrer, target in (("http://evil.test/no", "/whoami"), (f"{ORIGINS['forum']}//evil.test/x", "/")):
        assert http.post("/kept", data={}, headers={"referer": referrer}).headers["location"] == target
    assert '<p role="status" class="message notice">&lt;b&gt;&amp;</p>' in http.get("/").text
    assert "&lt;b&gt;&amp;" not in http.get("/").text


def test_every_page_forbids_foreign_scripts(forum: tuple[Any, Episode]) -> None:
    http, _ = forum
    for path in ("/", "/nowhere", "/whoami", "/sign-in", "/no"):
        policy = http.get(path).headers["content-security-policy"]
        assert "default-src 'none'; script-src 'self';" in policy
        assert "form-action 'self'" in policy and "frame-ancestors 'none'" in policy


def test_episodes_are_isolated() -> None:
    one, first = client("forum")
    other, second = client("forum", app=make_app(origins={"forum": ORIGINS["forum"]}))
    one.post("/sign-out")
    assert messages(first) == ["You have signed out."] and messages(second) == []
    assert "You have signed out." not in other.get("/").text
    for episode in (first, second):
        episodes().close(episode)


def test_an_episode_that_closes_during_a_request_gets_404() -> None:
    http, episode = client("forum")
    with episode.lock:  # as an earlier request would hold it
        done = threading.Thread(target=episodes().close, args=(episode,))
        done.start()
    done.join()
    assert http.get("/").status_code == 404
    assert episode.failures == []


@given(st.binary(max_size=400))
def test_fields_accept_any_bytes(encoded: bytes) -> None:
    fields = Fields.parse(encoded)
    for name in ("", "a", *(name for name, _ in fields)):
        assert isinstance(fields.text(name), str)
        assert 0 <= fields.number(name) <= 10**12
        assert all(isinstance(number, int) for number in fields.numbers(name))
        assert (fields.money(name) or 0) >= 0
        assert fields.choice(name, ("x",), "y") in ("x", "y")
        fields.is_checked(name)
    assert Fields.parse(fields.changed().removeprefix("?").encode()).changed() == fields.changed()


def test_fields_parse_a_form_body() -> None:
    fields = Fields.parse(b"a=1&a=+two%0D%0Alines+&n=-5&price=%241%2C249.5&on=on&off=0&big=99999999999999999999&z=%00x")
    assert fields.all("a") == ["1", " two\r\nlines "]
    assert fields.text("a") == "two\nlines"
    assert (fields.text("none", "other"), fields.text("a", most=3)) == ("other", "two")
    assert (fields.number("n", 3), fields.number("n", 3, least=-9), fields.number("big", 3)) == (3, -5, 3)
    assert (fields.money("price"), fields.money("n"), fields.money("a")) == (124_950, None, None)
    assert (fields.is_checked("on"), fields.is_checked("off"), fields.is_checked("none")) == (True, False, False)
    assert fields.text("z") == "x"
    assert "a" in fields and "b" not in fields
    assert Fields.parse(b"q=lamp&page=3").changed(page=4, sort=None) == "?q=lamp&page=4"
    assert len(list(Fields.parse(b"&".join(b"x=1" for _ in range(2 * MOST_FIELDS))))) == MOST_FIELDS


@pytest.mark.parametrize(
    ("count", "page", "pages", "shown"),
    [
        (0, "1", [1], (0, 0)),
        (10, "1", [1], (1, 10)),
        (11, "2", [1, 2], (11, 11)),
        (95, "5", [1, 0, 3, 4, 5, 6, 7, 0, 10], (41, 50)),
        (95, "99", [1, 0, 8, 9, 10], (91, 95)),
        (95, "-1", [1, 2, 3, 0, 10], (1, 10)),
    ],
)
def test_paging_limits_the_page_number(count: int, page: str, pages: list[int], shown: tuple[int, int]) -> None:
    paging = Paging.of(Fields([("page", page)]), count, 10)
    assert paging.pages == pages
    assert (paging.first_shown, paging.last_shown) == shown


def test_numbers_and_dates_are_formatted() -> None:
    assert [money(cents) for cents in (0, 5, 123_456_789, -250)] == ["$0.00", "$0.05", "$1,234,567.89", "-$2.50"]
    assert [plural(count, "item") for count in (0, 1, 1200)] == ["0 items", "1 item", "1,200 items"]
    assert plural(2, "reply", "replies") == "2 replies"
    assert clock.stamp() == "2026-03-16 10:30:00"
    assert (clock.day(clock.stamp()), clock.minute("2025-12-01 00:05:00")) == ("Mar 16, 2026", "Dec 1, 2025, 12:05 AM")
    moments = ("2026-03-16 10:29:30", "2026-03-16 09:30:00", "2026-03-13 10:30:00", "2024-01-01 00:00:00")
    assert [clock.ago(moment) for moment in moments] == ["just now", "1 hour ago", "3 days ago", "2 years ago"]


def test_paragraphs_escape_and_link() -> None:
    hostile = (
        'Look: http://a.test/x?y=1&z="><script>alert(1)</script>\nand\n\n<img src=x onerror=alert(1)> javascript:1'
    )
    html = str(paragraphs(hostile))
    assert '<a href="http://a.test/x?y=1&amp;z=" rel="nofollow">' in html
    assert "<script" not in html and "<img" not in html
    assert html.count("<p>") == 2 and "<br>and</p>" in html


@given(st.text(max_size=200))
def test_paragraphs_of_any_text_contain_only_our_tags(text: str) -> None:
    bare = str(paragraphs(text))
    for tag in ("<p>", "</p>", "<br>", "</a>"):
        bare = bare.replace(tag, "")
    assert all(part.startswith("<a href=") for part in _tags(bare))


def _tags(html: str) -> list[str]:
    return [f"<{part}" for part in html.split("<")[1:]]


@pytest.mark.slow
def test_worlds_are_cached_and_differ_by_seed() -> None:
    assert world(1) is world(1)
    assert world(1).digest != world(21).digest
