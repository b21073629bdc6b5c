import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from agentgym_envs.errors import UsageError
from agentgym_envs.webarena.evaluators.base import FinishedEpisode, Verdict
from agentgym_envs.webarena.evaluators.dom import Helper, HelperCall, PageHolds, parse_helper_call
from agentgym_envs.webarena.evaluators.network import RecordedRequest, Requested, look_up
from tests.webarena.conftest import HOME, Agent, MakeAgent, Site, html
from tests.webarena.verified_tasks import entry

PAGE = "http://shop.test/item"
LAST = "http://shop.test/order/7"
HTML = "<p>Price: <b id=price>$27.0000</b> for Tom &amp; Jerry&#39;s lamp</p><input name=stock value='   5'>"


class Pages:
    """Pages whose expressions have the values in a table; the engine's own reader has separate tests."""

    def __init__(self, values: Mapping[tuple[str | None, str], str]) -> None:
        self.values, self.reads = values, list[tuple[str | None, str]]()

    async def __call__(self, url: str | None, script: str = "") -> str:
        self.reads.append((url, script))
        return self.values.get((url, script), "")


def verdict(check: PageHolds, pages: Pages) -> Verdict:
    return asyncio.run(_ask(check, FinishedEpisode("Do it", "", LAST, pages)))


async def _ask(evaluator: Any, episode: FinishedEpisode) -> Verdict:
    found: Verdict = await evaluator(episode)
    return found


def check(required: dict[str, Any], url: str = PAGE, locator: str = "", **more: Any) -> PageHolds:
    return PageHolds.from_check({"url": url, "locator": locator, "required_contents": required, **more}, HELPERS)


async def latest_order(episode: FinishedEpisode) -> str:
    return f"{episode.urls.get('shopping', 'http://shop.test')}/order/9"


async def post_of(episode: FinishedEpisode, url: str) -> str:
    return url.rpartition("/")[0]


async def role_of(episode: FinishedEpisode, page: str | None, name: str) -> str:
    return await episode.read(page, f"role({name})")


HELPERS: dict[str, Helper] = {"latest_order": latest_order, "post_of": post_of, "role_of": role_of}


def test_the_html_of_a_page_is_scored() -> None:
    pages = Pages({(PAGE, ""): HTML})
    assert verdict(check({"must_include": ["27", "tom & jerry's", "$30 |OR| $27.00"]}), pages) == Verdict(1.0)
    found = verdict(check({"must_include": ["$27.00", "Desk"]}), pages)
    assert found.score == 0.0 and found.reason.startswith(f'the HTML on {PAGE} is "<p>Price')
    assert found.reason.endswith("does not include 'Desk'")


def test_an_expression_is_evaluated_on_the_last_page() -> None:
    pages = Pages({(None, "document.title"): "Order 7 "})
    assert verdict(check({"exact_match": "order 7"}, "last", "document.title;"), pages) == Verdict(1.0)
    assert verdict(check({"exact_match": "order 8"}, "last", "document.title"), pages) == Verdict(
        0.0, "'document.title' on the last page is 'Order 7 ', not 'order 8'"
    )
    assert pages.reads == [(None, "document.title")] * 2


def test_preparations_are_part_of_the_expression() -> None:
    pages = Pages({})
    verdict(check({"exact_match": "x"}, "last", "a.value", prep_actions=["b.click()", "c.click()"]), pages)
    assert pages.reads == [(None, "(() => { try { b.click(); c.click() } catch {} return a.value; })()")]


def test_helpers_return_the_page_and_its_content() -> None:
    pages = Pages(
        {("http://shop.test/order/9", "x"): "1", ("http://shop.test/order", "x"): "2", (PAGE, "role(a)"): "3"}
    )
    assert verdict(check({"exact_match": "1"}, "func:latest_order()", "x"), pages) == Verdict(1.0)
    assert verdict(check({"exact_match": "2"}, "func:post_of('__last_url__')", "x"), pages) == Verdict(1.0)
    assert verdict(check({"exact_match": "3"}, PAGE, "func:role_of(__page__, 'a')"), pages) == Verdict(1.0)
    assert verdict(check({"exact_match": "3"}, "last", "func:role_of(__page__, 'a')"), pages).score == 0.0


def test_helper_calls_are_parsed_but_not_run() -> None:
    assert parse_helper_call("func:role_of(__page__, 'it\\'s')") == HelperCall("role_of", (None, "it's"))
    assert parse_helper_call("func:latest_order()") == HelperCall("latest_order", ())


@pytest.mark.parametrize(
    "text",
    ["func:__import__('os').system('x')", "func:f(g())", "func:f(1)", "func:f(x='a')", "func:f", "func:f('a", "func:"],
)
def test_a_malformed_helper_call_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"is no call of a helper|must be texts or __page__"):
        parse_helper_call(text)


@pytest.mark.parametrize("required", [{}, {"fuzzy_match": ["x"]}, {"exact_match": "x", "must_include": ["x"]}, None])
def test_unknown_requirements_are_refused(required: Any) -> None:
    with pytest.raises(UsageError, match="holds exact_match or must_include"):
        check(required)


def test_an_unknown_helper_is_reported_before_scoring() -> None:
    with pytest.raises(UsageError, match="no helper is called 'f'; there are: latest_order, post_of, role_of"):
        check({"exact_match": "x"}, "func:f('x')")


FORM = {"mimeType": "application/x-www-form-urlencoded", "text": "title=My+post&body=Hi%0Athere&n=30&title=other"}
PARTS = {
    "mimeType": "multipart/form-data; boundary=zz",
    "text": '--zz\r\nContent-Disposition: form-data; name="title"\r\n\r\nMy "post"\r\né\r\n'
    '--zz\r\nContent-Disposition: form-data; name="f"; filename="a.txt"\r\n'
    "Content-Type: text/plain\r\n\r\nfile\r\n--zz--\r\n",
}
JSON = {
    "mimeType": "application/json;charset=utf-8",
    "text": '{"a": {"b": [{"c": 1}, {"c": 2}]}, "s": "[{\\"d\\": 3}]"}',
}
ENTRIES = [
    entry("GET", "http://shop.test/new?sort=1&page=2", {"Referer": "http://shop.test/"}),
    entry("POST", "http://shop.test/new", status=302, post=FORM),
    entry("POST", "http://shop.test/new", {"X-Kind": "second"}, status=422, post=JSON),
]


def requested(evaluator: Requested) -> Verdict:
    async def no_pages(url: str | None, script: str = "") -> str:
        raise AssertionError

    return asyncio.run(_ask(evaluator, FinishedEpisode("", "", "", no_pages, ENTRIES)))


@pytest.mark.parametrize(
    "evaluator",
    [
        Requested("http://shop.test/new"),
        Requested("http://SHOP.test:80/new/?page=2"),
        Requested(["http://shop.test/old", "http://shop.test/new"], "post", 302),
        Requested(r"^http://shop\.test/n\w+\?sort=\d&.*$"),
        Requested("http://shop.test/new", headers={"referer": r"http://shop\.test/"}),
        Requested("http://shop.test/new", "POST", posted={"title": "My post", "body": "Hi there", "n": 30}),
        Requested("http://shop.test/new", "POST", posted={"$.a.b[1].c": 2, "$.a.b[-1].c": {2, 3}}, last=True),
        Requested("http://shop.test/new", "POST", posted={"$.a.b[*].c": 1, "$.s[0].d": 3}),
        Requested("http://shop.test/new", "DELETE", never=True),
        Requested("http://shop.test/new", "POST", posted={"title": "other"}, never=True),
    ],
)
def test_a_matching_request_scores_1(evaluator: Requested) -> None:
    assert requested(evaluator) == Verdict(1.0)


@pytest.mark.parametrize(
    ("evaluator", "reason"),
    [
        (Requested("http://shop.test/old"), "any method http://shop.test/old was not requested"),
        (Requested("http://shop.test/new?page=3"), "any method http://shop.test/new?page=3 was not requested"),
        (Requested("http://shop.test/ne"), "any method http://shop.test/ne was not requested"),
        (Requested("http://shop.test/new", "PUT"), "PUT http://shop.test/new was not requested"),
        (
            Requested("http://shop.test/new", "POST", 302, last=True),
            "POST http://shop.test/new was not requested: its status was 422, not 302",
        ),
        (
            Requested("http://shop.test/new", "POST", posted={"title": "My"}),
            "POST http://shop.test/new was not requested: it carried title = nothing, not 'My'",
        ),
        (
            Requested("http://shop.test/new", headers={"x-kind": "first"}),
            "any method http://shop.test/new was not requested: its header x-kind was 'second'",
        ),
        (Requested("http://shop.test/new", "POST", 302, never=True), "POST http://shop.test/new was requested"),
    ],
)
def test_the_reason_names_the_missing_request(evaluator: Requested, reason: str) -> None:
    assert requested(evaluator) == Verdict(0.0, reason)


def test_posted_data_is_read_in_every_format() -> None:
    posted = [RecordedRequest(entry("POST", PAGE, post=data)).posted for data in (FORM, PARTS, JSON)]
    assert posted[0] == {"title": "My post", "body": "Hi\nthere", "n": "30"}
    assert posted[1] == {"title": 'My "post"\r\né', "f": "file"}
    assert posted[2]["a"] == {"b": [{"c": 1}, {"c": 2}]}
    for nothing in ({}, {"mimeType": "application/json", "text": "["}, {"mimeType": "application/json", "text": "[1]"}):
        assert RecordedRequest(entry("POST", PAGE, post=nothing)).posted == {}


def test_paths_to_missing_values_find_nothing() -> None:
    data = {"a": [1, {"b": None}], "c": "no json"}
    assert look_up(data, "$.a[1].b") == [None]
    for path in ("x", "$.x", "$.a[2]", "$.a.b", "$.a[x]", "$.c.d", "$.a[0].b", "$.a[*].b.c"):
        assert look_up(data, path) == []


HIDDEN = "<button onclick=\"document.body.append('Opened')\">Open</button><p id=price>$27.00</p>"


def after(agent: Agent, evaluator: Any) -> Verdict:
    async def judge() -> Verdict:
        session = agent.session
        return await _ask(evaluator, FinishedEpisode("Do it", "", session.url, session.read, await session.har()))

    return agent.run(judge())


@pytest.mark.slow
def test_pages_are_read_in_a_browser(agent: Agent) -> None:
    agent.show(HIDDEN)
    agent.site.put("/other", html("<p class=name>Tom &amp;amp; Jerry</p><select><option>a<option selected>b</select>"))
    click = ["document.querySelector('button').click()", "document.querySelector('#nothing').click()"]
    text = "document.body.innerText"
    assert after(agent, check({"must_include": ["Opened", "27"]}, "last", text, prep_actions=click)) == Verdict(1.0)
    other = HOME + "other"
    for required, url, locator in (
        ({"exact_match": "27"}, "last", "document.querySelector('#price').outerText;"),
        ({"exact_match": "Tom & Jerry"}, other, "document.querySelector('.name').outerText"),
        ({"exact_match": "1"}, other, "document.querySelector('select').selectedIndex"),
        ({"must_include": ['class="name"', "<option>a"]}, other, ""),
    ):
        assert after(agent, check(required, url, locator)) == Verdict(1.0)
    assert after(agent, check({"exact_match": "x"}, other, "document.querySelector('#no').value")).score == 0.0
    assert "cannot be read" in after(agent, check({"must_include": ["x"]}, "http://elsewhere.test/", text)).reason
    assert agent.path == "/"


@pytest.mark.slow
def test_requests_of_a_browser_are_scored(make_agent: MakeAgent, site: Site) -> None:
    agent = make_agent(record=True)
    site.put("/saved", html("Saved"))
    form = (
        "<form method=post action=/saved{}><input name=title aria-label=Title><input name=n value=7><button>Go</button>"
    )
    for kind in ("", " enctype=multipart/form-data"):
        agent.show(form.format(kind))
        agent.type("textbox", "Title", "Größe & more")
        agent.click("button", "Go")
        posted = {"title": "Größe & more", "n": 7}
        found = after(agent, Requested(HOME + "saved", "POST", 200, posted, {"referer": HOME}, last=True))
        assert found == Verdict(1.0), (kind, found)
    assert after(agent, Requested(HOME + "saved", "POST", posted={"n": 8})).score == 0.0
