"""Tabs, windows that pages open and close, and the history."""

import time

import pytest

from agentgym_envs.errors import InvalidAction
from agentgym_envs.webarena.actions import Action, Click, CloseTab, GoBack, GoForward, NewTab, TabFocus, Wait
from agentgym_envs.webarena.browser.session import MAX_TABS
from agentgym_envs.webarena.browser.tab import SettleTimeouts
from tests.waiting import until
from tests.webarena.conftest import Agent, Reply, html

pytestmark = pytest.mark.slow
TIMEOUTS = SettleTimeouts(busy=30, load=60)
"""For the agent that the tests share: a busy machine gets the time that it needs, and a wait in vain is noticed."""


def refused(agent: Agent, action: Action) -> str:
    with pytest.raises(InvalidAction) as error:
        agent.act(action)
    return str(error.value)


def titles(agent: Agent) -> list[str]:
    return [tab.title for tab in agent.session.tabs]


@pytest.mark.rotating(always=3)
@pytest.mark.parametrize("target", ["target=_blank", "target=_blank rel=opener", "target=other"])
@pytest.mark.parametrize("seconds", [0.0, 0.4])
def test_a_link_can_open_a_window(agent: Agent, target: str, seconds: float) -> None:
    agent.site.put("/next", Reply(html("<h1>There</h1>", title="Next"), seconds=seconds))
    agent.show(f"<a href=/next {target}>Next</a>", title="First")
    agent.click("link", "Next")
    assert (agent.path, titles(agent), agent.session.settled) == ("/next", ["First", "Next"], True)
    agent.act(CloseTab())
    assert (agent.path, titles(agent)) == ("/", ["First"])


@pytest.mark.parametrize("features", ["", ", '_blank', 'noopener'", ", '', 'popup,width=300'"])
def test_a_script_can_open_a_window(agent: Agent, features: str) -> None:
    agent.site.put("/next", Reply(html("", title="Next"), seconds=0.2))
    agent.show(f"<button onclick=\"window.open('/next'{features})\">Go</button>", title="First")
    agent.click("button", "Go")
    assert (agent.path, titles(agent)) == ("/next", ["First", "Next"])


@pytest.mark.rotating
def test_a_very_slow_window_is_awaited(agent: Agent) -> None:
    agent.site.put("/next", Reply(html("", title="Next"), seconds=3))
    agent.show("<a href=/next target=_blank>Next</a>", title="First")
    agent.click("link", "Next")
    assert (agent.path, titles(agent)) == ("/next", ["First", "Next"])


def test_a_window_can_be_written_by_its_opener(agent: Agent) -> None:
    script = "const w = window.open(); w.document.title = 'New'; w.document.body.innerHTML = '<h1>Written</h1>'"
    agent.show(f'<button onclick="{script}">Go</button>')
    agent.click("button", "Go")
    assert "heading 'Written'" in agent.tree and agent.url == "about:blank"


def test_a_window_can_open_another_window(agent: Agent) -> None:
    """The first window is closed before the second one opens another."""
    agent.site.put("/2", html("<a href=/3 target=_blank>Third</a>", title="Second"))
    agent.site.put("/3", Reply(html("", title="Third"), seconds=0.3))
    agent.show("<a href=/2 target=_blank>Second</a>", title="First")
    agent.click("link", "Second")
    agent.act(TabFocus(0))
    agent.act(CloseTab())
    agent.click("link", "Third")
    assert titles(agent) == ["Second", "Third"] and agent.path == "/3"


def test_a_window_with_a_name_in_use_is_reused(agent: Agent) -> None:
    agent.site.put("/2", html("", title="Second"))
    agent.site.put("/3", Reply(html("", title="Third"), seconds=0.2))
    agent.show("<a href=/2 target=w>Second</a><a href=/3 target=w>Third</a>", title="First")
    agent.click("link", "Second")
    agent.act(TabFocus(0))
    start = time.monotonic()
    agent.click("link", "Third")
    assert len(agent.session.tabs) == 2 and time.monotonic() - start < TIMEOUTS.busy
    agent.act(TabFocus(1))
    assert agent.session.view.title == "Third"


def test_two_windows_can_open_at_once(agent: Agent) -> None:
    for name in "23":
        agent.site.put(f"/{name}", html("", title=name))
    agent.show("<button onclick=\"window.open('/2'); window.open('/3')\">Go</button>", title="First")
    agent.click("button", "Go")
    assert len(agent.session.tabs) >= 2 and agent.path in ("/2", "/3")


def test_too_many_windows_are_closed(fresh: Agent) -> None:
    fresh.show("<button onclick=\"for (let i = 0; i < 15; i++) window.open('/')\">Go</button>", title="First")
    for _ in range(3):
        note = fresh.click("button", "Go")
        fresh.act(TabFocus(0))
        if note:
            break
    assert len(fresh.session.tabs) == MAX_TABS and "closed at once" in note
    assert "already" in refused(fresh, NewTab())


@pytest.mark.parametrize("when", ["onclick='window.close()'", "onclick='setTimeout(() => window.close(), 0)'"])
def test_a_window_that_closes_itself_gives_a_note(agent: Agent, when: str) -> None:
    agent.site.put("/2", html(f"<button {when}>Close</button>", title="Second"))
    agent.show("<button onclick=\"window.open('/2')\">Go</button>", title="First")
    agent.click("button", "Go")
    note = agent.click("button", "Close")
    assert (titles(agent), agent.path) == (["First"], "/") and "closed" in note


def test_the_only_tab_is_replaced_if_it_closes_itself(agent: Agent) -> None:
    agent.show("<button onclick=\"window.open('', '_self'); window.close()\">Close</button>")
    agent.click("button", "Close")
    assert len(agent.session.tabs) == 1
    agent.show("<p>Still here</p>", "/2")
    assert "Still here" in agent.tree


def test_ids_refer_to_the_observed_tab(fresh: Agent) -> None:
    fresh.site.put("/next", Reply(html("<button>Agree</button><script>setTimeout(close, 300)</script>", title="Next")))
    fresh.show("<a href=/next target=_blank>Next</a><button onclick=\"document.title = 'bought'\">Buy</button>")
    fresh.click("link", "Next")
    agree = fresh.find("button", "Agree")
    until(lambda: len(fresh.session.tabs) == 1)
    assert "The tab that you saw is gone" in refused(fresh, Click(agree))
    fresh.act(Wait())
    assert "bought" not in fresh.tree
    fresh.click("button", "Buy")
    assert "bought" in fresh.tree


def test_tabs_are_opened_focused_and_closed(agent: Agent) -> None:
    agent.show("<p>One</p>", title="First")
    assert "only tab" in refused(agent, CloseTab())
    agent.act(NewTab())
    assert agent.url == "about:blank" and len(agent.session.tabs) == 2
    agent.show("<p>Two</p>", "/2", title="Second")
    assert "tabs go from 0 to 1" in refused(agent, TabFocus(2))
    agent.act(TabFocus(0))
    assert "StaticText 'One'" in agent.tree
    agent.act(CloseTab())
    assert "StaticText 'Two'" in agent.tree and len(agent.session.tabs) == 1


def test_history_goes_back_and_forward(fresh: Agent) -> None:
    assert "go back" in refused(fresh, GoBack())
    fresh.show("<p>One</p>", "/1")
    assert "go back" in refused(fresh, GoBack())  # to the empty page before the episode
    fresh.show("<a href=#x>Two</a>", "/2")
    fresh.click("link", "Two")
    fresh.act(GoBack())
    assert fresh.path == "/2"
    fresh.act(GoBack())
    assert fresh.path == "/1" and "StaticText 'One'" in fresh.tree
    fresh.act(GoForward())
    fresh.act(GoForward())
    assert fresh.path == "/2#x"
    assert "go forward" in refused(fresh, GoForward())


def test_going_back_to_a_form_result_keeps_the_page(fresh: Agent) -> None:
    fresh.site.put("/found", html("<a href=/thing>Thing</a>", title="Found"))
    fresh.site.put("/thing", html("", title="Thing"))
    fresh.show("<form action=/found method=post><input name=q><button>Find</button></form>")
    fresh.click("button", "Find")
    fresh.click("link", "Thing")
    assert "http://a.test/found" in fresh.act(GoBack())  # it is not requested again
    assert (fresh.path, fresh.session.view.title, fresh.site.hits("/found")) == ("/thing", "Thing", 1)
