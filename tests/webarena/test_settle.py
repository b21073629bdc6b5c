"""After each action the page has settled: the observation shows its final state, without fixed sleeps."""

import time

import pytest

from agentgym_envs.webarena.actions import Click, GoBack, Wait
from agentgym_envs.webarena.browser.execute import execute
from agentgym_envs.webarena.browser.tab import SettleTimeouts
from tests.webarena.conftest import Agent, MakeAgent, ReceivedRequest, Reply, html

pytestmark = pytest.mark.slow
SLOW = 0.3
"""The response time of a slow server in seconds, far longer than the quiet time of a settled page."""
TIMEOUTS = SettleTimeouts(busy=30, load=60)
"""For the agent that the tests share: a busy machine gets the time that it needs, and a wait in vain is noticed."""
FAST = 10.0
"""An upper bound in seconds for what waits for none of these timeouts; it takes a tenth of a second."""
COUNT = "let n = 0; const f = () => { out.textContent = ++n; if (n < 20) setTimeout(f, 10) }; f()"

LEAVING = (
    "location = '/next'",
    "location.assign('/next')",
    "location.replace('/next')",
    "setTimeout(() => { location = '/next' }, 0)",
    "Promise.resolve().then(() => { location.href = '/next' })",
    "navigation.navigate('/next')",
    "document.querySelector('form').submit()",
    "document.querySelector('form').requestSubmit()",
    "fetch('/data').then(() => { location = '/next' })",
)
"""Scripts that leave the page."""


def arrived(title: str = "Arrived", seconds: float = 0.0) -> Reply:
    return Reply(html("<h1>There</h1>", title=title), seconds=seconds)


def button(script: str) -> str:
    return f'<button onclick="{script}">Go</button><p id=out></p>'


@pytest.mark.parametrize(
    ("script", "seconds"),
    [("location = '/next'", 0.0), ("fetch('/data').then(() => { location = '/next' })", 0.0)]
    + [(script, SLOW) for script in LEAVING],
)
def test_navigation_by_scripts_is_awaited(agent: Agent, script: str, seconds: float) -> None:
    agent.site.put("/data", "data")
    agent.site.put("/next", arrived(seconds=seconds))
    agent.show(button(script) + "<form action=/next></form>")
    agent.click("button", "Go")
    assert (agent.path.rstrip("?"), agent.session.view.title) == ("/next", "Arrived") and agent.session.settled


@pytest.mark.parametrize("seconds", [0.0, SLOW])
def test_navigation_by_a_link_is_awaited(agent: Agent, seconds: float) -> None:
    agent.site.put("/next", arrived(seconds=seconds))
    agent.show("<a href=/next>Next</a>")
    agent.click("link", "Next")
    assert (agent.path, agent.session.view.title) == ("/next", "Arrived")


@pytest.mark.parametrize("status", [302, 303, 307])
def test_a_form_with_a_redirect_is_awaited(agent: Agent, status: int) -> None:
    agent.site.put("/save", Reply(status=status, headers={"location": "/saved"}, seconds=0.1))
    agent.site.put("/saved", arrived("Saved", seconds=0.1))
    agent.show("<form action=/save method=post><input name=q aria-label=Query><button>Save</button></form>")
    agent.type("textbox", "Query", "tea")
    agent.click("button", "Save")
    assert (agent.path, agent.session.view.title) == ("/saved", "Saved")
    assert next(request for request in agent.site.requests if request.path == "/save").body == "q=tea"


def test_a_form_submitted_by_enter_is_awaited(agent: Agent) -> None:
    agent.site.put("/find", lambda request: Reply(html(f"<h1>{request.query}</h1>", title="Found"), seconds=SLOW))
    agent.show("<form action=/find><input name=q aria-label=Query></form>")
    agent.type("textbox", "Query", "tea", enter=True)
    assert "heading 'q=tea'" in agent.tree and agent.session.view.title == "Found"


def test_a_chain_of_redirecting_pages_is_awaited(agent: Agent) -> None:
    agent.site.put("/1", html("", head='<meta http-equiv=refresh content="0; url=/2">'))
    agent.site.put("/2", Reply(html("<script>location = '/3'</script>"), seconds=0.1))
    agent.site.put("/3", html("<script>addEventListener('load', () => location.replace('/4'))</script>"))
    agent.site.put("/4", arrived(seconds=0.1))
    agent.show("<a href=/1>Next</a>")
    agent.click("link", "Next")
    assert (agent.path, agent.session.view.title) == ("/4", "Arrived")


def test_goto_follows_a_chain_of_pages(agent: Agent) -> None:
    agent.site.put("/1", html("", head='<meta http-equiv=refresh content="0; url=/2">'))
    agent.site.put("/2", arrived(seconds=SLOW))
    agent.goto("/1")
    assert (agent.path, agent.see().title) == ("/2", "Arrived")


def test_an_endless_chain_of_pages_does_not_block(make_agent: MakeAgent) -> None:
    agent = make_agent(timeouts=SettleTimeouts(busy=0.3, load=3))
    agent.site.put("/1", html("One<script>location = '/2'</script>"))
    agent.site.put("/2", html("Two<script>location = '/1'</script>"))
    agent.show("<a href=/1>Next</a>")
    agent.run(execute(agent.session, Click(agent.find("link", "Next"))))
    assert not agent.session.settled
    agent.site.put("/2", arrived())
    agent.act(Wait())
    assert agent.session.view.title == "Arrived"


@pytest.mark.parametrize(
    ("link", "path"), [("<a href=#part>Go</a>", "/#part"), ("<a href='#'>Go</a>", "/#"), ("<a href=''>Go</a>", "/")]
)
def test_links_within_the_page_settle_quickly(agent: Agent, link: str, path: str) -> None:
    agent.show(link + "<h2 id=part>Part</h2>")
    start = time.monotonic()
    agent.click("link", "Go")
    assert agent.path == path and agent.session.settled and time.monotonic() - start < FAST


@pytest.mark.rotating(always=4)
@pytest.mark.parametrize(
    "href",
    [
        "javascript:void(0)",
        "mailto:a@a.test",
        "tel:1",
        "sms:1",
        "steam://x",
        "javascript:0;",
        "http://[",
        "about:srcdoc",
    ],
)
def test_links_without_navigation_take_no_time(agent: Agent, href: str) -> None:
    agent.show(f'<a href="{href}">Go</a>')
    start = time.monotonic()
    agent.click("link", "Go")
    assert agent.path == "/" and agent.session.settled and time.monotonic() - start < FAST


def test_a_link_prevented_by_its_script_settles(agent: Agent) -> None:
    agent.show("<a href=/next onclick=\"event.preventDefault(); document.body.append('Stayed')\">Go</a>")
    agent.click("link", "Go")
    assert agent.path == "/" and "Stayed" in agent.tree and agent.session.settled


def test_an_intercepted_navigation_is_awaited(agent: Agent) -> None:
    script = "navigation.addEventListener('navigate', e => e.intercept({handler: async () => "
    script += "{ const text = await (await fetch('/data')).text(); document.body.append(text); }}))"
    agent.site.put("/data", Reply("Got it", seconds=SLOW))
    agent.show(f"<a href=/next>Go</a><script>{script}</script>")
    agent.click("link", "Go")
    assert agent.path == "/next" and "Got it" in agent.tree and agent.site.hits("/next") == 0


@pytest.mark.parametrize("seconds", [0.05, SLOW])
@pytest.mark.parametrize(
    "script",
    [
        "history.pushState({}, '', '/new'); fetch('/data').then(r => r.text()).then(t => { out.textContent = t })",
        "fetch('/data').then(r => r.json()).catch(() => fetch('/data')).then(r => r.text()).then(t => out.append(t))",
        "const x = new XMLHttpRequest(); x.open('GET', '/data'); x.onload = () => out.append(x.responseText); x.send()",
        "const x = new XMLHttpRequest(); x.open('GET', '/data'); x.addEventListener('loadend', () => "
        "setTimeout(() => out.append(x.responseText), 0)); x.send()",
        "const s = document.createElement('script'); s.src = '/data.js'; document.body.append(s)",
    ],
)
def test_responses_that_change_the_page_are_awaited(agent: Agent, script: str, seconds: float) -> None:
    agent.site.put("/data", Reply("Some data", seconds=seconds))
    agent.site.put("/data.js", Reply("out.textContent = 'Some data'", kind="text/javascript", seconds=seconds))
    agent.show(button(script))
    agent.click("button", "Go")
    assert "StaticText 'Some data'" in agent.tree and agent.session.settled


def test_the_body_of_a_response_is_awaited(agent: Agent) -> None:
    agent.show(
        button(
            "const r = new Response(new ReadableStream({ start: c => setTimeout(() => c.close(), 300) }));"
            " r.text().then(() => { out.textContent = 'read' })"
        )
    )
    agent.click("button", "Go")
    assert "StaticText 'read'" in agent.tree


def test_wait_awaits_a_change_by_a_timer(agent: Agent) -> None:
    agent.show(button("setTimeout(() => { out.textContent = 'late' }, 2000)"))
    agent.click("button", "Go")
    assert "late" not in agent.tree
    agent.act(Wait())
    assert "StaticText 'late'" in agent.tree


def test_console_output_is_disabled(agent: Agent) -> None:
    agent.show(button("for (let i = 0; i < 3000; i++) console.log(i, 'x'.repeat(1000)); out.textContent = 'done'"))
    written: list[object] = []

    async def listen() -> None:
        agent.session.context.on("console", lambda line: written.append(line))

    agent.run(listen())
    agent.click("button", "Go")
    assert "StaticText 'done'" in agent.tree and not written


def test_a_failed_request_has_ended(agent: Agent) -> None:
    agent.show(button("fetch('http://nowhere.test/').catch(() => out.append('Failed'))"))
    agent.click("button", "Go")
    assert "StaticText 'Failed'" in agent.tree and agent.session.settled


def test_an_aborted_request_has_ended(agent: Agent) -> None:
    agent.site.put("/data", Reply("", seconds=20))
    agent.show(
        button("const x = new XMLHttpRequest(); x.open('GET', '/data'); x.send(); setTimeout(() => x.abort(), 50)")
    )
    start = time.monotonic()
    agent.click("button", "Go")
    assert agent.session.settled and time.monotonic() - start < FAST


def test_frequent_changes_are_awaited(make_agent: MakeAgent) -> None:
    agent = make_agent(timeouts=SettleTimeouts(quiet=1, busy=30))
    agent.show(button(COUNT))
    agent.click("button", "Go")
    assert "StaticText '20'" in agent.tree and agent.session.settled


def test_a_page_that_never_settles_is_observed_as_it_is(make_agent: MakeAgent) -> None:
    agent = make_agent(timeouts=SettleTimeouts(quiet=0.2, busy=0.4))
    agent.show("<p id=out></p><script>setInterval(() => { out.textContent = Math.random() }, 5)</script>")
    start = time.monotonic()
    agent.act(Wait())
    assert not agent.session.settled and 0.4 <= time.monotonic() - start < FAST
    agent.show("<p>Rest</p>", "/rest")
    assert agent.session.settled


def test_css_animations_are_not_changes(agent: Agent) -> None:
    agent.show("<style>@keyframes k { to { opacity: 0 } } p { animation: k 1s infinite }</style><p>Blink</p>")
    assert agent.session.settled


def test_an_endless_request_is_awaited_for_the_longest_time_only(make_agent: MakeAgent) -> None:
    agent = make_agent(timeouts=SettleTimeouts(busy=0.3))
    agent.site.put("/data", Reply("", seconds=20))
    agent.show(button("fetch('/data')"))
    agent.click("button", "Go")
    assert not agent.session.settled and "button 'Go'" in agent.tree


def test_an_endless_picture_does_not_block_the_page(make_agent: MakeAgent) -> None:
    agent = make_agent(timeouts=SettleTimeouts(busy=2))
    agent.site.put("/picture", Reply("", seconds=20))
    agent.site.put("/next", arrived(seconds=0.8))
    agent.show("<img src=/picture><a href=/next>Next</a>")
    assert "link 'Next'" in agent.tree
    agent.click("link", "Next")  # while the picture loads
    assert (agent.path, agent.session.view.title, agent.session.settled) == ("/next", "Arrived", True)


def test_slow_scripts_and_styles_are_awaited(agent: Agent) -> None:
    agent.site.put("/s.js", Reply("document.write('<p>Written</p>')", kind="text/javascript", seconds=SLOW))
    agent.site.put("/s.css", Reply("b { display: none }", kind="text/css", seconds=SLOW))
    agent.site.put("/next", html("<b>Hidden</b><script src=/s.js></script>", head="<link rel=stylesheet href=/s.css>"))
    agent.show("<a href=/next>Next</a>")
    agent.click("link", "Next")
    assert "Written" in agent.tree and "Hidden" not in agent.tree and agent.session.settled


def test_a_page_sent_in_parts_is_awaited(agent: Agent) -> None:
    def load(request: ReceivedRequest) -> str:
        return html(
            "<div id=out></div><script>addEventListener('load', () => fetch('/data')"
            ".then(r => r.text()).then(t => { out.innerHTML = t }))</script>"
        )

    agent.site.put("/data", Reply("<h1>Loaded</h1>", seconds=SLOW))
    agent.site.put("/app", load)
    agent.goto("/app")
    assert "heading 'Loaded'" in agent.see().tree


def test_a_response_without_a_page_keeps_the_current_page(agent: Agent) -> None:
    agent.site.put("/nothing", Reply(status=204, seconds=0.1))
    agent.show("<a href=/nothing>Go</a>")
    start = time.monotonic()
    agent.click("link", "Go")
    assert agent.path == "/" and agent.session.settled and time.monotonic() - start < FAST
    agent.click("link", "Go")
    assert agent.path == "/" and agent.site.hits("/nothing") == 2


def test_the_next_link_works_after_a_response_without_a_page(agent: Agent) -> None:
    agent.site.put("/nothing", Reply(status=204))
    agent.site.put("/next", arrived(seconds=SLOW))
    agent.show("<a href=/nothing>Nothing</a><a href=/next>Next</a>")
    agent.click("link", "Nothing")
    agent.click("link", "Next")
    assert agent.session.view.title == "Arrived"


def test_a_link_in_a_frame_is_awaited(agent: Agent) -> None:
    agent.site.put("/inner", html("<a href=/inner2>Inside</a>"))
    agent.site.put("/inner2", Reply(html("<h1>Second</h1>"), seconds=SLOW))
    agent.show("<iframe src=/inner title=Frame></iframe>")
    agent.click("link", "Inside")
    assert "heading 'Second'" in agent.tree and agent.path == "/" and agent.session.settled


def test_responses_and_changes_in_a_frame_are_awaited(agent: Agent) -> None:
    agent.site.put("/inner", html(button("fetch('/data').then(r => r.text()).then(t => out.append(t))")))
    agent.site.put("/data", Reply("Some data", seconds=SLOW))
    agent.show("<iframe src=/inner title=Frame></iframe>")
    agent.click("button", "Go")
    assert "Some data" in agent.tree


def test_a_frame_that_loads_slowly_is_awaited(agent: Agent) -> None:
    agent.site.put("/inner", Reply(html("<h1>Second</h1>"), seconds=SLOW))
    agent.show(button("const f = document.createElement('iframe'); f.src = '/inner'; document.body.append(f)"))
    agent.click("button", "Go")
    assert "heading 'Second'" in agent.tree


def test_changes_in_a_shadow_root_are_awaited(make_agent: MakeAgent) -> None:
    agent = make_agent(timeouts=SettleTimeouts(quiet=1, busy=30))
    script = (
        f"const out = document.querySelector('div').attachShadow({{mode: 'open'}}); window.go = () => {{ {COUNT} }}"
    )
    agent.show(f"<div></div><script type=module>{script}</script><button onclick=go()>Go</button>")
    agent.click("button", "Go")
    assert "StaticText '20'" in agent.tree


def test_going_back_awaits_a_slow_page(agent: Agent) -> None:
    agent.site.put("/slow", arrived("Slow", seconds=SLOW))
    agent.goto("/slow")
    agent.show("<p>Other</p>", "/other")
    agent.act(GoBack())
    assert (agent.path, agent.session.view.title) == ("/slow", "Slow")


def test_going_back_within_a_page_keeps_the_page(agent: Agent) -> None:
    agent.show(button("history.pushState({}, '', '/b')") + "<script>onpopstate = () => out.append('Back')</script>")
    agent.click("button", "Go")
    assert agent.path == "/b"
    agent.act(GoBack())
    assert agent.path == "/" and "StaticText 'Back'" in agent.tree


def test_an_action_on_a_quiet_page_is_fast(agent: Agent) -> None:
    agent.show("<button>Go</button>")
    times = []
    for _ in range(5):
        start = time.monotonic()
        agent.click("button", "Go")
        times.append(time.monotonic() - start)
    assert min(times) < 0.5
