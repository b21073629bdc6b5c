"""Every page and every form of the embedded sites, with hostile input."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urlencode

import pytest

from agentgym_envs.webarena.sites.episodes import Episode, episodes
from agentgym_envs.webarena.sites.framework.site import HOSTS
from tests.webarena.crawling import Form, Page, Paths, crawl
from tests.webarena.embedded import client

HOSTILE = [
    "<script>alert(1)</script>",
    "\"'><img src=x onerror=alert(1)>",
    "'; DROP TABLE shop_orders; --",
    "{{ 7 * 7 }}{% raw %}",
    "\x00\x1b[2J\u202e",
    "A" * 9_000,
    "-1",
    "999999999999999999999999",
    "1e308",
    "NaN",
    "0",
    "../../../../etc/passwd",
    "javascript:alert(1)",
    "http://evil.test/\r\nSet-Cookie: a=b",
    "%00%ff",
    "🙂" * 40,
    "2026-02-31",
    "",
]
LEFT_OUT = {"/sign-out", "/sign-in"}


@pytest.fixture(params=list(HOSTS))
def visited(request: pytest.FixtureRequest) -> Iterator[tuple[str, Any, Episode]]:
    http, episode = client(request.param)
    yield request.param, http, episode
    episodes().close(episode)


class Foreign(HTMLParser):
    """Finds elements that no template has: inline scripts, event handlers, and images or links of other origins."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        script = tag == "script" and not given.get("src", "").startswith(("/framework/", "/static/"))
        handler = any(name.startswith("on") for name in given)
        picture = tag == "img" and not given.get("src", "").startswith(("data:image/", "/"))
        link = given.get("href", "").lower().strip().startswith(("javascript:", "data:text"))
        if script or handler or picture or link:
            self.found.append(self.get_starttag_text() or tag)


def foreign(html: str) -> list[str]:
    return Foreign(html).found


def forms_of(http: Any, name: str, *, each: int = 4) -> list[Form]:
    """Return a few forms of every kind from pages of every kind."""
    found: dict[Any, list[Form]] = {}
    paths = Paths(name)
    for url, html in crawl(http, name, each=each, most=1_200):
        for form in Page(url, html).forms:
            kind = form.method, paths.route(form.method.upper(), form.action), tuple(n for _, n, _ in form.fields)[:6]
            found.setdefault(kind, []).append(form)
    return [form for same in found.values() for form in same[:2]]


@pytest.mark.slow
@pytest.mark.rotating
def test_pages_have_no_broken_links(visited: tuple[str, Any, Episode]) -> None:
    name, http, episode = visited
    missing, links = list[tuple[str, str]](), set[str]()
    for url, html in crawl(http, name, each=3):
        for link in Page(url, html).links:
            if link not in links and len(links) < 1_500:
                links.add(link)
                if not link.startswith(("/static/", "/framework/")) and http.get(link).status_code >= 400:
                    missing.append((url, link))
    assert missing == [] and episode.failures == []
    assert len(links) > 20


@pytest.mark.slow
@pytest.mark.rotating
def test_forms_and_post_routes_correspond(visited: tuple[str, Any, Episode]) -> None:
    name, http, _ = visited
    paths = Paths(name)
    forms = forms_of(http, name, each=25)
    lost = {(form.method, form.action) for form in forms if paths.route(form.method.upper(), form.action) is None}
    assert lost == set()
    reached = {paths.route("POST", form.action) for form in forms if form.method == "post"}
    assert paths.all("POST") - reached - LEFT_OUT == set(), "nobody can send these"


@pytest.mark.rotating(always=2)
@pytest.mark.slow
def test_every_field_has_an_accessible_name(visited: tuple[str, Any, Episode]) -> None:
    """Every visible field has a label: by `for`, as an ancestor, or by aria-label."""
    name, http, _ = visited
    unnamed = set()
    for url, html in crawl(http, name, each=1):
        labelled = set(re.findall(r'<label[^>]*\sfor="([^"]+)"', html))
        wrapped = "".join(re.findall(r"<label(?:(?!</label>).)*</label>", html, re.DOTALL))
        for tag in re.findall(r"<(?:input|select|textarea)\b[^>]*>", html):
            kind = (re.search(r'type="(\w+)"', tag) or ["", ""])[1]
            known = (re.search(r'\sid="([^"]+)"', tag) or ["", ""])[1] in labelled
            if kind not in ("hidden", "submit") and not (known or "aria-label" in tag or tag in wrapped):
                unnamed.add((url, tag))
    assert unnamed == set()


@pytest.mark.slow
@pytest.mark.rotating  # ten: one site in each run
@pytest.mark.parametrize("turn", [0, 1])
def test_sites_survive_hostile_forms(visited: tuple[str, Any, Episode], turn: int) -> None:
    name, http, episode = visited
    rng = random.Random(f"{name}/{turn}")
    forms = forms_of(http, name)
    rng.shuffle(forms)
    for form in forms:
        for sent in _attacks(form, rng):
            if form.method == "post":
                response = http.post(form.action, content=urlencode(sent, errors="replace"), headers=_FORM)
            else:
                short = [(name, value[:400]) for name, value in sent]  # servers limit the length of URLs
                response = http.get(f"{form.action.partition('?')[0]}?{urlencode(short, errors='replace')}")
            assert response.status_code < 500, (form, sent, episode.failures)
            assert not foreign(response.text), (form, sent)
    assert episode.failures == []
    http.cookies.clear()  # sign in as the default account again
    for url, html in crawl(http, name, each=2, most=150):
        assert not foreign(html), url
    assert episode.failures == []
    assert http.get("/").status_code == 200
    assert episode.database.execute("SELECT COUNT(*) FROM shop_orders").fetchone()[0] > 100


_FORM = {"content-type": "application/x-www-form-urlencoded"}


def _attacks(form: Form, rng: random.Random) -> Iterator[list[tuple[str, str]]]:
    """Yield hostile values in typed fields, then also in selections and hidden fields, then an empty form."""
    typed = ("text", "search", "textarea", "email", "number", "date", "tel", "url", "password")
    one = rng.choice(HOSTILE)
    yield [(name, one if kind in typed else value) for kind, name, value in form.fields if kind != "option"]
    yield [(name, rng.choice(HOSTILE)) for _, name, _ in form.fields]
    chosen = {name: value for _, name, value in form.fields}
    yield [(name, rng.choice([value, rng.choice(HOSTILE)])) for name, value in chosen.items()]
    yield []
