"""Scripts of the embedded sites: lists that reload in place or load as one scrolls, suggestions, calendars."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from typing import Any

import gymnasium as gym
import pytest

from agentgym_envs.webarena.browser import loop
from agentgym_envs.webarena.sites.framework.site import ORIGINS
from tests.waiting import until

pytestmark = pytest.mark.slow


class Visitor:
    """Acts on pages by the role and name of elements."""

    def __init__(self, env: Any) -> None:
        self.env = env
        env.reset(seed=1, options={"task": "webarena/shopping-offer-price/1/1"})

    @property
    def tree(self) -> str:
        return str(self.env.session.view.tree)

    @property
    def url(self) -> str:
        return str(self.env.session.view.url)

    @property
    def page(self) -> str:
        """The tree without the numbers of elements."""
        return re.sub(r"\[\d+\] | focused: True", "", self.tree)

    def act(self, action: str) -> None:
        *_, info = self.env.step(action)
        assert info["invalid_action"] is None, info["invalid_action"]

    def visit(self, site: str, path: str) -> None:
        self.act(f"goto [{ORIGINS[site]}{path}]")

    def find(self, role: str, name: str) -> str:
        found = re.search(rf"\[(\d+)\] {role} '{re.escape(name)}'", self.tree)
        assert found, f"no {role} {name!r} in {self.tree}"
        return found[1]

    def click(self, role: str, name: str) -> None:
        self.act(f"click [{self.find(role, name)}]")

    def type(self, role: str, name: str, text: str, *, enter: bool = False) -> None:
        self.act(f"type [{self.find(role, name)}] [{text}] [{int(enter)}]")

    def js(self, expression: str) -> Any:
        return loop.run(self.env.session.evaluate(expression))


@pytest.fixture(scope="module")
def env() -> Iterator[Any]:
    with gym.make("AgentGym/WebArena-v0", grammar="bare", table_version=2) as made:
        yield made.unwrapped


@pytest.fixture
def visitor(env: Any) -> Visitor:
    return Visitor(env)


def test_a_grid_reloads_in_place_and_is_the_page_of_its_address(visitor: Visitor) -> None:
    """After a page, a filter, an order, back and forward: the same tree as after a visit of the address."""
    visitor.visit("admin", "/orders")
    visitor.js("globalThis.stays = 1")
    first, seen = visitor.url, []
    visitor.click("link", "2")
    assert visitor.url == f"{first}?page=2"
    seen.append((visitor.url, visitor.page))
    visitor.click("DisclosureTriangle", "Filters")
    visitor.type("textbox", "Customer", "mara", enter=True)
    assert "Active filters" in visitor.page and "customer=mara" in visitor.url
    seen.append((visitor.url, visitor.page))
    visitor.click("link", "Grand Total")
    assert "sort=" in visitor.url and "customer=mara" in visitor.url
    seen.append((visitor.url, visitor.page))
    visitor.act("go_back")
    assert (visitor.url, visitor.page) == seen[1]
    visitor.act("go_forward")
    assert (visitor.url, visitor.page) == seen[2]
    assert visitor.js("globalThis.stays") == 1, "one document all the time"
    for url, page in seen:
        visitor.act(f"goto [{url}]")
        assert visitor.page == page
    assert visitor.js("globalThis.stays") is None


def test_links_to_other_pages_leave_a_grid(visitor: Visitor) -> None:
    visitor.visit("admin", "/orders")
    visitor.js("globalThis.stays = 1")
    (number,) = re.findall(r"link '(\d{9})'", visitor.tree)[:1]
    visitor.click("link", number)
    assert re.fullmatch(rf"{ORIGINS['admin']}/orders/\d+", visitor.url) and visitor.js("globalThis.stays") is None
    visitor.act("go_back")
    assert visitor.url == f"{ORIGINS['admin']}/orders" and f"link '{number}'" in visitor.tree


def test_issues_are_filtered_in_place(visitor: Visitor) -> None:
    visitor.visit("code", "/")
    visitor.click("link", "Issues")
    issue = visitor.js(
        "[...document.querySelectorAll('main a')].map(a => a.pathname).find(p => p.includes('/-/issues/'))"
    )
    visitor.visit("code", issue.rpartition("/")[0])
    visitor.js("globalThis.stays = 1")
    visitor.type("textbox", "Search in title and text", "zzzz", enter=True)
    assert "There are no issues like this." in visitor.page and "search=zzzz" in visitor.url
    visitor.click("link", "Clear")
    assert "There are no issues" not in visitor.page and visitor.js("globalThis.stays") == 1


@pytest.mark.parametrize(
    ("site", "box", "text"),
    [("shop", "Search", "lamp"), ("admin", "Search", "gibson"), ("encyclopedia", "Search the encyclopedia", "al")],
)
def test_a_search_box_suggests_while_one_types(site: str, box: str, text: str, visitor: Visitor) -> None:
    visitor.visit(site, "/")
    visitor.type("searchbox", box, text)
    found = visitor.js("[...document.querySelectorAll('.suggestions a')].map(link => link.textContent)")
    assert 0 < len(found) <= 6 and any(text in one.lower() for one in found)
    assert "list 'Suggestions'" in visitor.tree and all(f"link '{one}'" in visitor.tree for one in found)
    visitor.act("press [Escape]")
    assert "Suggestions" not in visitor.tree
    visitor.type("searchbox", box, f"{text} zzzz")
    assert "Suggestions" not in visitor.tree, "nothing is like this"
    visitor.type("searchbox", box, text)
    visitor.click("link", found[0])
    assert found[0].partition(",")[0].lower() in visitor.page.lower() and "Suggestions" not in visitor.tree


def test_a_calendar_fills_in_a_day(visitor: Visitor) -> None:
    visitor.visit("admin", "/orders")
    visitor.click("DisclosureTriangle", "Filters")
    visitor.click("button", "Open calendar")
    assert "dialog 'Calendar'" in visitor.tree and "March 2026" in visitor.page
    visitor.click("button", "Previous month")
    assert "February 2026" in visitor.page and "button '2026-02-28'" in visitor.tree
    assert "button '2026-02-29'" not in visitor.tree
    visitor.click("button", "2026-02-14")
    assert "dialog" not in visitor.tree and "value: '2026-02-14'" in visitor.tree
    visitor.click("button", "Open calendar")
    assert "February 2026" in visitor.page, "it opens at the day of its field"
    visitor.click("button", "Close")
    assert "value: '2026-02-14'" in visitor.tree
    visitor.click("button", "Apply Filters")
    assert "moment_from=2026-02-14" in visitor.url and "Active filters" in visitor.page


def test_a_stream_shows_every_post_once_in_order_and_stays_small(visitor: Visitor) -> None:
    """Scrolling to the end shows all posts; on the way back the parts above return. The text is never truncated."""
    database = visitor.env.session.state["episode"].database
    hidden = "SELECT post FROM forum_hidden WHERE account = 1"
    blocked = "SELECT user FROM forum_blocks WHERE account = 1"
    query = (
        f"SELECT title FROM forum_posts WHERE removed = 0 AND deleted = 0 AND id NOT IN ({hidden}) "
        f"AND author NOT IN ({blocked}) ORDER BY created DESC, id DESC"
    )
    titles = [" ".join(row[0].split()) for row in database.execute(query)]
    titles_shown = "[...document.querySelectorAll('.stream h2')].map(e => e.innerText.trim())"
    visitor.visit("forum", f"/stream?page={len(titles) // 8 - 3}")
    first = visitor.js(titles_shown)[0]
    seen: list[str] = []
    for direction in ("down", "up"):
        for _ in range(14):
            shown = visitor.js(titles_shown)
            start = titles.index(shown[0])
            assert shown == titles[start : start + len(shown)] and 1 <= len(shown) <= 16
            assert shown[-1] in visitor.tree, "the text is truncated"
            assert not seen or titles.index(seen[-1]) + 1 >= start or direction == "up", "posts were skipped"
            seen += [one for one in shown if one not in seen]
            visitor.act(f"scroll [{direction}]")
        assert direction == "up" or seen == titles[titles.index(first) :]
    assert visitor.js(titles_shown)[0] != first and titles.index(visitor.js(titles_shown)[0]) < titles.index(first)


def test_the_stream_notices_a_scroll_while_it_waits_for_a_frame(visitor: Visitor) -> None:
    pages = "[...document.querySelectorAll('.stream section')].map(e => e.dataset.page).join()"
    visitor.visit("forum", "/stream")
    visitor.js("void (globalThis.requestAnimationFrame = callback => setTimeout(callback, 500))")
    for shown in ("1,2", "2,3", "3,4"):
        visitor.js("scrollTo(0, 1e6)")
        until(partial(lambda wanted: visitor.js(pages) == wanted, shown))
