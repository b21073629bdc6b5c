"""Test sites on several hosts, a server that no page may reach, and agents: sessions driven from the test's thread."""

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
from agentgym_envs.webarena.browser.tab import SettleTimeouts
from agentgym_envs.webarena.browser.view import PageView, ViewOptions

_T = TypeVar("_T")
HOME = "http://a.test/"


@dataclass
class Reply:
    """A response of a site, sent after `seconds` unless the client has disconnected."""

    body: str | bytes = ""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    kind: str = "text/html; charset=utf-8"


@dataclass
class ReceivedRequest:
    method: str
    host: str
    path: str
    query: str
    headers: dict[str, str]
    body: str


Answer = str | Reply | Callable[[ReceivedRequest], str | Reply]


def html(body: str, *, title: str = "Page", head: str = "") -> str:
    return f"<!doctype html><html lang=en><head><title>{title}</title>{head}</head><body>{body}</body></html>"


class Site:
    """An ASGI application with one page per path; other paths answer 404."""

    def __init__(self) -> None:
        self.pages: dict[str, Answer] = {}
        self.requests: list[ReceivedRequest] = []

    def put(self, path: str, answer: Answer) -> None:
        self.pages[path] = answer

    def clear(self) -> None:
        self.pages, self.requests = {}, []

    def hits(self, path: str) -> int:
        return sum(request.path == path for request in self.requests)

    async def __call__(self, scope: Any, receive: Callable[[], Awaitable[Any]], send: Callable[..., Any]) -> None:
        if scope["type"] != "http":
            return
        request = await _read_request(scope, receive)
        self.requests.append(request)
        answer = self.pages.get(request.path, Reply("Nothing is here.", 404))
        result = answer(request) if callable(answer) else answer
        reply = result if isinstance(result, Reply) else Reply(result)
        if reply.seconds:
            try:
                await asyncio.wait_for(receive(), reply.seconds)
                return  # the client has disconnected
            except TimeoutError:
                pass
        headers = {"content-type": reply.kind, "cache-control": "no-store"} | reply.headers
        pairs = [(name.encode(), value.encode()) for name, value in headers.items() if value]
        await send({"type": "http.response.start", "status": reply.status, "headers": pairs})
        body = reply.body.encode() if isinstance(reply.body, str) else reply.body
        await send({"type": "http.response.body", "body": body})


async def _read_request(scope: Any, receive: Callable[[], Awaitable[Any]]) -> ReceivedRequest:
    body, more = b"", True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
    query = scope["query_string"].decode("latin-1")
    return ReceivedRequest(scope["method"], headers["host"], unquote(scope["path"]), query, headers, body.decode())


class Trap:
    """A server on another loopback port, which no page may reach. It counts TCP and UDP visits."""

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
    """A browser session driven from the test's thread."""

    def __init__(self, options: SessionOptions, site: Site, backend: str = "js") -> None:
        self.site, self.backend = site, BACKENDS[backend]()
        self.session = self.run(BrowserSession.open(options, self.backend))

    def run(self, work: Coroutine[Any, Any, _T]) -> _T:
        return loop.run(work, 60)

    def close(self) -> None:
        self.run(self.session.close())

    def show(self, body: str, path: str = "/", **parts: str) -> PageView:
        """Put a page on the site, visit it and observe it."""
        self.site.put(path, html(body, **parts))
        self.goto(path)
        return self.see()

    def goto(self, path: str) -> None:
        self.run(goto(self.session, path if "://" in path else HOME.rstrip("/") + path))

    def see(self) -> PageView:
        return self.run(self.session.observe())

    def act(self, action: Action) -> str:
        """Act and observe; returns the note."""
        note = self.run(execute(self.session, action))
        self.see()
        return note

    def find(self, role: str, name: str = "") -> int:
        """The id of the first element with this role and name in the last observation."""
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
        """The value of an expression in the page's own world."""
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


@pytest.fixture(scope="session", autouse=True)
def one_event_loop() -> Iterator[None]:
    """Starlette's test clients would start a thread with an event loop for every request."""
    from anyio.from_thread import start_blocking_portal
    from starlette.testclient import TestClient

    with start_blocking_portal() as TestClient.portal:
        yield
    TestClient.portal = None


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
    """Rules that allow all hosts of the site except evil.test."""
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
    """An agent that no other test shares."""
    return make_agent()


@pytest.fixture(scope="module")
def _shared() -> Iterator[list[Agent]]:
    agents: list[Agent] = []
    yield agents
    for agent in agents:
        agent.close()


@pytest.fixture
def agent(request: pytest.FixtureRequest, site: Site, browser: BrowserOptions, _shared: list[Agent]) -> Agent:
    """An agent that observes whole pages, with the module's `TIMEOUTS` if it has some.

    The tests of a module share it until it breaks or has several tabs.
    """
    if _shared and (_shared[0].session._broken.done() or len(_shared[0].session.tabs) != 1):
        _shared.pop().close()
    if not _shared:
        timeouts = getattr(request.module, "TIMEOUTS", SettleTimeouts())
        options = SessionOptions(browser=browser, view=ViewOptions(viewport=False), timeouts=timeouts)
        _shared.append(Agent(options, site))
    return _shared[0]


@pytest.fixture
def trap() -> Iterator[Trap]:
    made = Trap()
    yield made
    made.close()
