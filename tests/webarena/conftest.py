"""Sites of two hosts, a trap that nobody may reach, and agents: sessions that a test drives from its own thread."""

import asyncio
import re
import socket
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import unquote

import pytest

from agentgym_envs.webarena.actions import Action, Click, Goto, Hover, Press, Type
from agentgym_envs.webarena.browser import loop
from agentgym_envs.webarena.browser.backends import BACKENDS
from agentgym_envs.webarena.browser.execute import execute, goto
from agentgym_envs.webarena.browser.hosts import HostRules
from agentgym_envs.webarena.browser.pool import BrowserOptions
from agentgym_envs.webarena.browser.session import BrowserSession, SessionOptions
from agentgym_envs.webarena.browser.sites import local_sites
from agentgym_envs.webarena.browser.view import PageView, ViewOptions

_T = TypeVar("_T")
HOME = "http://a.test/"


@dataclass
class Reply:
    """What a site answers; `seconds` later, unless whoever asked has gone by then."""

    body: str | bytes = ""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    kind: str = "text/html; charset=utf-8"


@dataclass
class Asked:
    method: str
    host: str
    path: str
    query: str
    headers: dict[str, str]
    body: str


Answer = str | Reply | Callable[[Asked], str | Reply]


def html(body: str, *, title: str = "Page", head: str = "") -> str:
    return f"<!doctype html><html lang=en><head><title>{title}</title>{head}</head><body>{body}</body></html>"


class Site:
    """An ASGI application with a page for each path; one that has none answers 404."""

    def __init__(self) -> None:
        self.pages: dict[str, Answer] = {}
        self.asked: list[Asked] = []

    def put(self, path: str, answer: Answer) -> None:
        self.pages[path] = answer

    def clear(self) -> None:
        self.pages, self.asked = {}, []

    def hits(self, path: str) -> int:
        return sum(asked.path == path for asked in self.asked)

    async def __call__(self, scope: Any, receive: Callable[[], Awaitable[Any]], send: Callable[..., Any]) -> None:
        if scope["type"] != "http":
            return
        asked = await _asked(scope, receive)
        self.asked.append(asked)
        answer = self.pages.get(asked.path, Reply("Nothing is here.", 404))
        told = answer(asked) if callable(answer) else answer
        reply = told if isinstance(told, Reply) else Reply(told)
        if reply.seconds:
            try:
                await asyncio.wait_for(receive(), reply.seconds)
                return  # who asked has gone
            except TimeoutError:
                pass
        headers = {"content-type": reply.kind, "cache-control": "no-store"} | reply.headers
        pairs = [(name.encode(), value.encode()) for name, value in headers.items() if value]
        await send({"type": "http.response.start", "status": reply.status, "headers": pairs})
        body = reply.body.encode() if isinstance(reply.body, str) else reply.body
        await send({"type": "http.response.body", "body": body})


async def _asked(scope: Any, receive: Callable[[], Awaitable[Any]]) -> Asked:
    body, more = b"", True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
    query = scope["query_string"].decode("latin-1")
    return Asked(scope["method"], headers["host"], unquote(scope["path"]), query, headers, body.decode())


class Trap:
    """A server on another port of loopback, which no page may reach: counts whoever comes, by TCP or by UDP."""

    def __init__(self) -> None:
        self.visits = 0
        self.paths: set[str] = set()
        self._tcp = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._tcp.getsockname()[1]
        self._udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._udp.bind(("127.0.0.1", self.port))
        for serve in (self._serve_tcp, self._serve_udp):
            threading.Thread(target=serve, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    def close(self) -> None:
        for server in (self._tcp, self._udp):
            server.close()

    def _serve_tcp(self) -> None:
        body = b"<title>Trapped</title>"
        answer = (
            b"HTTP/1.1 200 OK\r\naccess-control-allow-origin: *\r\ncontent-type: text/html\r\nconnection: close\r\n"
        )
        while True:
            try:
                visitor, _ = self._tcp.accept()
            except OSError:
                return
            self.visits += 1
            with visitor:
                visitor.settimeout(5)
                try:
                    self.paths.add(visitor.recv(65_536).decode("latin-1").partition("/")[2].partition(" ")[0])
                    visitor.sendall(answer + b"content-length: %d\r\n\r\n" % len(body) + body)
                except OSError:
                    pass

    def _serve_udp(self) -> None:
        while True:
            try:
                self._udp.recv(65_536)
            except OSError:
                return
            self.visits += 1


class Agent:
    """A session, driven from the test's thread."""

    def __init__(self, options: SessionOptions, site: Site, backend: str = "js") -> None:
        self.site, self.backend = site, BACKENDS[backend]()
        self.session = self.run(BrowserSession.open(options, self.backend))

    def run(self, work: Coroutine[Any, Any, _T]) -> _T:
        return loop.run(work, 60)

    def close(self) -> None:
        self.run(self.session.close())

    def show(self, body: str, path: str = "/", **parts: str) -> PageView:
        """Put a page on the site, visit it and look at it."""
        self.site.put(path, html(body, **parts))
        self.goto(path)
        return self.see()

    def goto(self, path: str) -> None:
        self.run(goto(self.session, path if "://" in path else HOME.rstrip("/") + path))

    def see(self) -> PageView:
        return self.run(self.session.observe())

    def act(self, action: Action) -> str:
        """Act and look; returns the note."""
        note = self.run(execute(self.session, action))
        self.see()
        return note

    def find(self, role: str, name: str = "") -> int:
        """The id of an element of the last view, by its role and its whole name; the first one of several."""
        found = re.search(rf"\[(\d+)\] {role} (['\"]){re.escape(name)}\2", self.tree)
        assert found, f"no {role} {name!r} in\n{self.tree}"
        return int(found[1])

    def click(self, role: str, name: str = "") -> str:
        return self.act(Click(self.find(role, name)))

    def type(self, role: str, name: str, text: str, enter: bool = False) -> str:
        return self.act(Type(self.find(role, name), text, enter))

    def hover(self, role: str, name: str) -> str:
        return self.act(Hover(self.find(role, name)))

    def press(self, keys: str, element: int | None = None) -> str:
        return self.act(Press(keys, element))

    def visit(self, url: str) -> str:
        return self.act(Goto(url))

    def js(self, expression: str) -> Any:
        """What an expression is worth in the page's own world."""
        return self.run(self.session.evaluate(expression))

    @property
    def tree(self) -> str:
        return self.session.view.tree

    @property
    def url(self) -> str:
        return self.session.url

    @property
    def path(self) -> str:
        assert self.url.startswith(HOME), self.url
        return self.url.removeprefix(HOME.rstrip("/"))


MakeAgent = Callable[..., Agent]


@pytest.fixture(scope="session")
def the_site() -> Site:
    site = Site()
    for host in ("a.test", "b.test", "x.sub.test", "evil.test"):
        local_sites().mount(host, site)
    return site


@pytest.fixture
def site(the_site: Site) -> Site:
    the_site.clear()
    return the_site


@pytest.fixture(scope="session")
def hosts(the_site: Site) -> HostRules:
    """Everything of the site may be reached but what it has on evil.test."""
    address = local_sites().address
    return HostRules.of(mapped={"a.test": address, "b.test": address, "*.sub.test": address})


@pytest.fixture(scope="session")
def browser(hosts: HostRules) -> BrowserOptions:
    return BrowserOptions(hosts=hosts)


@pytest.fixture
def make_agent(site: Site, browser: BrowserOptions) -> Iterator[MakeAgent]:
    """Opens sessions; all keyword arguments are those of `SessionOptions`."""
    agents: list[Agent] = []

    def make(**options: Any) -> Agent:
        agents.append(Agent(SessionOptions(**({"browser": browser} | options)), site))
        return agents[-1]

    yield make
    for agent in agents:
        agent.close()


@pytest.fixture
def fresh(make_agent: MakeAgent) -> Agent:
    """An agent of its own."""
    return make_agent()


@pytest.fixture(scope="module")
def _kept() -> Iterator[list[Agent]]:
    agents: list[Agent] = []
    yield agents
    for agent in agents:
        agent.close()


@pytest.fixture
def agent(site: Site, browser: BrowserOptions, _kept: list[Agent]) -> Agent:
    """An agent that sees whole pages. The tests of a module share it for as long as it is whole and has one tab."""
    if _kept and (_kept[0].session._broken.done() or len(_kept[0].session.tabs) != 1):
        _kept.pop().close()
    if not _kept:
        _kept.append(Agent(SessionOptions(browser=browser, view=ViewOptions(viewport=False)), site))
    return _kept[0]


@pytest.fixture
def trap() -> Iterator[Trap]:
    made = Trap()
    yield made
    made.close()
