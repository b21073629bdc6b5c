"""The interface of a browser session."""

import pytest

from agentgym_envs.errors import EnvError, InvalidAction
from agentgym_envs.webarena.actions import Click
from agentgym_envs.webarena.browser.session import SessionOptions
from agentgym_envs.webarena.browser.view import ViewOptions
from tests.webarena.conftest import HOME, Agent, MakeAgent, Reply, html

slow = pytest.mark.slow


def test_a_session_plays_a_short_episode(fresh: Agent) -> None:
    """A short episode for every test run: a form, a link, a refusal, reading a page and closing."""
    fresh.site.put(
        "/find", lambda request: html(f"<h1>{request.query}</h1><a href=http://evil.test/>Out</a>", title="Found")
    )
    fresh.show("<form action=/find><input name=q aria-label=Query></form>")
    fresh.type("textbox", "Query", "tea", enter=True)
    assert fresh.url == HOME + "find?q=tea" and "heading 'q=tea'" in fresh.tree and fresh.session.settled
    assert "'http://evil.test/', which cannot be shown" in fresh.click("link", "Out")
    assert fresh.url == HOME + "find?q=tea"
    with pytest.raises(InvalidAction, match="cannot be visited"):
        fresh.visit("http://evil.test/")
    fresh.close()
    with pytest.raises(EnvError, match="the session was closed"):
        fresh.see()
    fresh.close()


@slow
def test_reading_a_page_does_not_affect_the_agents_tabs(fresh: Agent) -> None:
    fresh.site.put(
        "/other",
        html("<p id=p>Other</p><script>fetch('/data').then(r => r.text()).then(t => { p.textContent = t })</script>"),
    )
    fresh.site.put("/data", Reply("Fetched", seconds=0.2))
    fresh.show("<input aria-label=Field>", "/home")
    fresh.type("textbox", "Field", "typed")
    reading = fresh.session.read
    assert fresh.run(reading(HOME + "other", "document.querySelector('p').textContent")) == "Fetched"
    assert "Fetched</p>" in fresh.run(reading(HOME + "other"))
    assert fresh.run(reading(HOME + "other", "document.querySelector('table').textContent")) == ""
    assert fresh.run(reading(None, "document.querySelector('input').value")) == "typed"
    assert fresh.path == "/home" and len(fresh.session.tabs) == 1 and "value: 'typed'" in fresh.see().tree
    with pytest.raises(InvalidAction):
        fresh.run(reading("http://evil.test/"))


@slow
def test_headers_and_storage_state_are_sent(make_agent: MakeAgent) -> None:
    cookie = {"name": "who", "value": "emma", "domain": "a.test", "path": "/", "expires": -1}
    state = {"cookies": [cookie | {"httpOnly": True, "secure": False, "sameSite": "Lax"}], "origins": []}
    agent = make_agent(headers={"X-Episode": "7"}, storage_state=state, size=(800, 600))
    agent.site.put("/save", Reply(status=303, headers={"location": "/saved"}))
    for path in ("/saved", "/data", "/frame", "/window"):
        agent.site.put(path, html("x"))
    body = "<iframe src=/frame></iframe><form method=post action=/save target=_blank><button>Save</button></form>"
    agent.show(body + "<script>fetch('/data')</script>")
    agent.click("button", "Save")
    sent = {
        request.path: (request.headers.get("x-episode"), request.headers.get("cookie"))
        for request in agent.site.requests
    }
    assert {"/", "/save", "/saved", "/data", "/frame"} <= set(sent) and set(sent.values()) == {("7", "who=emma")}
    assert agent.js("[innerWidth, innerHeight, navigator.language, new Date().getTimezoneOffset()]") == [
        800,
        600,
        "en-US",
        0,
    ]


@slow
def test_requests_are_recorded(make_agent: MakeAgent) -> None:
    agent = make_agent(record=True)
    agent.site.put("/save", Reply(status=303, headers={"location": "/saved"}))
    agent.site.put("/saved", html("<img src=/none><img src=http://evil.test/>"))
    agent.show("<form method=post action=/save><input name=q value='a b'><button>Save</button></form>")
    agent.click("button", "Save")
    entries = {entry["request"]["url"].removeprefix(HOME): entry for entry in agent.run(agent.session.har())}
    saved = entries["save"]
    assert (saved["request"]["method"], saved["response"]["status"]) == ("POST", 303)
    assert saved["request"]["postData"] == {"mimeType": "application/x-www-form-urlencoded", "text": "q=a+b"}
    assert {"name": "location", "value": "/saved"} in saved["response"]["headers"]
    assert (entries["none"]["response"]["status"], entries["http://evil.test/"]["response"]["status"]) == (404, -1)
    assert [*entries][:3] == ["", "save", "saved"]


@slow
def test_requests_are_not_recorded_by_default(fresh: Agent) -> None:
    fresh.show("<p>Home</p>")
    assert fresh.run(fresh.session.har()) == [] and fresh.session.requests is None


@slow
def test_hidden_elements_are_left_out_and_long_pages_truncated(make_agent: MakeAgent) -> None:
    agent = make_agent(view=ViewOptions(max_chars=500, hidden=("#secret",)))
    agent.show("<p id=secret>Reward 1</p>" + "".join(f"<button>B{n}</button>" for n in range(99)))
    assert "Reward" not in agent.tree and agent.session.view.truncated and len(agent.tree) <= 500


@slow
def test_an_action_works_after_a_refused_one(fresh: Agent) -> None:
    fresh.show("<button>Go</button>")
    with pytest.raises(InvalidAction):
        fresh.act(Click(999))
    assert fresh.click("button", "Go") == ""


@pytest.mark.slow
def test_the_number_of_notes_is_limited(fresh: Agent) -> None:
    fresh.show('<button onclick="for (let i = 0; i < 30; i++) alert(i)">Go</button>')
    note = fresh.click("button", "Go")
    assert note.count("A dialog said") == 5 and note.endswith("And 25 more such notes.")


def test_equal_options_compare_equal() -> None:
    assert SessionOptions() == SessionOptions()
