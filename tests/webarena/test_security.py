"""Attacks by hostile pages and careless agents: the agent stays on the task's pages, and no other host is reached."""

import logging
import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator

import pytest

from agentgym_envs.errors import EnvError, InvalidAction, UsageError
from agentgym_envs.webarena.actions import CloseTab, Goto, TabFocus, Wait
from agentgym_envs.webarena.browser.chromium import _warn_about_sandbox, find_chromium, launch_options
from agentgym_envs.webarena.browser.hosts import HostRules
from agentgym_envs.webarena.browser.pool import BrowserOptions
from agentgym_envs.webarena.browser.sites import local_sites
from tests.waiting import until
from tests.webarena.conftest import HOME, Agent, MakeAgent, Reply, Site, Trap, html

slow = pytest.mark.slow
OUTSIDE = [
    "file:///etc/passwd",
    "data:text/html,<title>Data</title>",
    "javascript:document.title='Script'",
    "view-source:http://a.test/",
    "chrome://version/",
    "chrome://crash/",
    "ftp://a.test/",
    "about:srcdoc",
    "about:version",
    "filesystem:http://a.test/temporary/x",
    "http://evil.test/",
    "http://localhost:{port}/",
    "http://127.0.0.1:{port}/",
    "http://127.0.0.1:{own}/",
    "http://2130706433:{port}/",
    "http://0x7f.1:{port}/",
    "http://[::1]:{port}/",
    "http://[::ffff:127.0.0.1]:{port}/",
    "http://a.test:{port}/",
    "http://x.localhost:{port}/",
    "http://1.1.1.1/",
    "https://a.test/",
    "http://a.test.evil.test/",
    "http://evila.test/",
    "http://a.test./",
]


LEADING = [url for url in OUTSIDE if url.startswith(("file", "data", "chrome://v", "ftp", "https"))] + [
    "http://evil.test/",
    "http://127.0.0.1:{port}/",
    "http://2130706433:{port}/",
    "http://a.test:{port}/",
    "http://a.test./",
]


def filled(url: str, trap: Trap) -> str:
    return url.replace("{port}", str(trap.port)).replace("{own}", local_sites().address.partition(":")[2])


@pytest.fixture
def outside(trap: Trap, request: pytest.FixtureRequest) -> str:
    return filled(request.param, trap)


@pytest.fixture
def home(agent: Agent, trap: Trap) -> Iterator[Agent]:
    """An agent on a page. After the test it is on a page of the site, no other host was visited, and it can act."""
    yield agent
    assert agent.url == "about:blank" or agent.url.startswith(HOME), agent.url
    assert agent.see().title not in ("Evil", "Data", "Trapped") and "root:" not in agent.tree
    assert trap.visits == 0 and not any(request.host != "a.test" for request in agent.site.requests)
    agent.site.put("/well", html("", title="Well"))
    assert (agent.visit("a.test/well"), agent.session.view.title) == ("", "Well")


@slow
def test_goto_cannot_leave_the_sites(home: Agent, trap: Trap) -> None:
    home.show("<p>Home</p>")
    for url in OUTSIDE:
        with pytest.raises(InvalidAction, match="visited"):
            home.act(Goto(filled(url, trap)))
        assert home.path == "/"


@pytest.mark.rotating(always=3)
@slow
@pytest.mark.parametrize(
    "page",
    [
        '<a href="{u}">Go</a>',
        '<a href="{u}" target=_blank>Go</a>',
        "<a href=/hop>Go</a>",
        """<a href=# onclick="location = '{u}'">Go</a>""",
        """<a href=# onclick="window.open('{u}')">Go</a>""",
        """<form action="{u}" method=post><a href=# onclick="this.parentNode.submit()">Go</a></form>""",
    ],
    ids=["link", "window", "redirect", "script", "script window", "form"],
)
def test_pages_cannot_lead_out_of_the_sites(home: Agent, trap: Trap, page: str) -> None:
    for url in LEADING:
        there = filled(url, trap)
        home.site.put("/hop", Reply(status=302, headers={"location": there}))
        home.show(page.replace("{u}", there), title="Home")
        home.click("link", "Go")
        assert home.url.rstrip("#") in (HOME, "about:blank") and len(home.session.tabs) <= 2, there
        home.act(TabFocus(0))
        assert home.url.rstrip("#") == HOME and home.session.view.title == "Home", there
        if len(home.session.tabs) > 1:
            home.act(TabFocus(1))
            home.act(CloseTab())


@slow
@pytest.mark.parametrize("to", ["_self", "_blank"])
def test_scripts_in_links_stay_on_their_page(home: Agent, to: str) -> None:
    home.show(f"<a target={to} href=\"javascript:void(opener || document.body.append('Ran'))\">Go</a>", title="Home")
    home.click("link", "Go")
    home.act(TabFocus(0))
    assert home.path == "/" and home.session.view.title == "Home"


@slow
@pytest.mark.parametrize("outside", ["http://evil.test/x?a=*&b={1}", "file:///etc/passwd"], indirect=True)
@pytest.mark.parametrize("path", ["/?q={a,b}*[c]&d=%2A", "/#part", "/"])
def test_the_agent_returns_to_any_allowed_url(home: Agent, outside: str, path: str) -> None:
    home.show(f'<script>history.replaceState(0, "", "{path}")</script><a href="/out">Go</a>')
    home.site.put("/out", html(f"<script>location = '{outside}'</script>"))
    before = home.url
    home.click("link", "Go")
    assert home.url in (before, f"{HOME}out")


@slow
@pytest.mark.parametrize(
    "outside", ["http://evil.test/", "http://127.0.0.1:{port}/", "file:///etc/passwd"], indirect=True
)
def test_a_start_page_that_leads_out_is_an_env_error(make_agent: MakeAgent, site: Site, outside: str) -> None:
    site.put("/start", Reply(status=302, headers={"location": outside}))
    with pytest.raises(EnvError, match="cannot be shown"):
        make_agent().goto("/start")


@pytest.mark.rotating(always=1)
@slow
@pytest.mark.parametrize(
    "outside", ["http://evil.test/", "http://127.0.0.1:{port}/", "http://[::1]:{port}/"], indirect=True
)
def test_a_refresh_cannot_lead_out(home: Agent, outside: str) -> None:
    home.site.put("/hop", html("", head=f'<meta http-equiv=refresh content="0; url={outside}">', title="Hop"))
    home.show("<a href=/hop>Go</a>")
    home.click("link", "Go")
    home.act(Wait())


REACH = {
    "fetch": "fetch(u, {mode: 'no-cors'})",
    "post": "fetch(u, {method: 'POST', mode: 'no-cors', body: 'x', keepalive: true})",
    "xhr": "const x = new XMLHttpRequest(); x.open('GET', u); x.send()",
    "socket": "new WebSocket(u.replace('http', 'ws'))",
    "events": "new EventSource(u)",
    "picture": "new Image().src = u",
    "beacon": "navigator.sendBeacon(u, 'x')",
    "worker": "new Worker(URL.createObjectURL(new Blob([`fetch('${u}', {mode: 'no-cors'})`])))",
    "shared": "new SharedWorker(URL.createObjectURL(new Blob([`fetch('${u}', {mode: 'no-cors'})`])))",
    "frame": "document.body.append(Object.assign(document.createElement('iframe'), {src: u}))",
    "script": "document.body.append(Object.assign(document.createElement('script'), {src: u}))",
    "video": "document.body.append(Object.assign(document.createElement('video'), {src: u, autoplay: true}))",
    "object": "document.body.append(Object.assign(document.createElement('object'), {data: u}))",
    "import": "import(u)",
    "font": "new FontFace('f', `url(${u})`).load()",
    "transport": "new WebTransport(u.replace('http:', 'https:')).ready.catch(() => 0)",
    "stun": "call({urls: u.replace('http://', 'stun:').replace(/\\/.*$/, '')}, 'all')",
    "turn": "call({username: 'u', credential: 'c', "
    "urls: u.replace('http://', 'turn:').replace(/\\/.*$/, '?transport=tcp')},"
    "'relay')",
} | {
    rel: f"document.head.append(Object.assign(document.createElement('link'), {{rel: '{rel}', href: u}}))"
    for rel in (
        "prefetch",
        "preconnect",
        "dns-prefetch",
        "prerender",
        "stylesheet",
        "icon",
        "manifest",
        "modulepreload",
    )
}
CALL = """window.call = (server, iceTransportPolicy) => {
  const c = new RTCPeerConnection({ iceTransportPolicy, iceServers: [server] });
  c.createDataChannel('x');
  c.createOffer().then(offer => c.setLocalDescription(offer));
};"""
NAMES = [
    "http://127.0.0.1:{port}/",
    "http://localhost:{port}/",
    "http://a.test:{port}/",
    "http://[::ffff:127.0.0.1]:{port}/",
]


def reach(agent: Agent, url: str, home: str = HOME) -> None:
    """Attempt every kind of request from a page, and give each time."""
    ways = ", ".join(f"[{how!r}, u => {{ {script} }}]" for how, script in REACH.items())
    script = f"for (const [how, go] of [{ways}]) try {{ go('{url}' + how) }} catch (e) {{ console.log(e) }}"
    agent.site.put("/all.js", Reply(f"{CALL} function go() {{ {script} }}", kind="text/javascript"))
    agent.site.put("/all", html("<script src=all.js></script><button onclick=go()>Go</button>"))
    agent.goto(f"{home}all")
    agent.see()
    agent.click("button", "Go")
    agent.js("new Promise(done => setTimeout(done, 500))")


@pytest.fixture
def secure(make_agent: MakeAgent, site: Site) -> Agent:
    """An agent on a site that Chromium considers secure, so that pages have every capability."""
    own = local_sites().address
    local_sites().mount("127.0.0.1", site)
    agent = make_agent(browser=BrowserOptions(hosts=HostRules.of(urls=[f"http://{own}"], mapped={"a.test": own})))
    site.put("/secure", html("<p id=out></p>"))
    agent.goto(f"http://{own}/secure")
    assert agent.js("isSecureContext")
    return agent


@pytest.mark.rotating(always=2)
@slow
@pytest.mark.parametrize("outside", NAMES, indirect=True)
def test_nothing_on_a_page_reaches_another_port(home: Agent, outside: str) -> None:
    reach(home, outside)


@slow
@pytest.mark.parametrize("outside", NAMES[:2], indirect=True)
def test_nothing_on_a_secure_page_reaches_another_port(secure: Agent, trap: Trap, outside: str) -> None:
    reach(secure, outside, f"http://{local_sites().address}/")
    assert trap.visits == 0


@slow
def test_the_trap_detects_a_visit_if_the_rules_allow_it(make_agent: MakeAgent, trap: Trap, hosts: HostRules) -> None:
    """The requests arrive if the rules allow them."""
    rules = HostRules(hosts.mapped, (f"127.0.0.1:{trap.port}",))
    agent = make_agent(browser=BrowserOptions(hosts=rules))
    reach(agent, trap.url)
    likely = {*REACH} - {
        "font",
        "transport",
        "stun",
        "turn",
        "preconnect",
        "dns-prefetch",
        "prerender",
        "icon",
        "manifest",
    }
    until(lambda: trap.paths.issuperset(likely))
    agent.goto(trap.url)
    assert agent.see().title == "Trapped"


@slow
@pytest.mark.parametrize(
    "source", ["file:///etc/passwd", "http://evil.test/", "chrome://version/", "http://127.0.0.1:{own}/"]
)
def test_frames_with_refused_urls_stay_empty(home: Agent, source: str) -> None:
    own = local_sites().address.partition(":")[2]
    home.site.put("/evil", html("<h1>Evil inside</h1>"))
    home.show(f'<iframe src="{source.replace("{own}", own)}" title=Frame></iframe><p>Home</p>')
    assert "root:" not in home.tree and "Evil" not in home.tree and "StaticText 'Home'" in home.tree


@slow
def test_service_workers_are_blocked(secure: Agent) -> None:
    code = "self.addEventListener('fetch', e => e.respondWith(new Response('Hijacked')))"
    secure.site.put("/sw.js", Reply(code, kind="text/javascript"))
    register = "navigator.serviceWorker.register('/sw.js')"
    secure.js(f"Promise.race([{register}, new Promise(r => setTimeout(r, 300))]).then(() => 0, () => 0)")
    assert secure.js("navigator.serviceWorker.getRegistrations().then(r => r.length)") == 0
    secure.goto(secure.url)
    assert "Hijacked" not in secure.see().tree


@slow
@pytest.mark.parametrize(
    "link", ["<a href=/file>Get</a>", "<a href=/file target=_blank>Get</a>", "<a href=/page download>Get</a>"]
)
def test_downloads_are_refused(home: Agent, link: str) -> None:
    home.site.put("/file", Reply("x" * 1000, headers={"content-disposition": "attachment; filename=x.txt"}))
    home.site.put("/page", "Page")
    home.show(link)
    note = home.click("link", "Get")
    assert "download was refused" in note and home.path == "/"


@slow
def test_goto_to_a_download_is_refused(home: Agent) -> None:
    home.site.put("/file", Reply("x", headers={"content-disposition": "attachment; filename=x.txt"}))
    home.show("<p>Home</p>")
    assert "download was refused" in home.visit(HOME + "file") and home.path == "/"


@slow
@pytest.mark.parametrize(
    ("script", "texts"),
    [
        ("alert('Hello')", ["'Hello' and was acknowledged"]),
        ("out.textContent = confirm('Sure?')", ["'Sure?' and was declined", "StaticText 'false'"]),
        ("out.textContent = 'Got ' + prompt('Who?', 'me')", ["'Who?' and was declined", "StaticText 'Got null'"]),
        ("alert('One'); alert('Two')", ["'One'", "'Two'"]),
        ("alert('x'.repeat(9999))", ["x' and was acknowledged"]),
        ("print()", []),
        ("location.reload()", []),
    ],
)
def test_dialogs_are_answered_and_reported(home: Agent, script: str, texts: list[str]) -> None:
    home.show(f'<p id=out></p><button onclick="{script}">Go</button>')
    note = home.click("button", "Go")
    assert all(text in note + home.tree for text in texts) and len(note) < 1000


@slow
def test_a_leave_confirmation_is_accepted(home: Agent) -> None:
    home.site.put("/next", html("", title="Next"))
    home.show(
        "<input aria-label=Field><a href=/next>Next</a><script>onbeforeunload = e => { e.preventDefault() }</script>"
    )
    home.type("textbox", "Field", "x")
    home.click("link", "Next")
    assert home.session.view.title == "Next"


PERMISSIONS = (
    "navigator.geolocation.getCurrentPosition(() => say('yes'), () => say('no'))",
    "Notification.requestPermission().then(p => say(p === 'granted' ? 'yes' : 'no'))",
    "navigator.mediaDevices.getUserMedia({audio: true}).then(() => say('yes'), () => say('no'))",
    "navigator.clipboard.readText().then(() => say('yes'), () => say('no'))",
    "document.body.requestFullscreen().catch(() => 0).then(() => say('no'))",
    "window.showOpenFilePicker ? showOpenFilePicker().then(() => say('yes'), () => say('no')) : say('no')",
    "file.showPicker(); say('no')",
)


@slow
def test_permissions_are_denied(secure: Agent) -> None:
    scripts = [f"say('asked'); {script}" for script in PERMISSIONS]
    buttons = "".join(f'<button onclick="{script}">Ask {n}</button>' for n, script in enumerate(scripts))
    tail = "<p id=out></p><input type=file id=file><script>function say(t) { out.append(' Said ' + t) }</script>"
    secure.site.put("/ask", html(buttons + tail))
    secure.goto(f"http://{local_sites().address}/ask")
    secure.see()
    for number in range(len(PERMISSIONS)):
        secure.click("button", f"Ask {number}")
    secure.act(Wait())
    assert secure.tree.count("Said asked") == len(PERMISSIONS)
    assert "Said no" in secure.tree and "Said yes" not in secure.tree


@slow
def test_a_password_prompt_of_a_site_is_dismissed(home: Agent) -> None:
    home.site.put("/secret", Reply(html("<h1>Who are you?</h1>"), 401, {"www-authenticate": 'Basic realm="x"'}))
    home.show("<a href=/secret>Secret</a>")
    home.click("link", "Secret")
    assert "Who are you?" in home.tree


@slow
@pytest.mark.parametrize(
    "body",
    [
        "<form name=x><input name=parentNode><input name=tagName><input name=getClientRects></form>",
        "<img name=readyState><img name=querySelectorAll><img name=addEventListener>",
        "<div id=agentgym></div><iframe name=navigation></iframe>",
        "<script>for (const n of ['setTimeout', 'Promise', 'Map', 'Event', 'JSON']) window[n] = null</script>",
        "<script>for (const n of ['addEventListener', 'dispatchEvent']) EventTarget.prototype[n] = null</script>",
        "<script>for (let i = 0; i < 99; i++) document.dispatchEvent(new Event('agentgym:response'))</script>",
        "<script>document.open(); document.write('Written')</script>",
    ],
)
def test_pages_cannot_disturb_the_observation_scripts(home: Agent, body: str) -> None:
    home.show(body + "<button>Go</button>")
    home.click("button", "Go")
    assert "button 'Go'" in home.tree and home.session.settled


@slow
def test_a_page_cannot_see_the_isolated_world(home: Agent) -> None:
    home.show("<button>Go</button>")
    assert home.js("typeof agentgym") == "undefined"
    assert home.js("document.documentElement.outerHTML.includes('agentgym')") is False


@slow
def test_a_proxy_of_the_environment_is_not_used(trap: Trap) -> None:
    """The proxy is used neither for the sites of the task nor for others."""
    program = """
        from tests.webarena.conftest import *
        site = Site()
        local_sites().mount("a.test", site)
        hosts = HostRules.of(mapped={"a.test": local_sites().address})
        agent = Agent(SessionOptions(browser=BrowserOptions(hosts=hosts)), site)
        agent.show("<p>Home</p><iframe src='http://evil.test/'></iframe>")
        assert "StaticText 'Home'" in agent.tree
    """
    names = ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
    env = os.environ | dict.fromkeys(names, trap.url) | {"PYTHONPATH": os.getcwd()}
    subprocess.run([sys.executable, "-c", textwrap.dedent(program)], env=env, check=True, timeout=60)
    assert trap.visits == 0


@pytest.mark.parametrize(("user", "sandboxed"), [(0, False), (1000, True)])
def test_the_sandbox_is_off_for_root_only(
    user: int, sandboxed: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: user, raising=False)
    _warn_about_sandbox.cache_clear()  # logged once per process
    with caplog.at_level(logging.WARNING):
        options = launch_options("/usr/bin/chromium", HostRules())
    assert options["chromium_sandbox"] is sandboxed and "--no-sandbox" not in options["args"]
    assert ("--no-sandbox" in caplog.text) is not sandboxed
    assert "--host-resolver-rules=MAP * ~NOTFOUND" in options["args"] and "--no-proxy-server" in options["args"]


def test_every_page_has_a_memory_limit() -> None:
    for small_heap in (False, True):
        (flags,) = [
            word
            for word in launch_options("/usr/bin/chromium", HostRules(), small_heap=small_heap)["args"]
            if word.startswith("--js-flags=")
        ]
        assert "--max-old-space-size=512" in flags
        assert ("--initial-old-space-size" in flags) is small_heap


def test_find_chromium_checks_the_variable_and_the_path(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    def program(name: str) -> str:
        path = tmp_path / name
        path.write_text("#!/bin/sh\n")
        path.chmod(0o755)
        return str(path)

    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CHROMIUM_PATH", raising=False)
    with pytest.raises(UsageError, match=r"no Chromium was found.*playwright install.*apt-get install.*CHROMIUM_PATH"):
        find_chromium(None, "/none")
    system, bundled, named, given = map(program, ("chromium", "bundled", "named", "given"))
    assert find_chromium(None, "/none") == system
    assert find_chromium(None, bundled) == bundled
    monkeypatch.setenv("CHROMIUM_PATH", named)
    assert find_chromium(None, bundled) == named
    assert find_chromium(given, bundled) == given
    monkeypatch.setenv("CHROMIUM_PATH", "/none")
    with pytest.raises(UsageError, match=r"CHROMIUM_PATH names '/none'"):
        find_chromium(None, bundled)
    with pytest.raises(UsageError, match=r"chromium= names 'nothing'"):
        find_chromium("nothing", bundled)
