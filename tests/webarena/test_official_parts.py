"""Resets, helpers and accounts of the official tasks; no browser."""

import asyncio
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from agentgym_envs.errors import EnvError, UsageError
from agentgym_envs.webarena.browser.sites import LocalSites
from agentgym_envs.webarena.evaluators.base import FinishedEpisode
from agentgym_envs.webarena.official.accounts import account
from agentgym_envs.webarena.official.helpers import HELPERS, latest_order_url, latest_review_rating, reddit_post_url
from agentgym_envs.webarena.official.login import login_sites
from agentgym_envs.webarena.official.reset import VARIABLE, FullReset, make_reset, run_reset
from agentgym_envs.webarena.official.sites import SiteAddresses
from tests.webarena.stub_sites import SKU, Stubs


class ResetServer:
    """Answers /reset with a status, and /status with texts in turn; without texts, /status does not exist."""

    def __init__(self, status: int = 200, texts: tuple[str, ...] = ("Ready for duty!",)) -> None:
        self.requests: list[str] = []
        self._status, self._texts = status, list(texts)
        server = LocalSites()
        server.mount("127.0.0.1", Starlette(routes=[Route("/reset", self._reset), Route("/status", self._report)]))
        self.url = f"http://{server.address}"

    def _reset(self, request: Request) -> Response:
        self.requests.append("reset")
        return PlainTextResponse("", self._status)

    def _report(self, request: Request) -> Response:
        self.requests.append("status")
        if not self._texts:
            return PlainTextResponse("Endpoint not found", 404)
        return PlainTextResponse(self._texts.pop(0) if len(self._texts) > 1 else self._texts[0])


@pytest.mark.parametrize("status", [200, 418])
def test_a_reset_waits_until_the_sites_are_ready(status: int) -> None:
    server = ResetServer(status, ("Reset in progress.", "Reset in progress.", "Ready for duty!"))
    FullReset(server.url, interval=0.01)()
    assert server.requests == ["reset", "status", "status", "status"]


def test_a_reset_server_without_a_status_is_ready_when_it_answers() -> None:
    server = ResetServer(200, ())
    FullReset(server.url)()
    assert server.requests == ["reset", "status"]


def test_a_reset_that_fails_or_times_out_raises() -> None:
    with pytest.raises(EnvError, match="answered /reset with status 500"):
        FullReset(ResetServer(500).url)()
    with pytest.raises(EnvError, match=r"not reset within 0\.1 s"):
        FullReset(ResetServer(200, ("Reset in progress.",)).url, timeout=0.1, interval=0.01)()
    with pytest.raises(EnvError, match="does not answer"):
        FullReset("http://127.0.0.1:1")()


def test_make_reset_accepts_every_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    def hook() -> None: ...

    assert make_reset(None) is None and make_reset(hook) is hook
    monkeypatch.delenv(VARIABLE, raising=False)
    with pytest.raises(UsageError, match=f"set {VARIABLE}"):
        make_reset("full")
    monkeypatch.setenv(VARIABLE, "http://reset.test:7565/")
    full = make_reset("full")
    assert isinstance(full, FullReset) and full.url == "http://reset.test:7565"
    for wrong in ("episode", "", 7):
        with pytest.raises(UsageError, match="reset is None"):
            make_reset(wrong)  # type: ignore[arg-type]


def test_errors_of_a_hook_become_env_errors() -> None:
    def fail(error: Exception) -> None:
        raise error

    with pytest.raises(EnvError, match="RuntimeError: no"):
        run_reset(lambda: fail(RuntimeError("no")))
    with pytest.raises(UsageError, match="mine"):
        run_reset(lambda: fail(UsageError("mine")))


async def read_nothing(url: str | None, script: str = "") -> str:
    raise AssertionError


def ask(helper: Any, *arguments: str, urls: dict[str, str]) -> str:
    episode = FinishedEpisode("", "", "http://x.test/", read_nothing, urls=urls)
    answer: str = asyncio.run(helper(episode, *arguments))
    return answer


def test_helpers_query_the_shop() -> None:
    stubs = Stubs()
    urls = {"shopping": stubs.urls["shopping"]}
    assert ask(latest_order_url, urls=urls) == f"{urls['shopping']}/sales/order/view/order_id/180/"
    assert ask(latest_review_rating, SKU, urls=urls) == ""
    stubs.shop.reviews = [
        {"nickname": "A", "ratings": [{"rating_name": "Rating", "percent": 20}]},
        {
            "nickname": "B",
            "ratings": [{"rating_name": "Price", "percent": 40}, {"rating_name": "Rating", "percent": 60}],
        },
    ]
    assert ask(latest_review_rating, SKU, urls=urls) == "60"
    assert ask(HELPERS["shopping_get_sku_latest_review_author"], SKU, urls=urls) == "B"
    stubs.shop.orders = []
    with pytest.raises(EnvError, match="no newest order"):
        ask(latest_order_url, urls=urls)
    with pytest.raises(EnvError, match="404"):
        ask(latest_review_rating, "../orders", urls=urls)
    with pytest.raises(UsageError, match="set WA_SHOPPING"):
        ask(latest_order_url, urls={})


@pytest.mark.parametrize(
    ("url", "post"),
    [
        ("http://f.test:9/f/books/12/a-title/-/comment/3", "http://f.test:9/f/books/12/"),
        ("http://f.test:9/f/books/12", "http://f.test:9/f/books/12/"),
        ("http://f.test:9/f/books", "http://f.test:9/f/books"),
        ("http://f.test:9/user/a/b/c", "http://f.test:9/user/a/b/c"),
        ("about:blank", "about:blank"),
    ],
)
def test_reddit_post_url_finds_the_post(url: str, post: str) -> None:
    assert ask(reddit_post_url, url, urls={}) == post


def test_environment_variables_replace_accounts(monkeypatch: pytest.MonkeyPatch) -> None:
    assert account("gitlab").user == "byteblaze"
    monkeypatch.setenv("WA_GITLAB_USERNAME", "me")
    assert account("gitlab") == ("me", "hello1234")


def test_on_one_host_only_the_forum_has_a_login() -> None:
    names = ["shopping", "reddit", "wikipedia"]
    one = SiteAddresses.of({"shopping": "http://a.test:1", "reddit": "http://a.test:2", "wikipedia": "http://a.test:3"})
    two = SiteAddresses.of({"shopping": "http://a.test", "reddit": "http://b.test", "wikipedia": "http://c.test"})
    assert login_sites(one, names) == ["reddit"]
    assert login_sites(two, names) == ["shopping", "reddit"]
    assert login_sites(one, ["shopping"]) == ["shopping"]
