"""The registry of web search engines: one row each, with the request and the reply of its protocol.

A request asks for one page of results. A result is a title, a URL and a snippet. Keys come from the environment.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlencode

from agentgym_envs.search.retrieval.http_client import HttpRequest

MOST_SNIPPET_CHARS = 4_000
_TAG = re.compile(r"</?(?:b|strong|em|mark)>", re.IGNORECASE)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]")


class WebResult(NamedTuple):
    """A result: plain text, without line breaks in title and URL."""

    title: str
    url: str
    snippet: str


class WebEngine(NamedTuple):
    """A web search engine.

    Attributes:
        help: a few words for the command line.
        url: the address of its API; "" if each user has another.
        secrets: the variables of the environment with its key and what else it needs, in this order.
        request: makes the request from the URL, the query, the number of results, and the values of the secrets.
        read: returns the results of a reply (JSON), or raises Unusable, KeyError, TypeError, AttributeError.
        most_results: the most results of a request.
        most_chars: the longest query that it accepts.
        most_words: the most words of a query that it accepts.
        rate: requests per second by default.
        hints: what to do, by status.
    """

    help: str
    url: str
    secrets: tuple[str, ...]
    request: Callable[[str, str, int, tuple[str, ...]], HttpRequest]
    read: Callable[[Any], list[WebResult]]
    most_results: int
    most_chars: int = 2_048
    most_words: int = 400
    rate: float = 5.0
    hints: Mapping[int, str] = {}


class Unusable(Exception):
    """Raised for a reply that reports a failure of the engine. The text is shown to the user, never to the agent."""


def clean(title: object, url: object, snippet: object) -> WebResult:
    """Make a result of what a reply holds: no markup of matches, entities, control characters or lone surrogates."""
    return WebResult(
        " ".join(_plain(title).split()), "".join(_plain(url).split()), _plain(snippet)[:MOST_SNIPPET_CHARS]
    )


def _plain(value: object) -> str:
    text = value if isinstance(value, str) else ""
    text = _CONTROL.sub(" ", html.unescape(_TAG.sub("", text)))
    return text.encode(errors="replace").decode().strip()


def _get(url: str, parameters: Mapping[str, object], headers: Mapping[str, str] | None = None) -> HttpRequest:
    return HttpRequest("GET", f"{url}?{urlencode(parameters)}", headers=headers or {})


def _serpapi_request(url: str, query: str, count: int, secrets: tuple[str, ...]) -> HttpRequest:
    return _get(url, {"engine": "google", "q": query, "num": count, "output": "json", "api_key": secrets[0]})


def _serpapi_read(reply: Any) -> list[WebResult]:
    status, error = reply.get("search_metadata", {}).get("status"), reply.get("error")
    if error and status != "Success":  # "Success" with an error means that Google found nothing
        raise Unusable(str(error))
    return [clean(item.get("title"), item["link"], item.get("snippet")) for item in reply.get("organic_results", [])]


def _brave_request(url: str, query: str, count: int, secrets: tuple[str, ...]) -> HttpRequest:
    headers = {"accept": "application/json", "x-subscription-token": secrets[0]}
    return _get(url, {"q": query, "count": count, "text_decorations": "false", "result_filter": "web"}, headers)


def _brave_read(reply: Any) -> list[WebResult]:
    found = []
    for item in (reply.get("web") or {}).get("results", []):
        snippets = [item.get("description") or "", *(item.get("extra_snippets") or [])]
        found.append(clean(item.get("title"), item["url"], "\n".join(snippets)))
    return found


def _tavily_request(url: str, query: str, count: int, secrets: tuple[str, ...]) -> HttpRequest:
    headers = {"content-type": "application/json", "authorization": f"Bearer {secrets[0]}"}
    body = {"query": query, "max_results": count, "search_depth": "basic"}
    return HttpRequest("POST", url, json.dumps(body).encode(), headers)


def _google_request(url: str, query: str, count: int, secrets: tuple[str, ...]) -> HttpRequest:
    return _get(url, {"q": query, "num": count, "key": secrets[0], "cx": secrets[1]})


def _searxng_request(url: str, query: str, count: int, secrets: tuple[str, ...]) -> HttpRequest:
    return _get(url, {"q": query, "format": "json"})


def _searxng_read(reply: Any) -> list[WebResult]:
    found = [clean(item.get("title"), item["url"], item.get("content")) for item in reply["results"]]
    if not found and (down := reply.get("unresponsive_engines")):  # an outage, which must not read as "nothing found"
        raise Unusable(f"no engine behind it answered: {down!r:.200}")
    return found


WEB_ENGINES: dict[str, WebEngine] = {
    "serpapi": WebEngine(
        help="Google by SerpApi",
        url="https://serpapi.com/search",
        secrets=("SERPAPI_API_KEY",),
        request=_serpapi_request,
        read=_serpapi_read,
        most_results=100,
    ),
    "brave": WebEngine(
        help="Brave Search",
        url="https://api.search.brave.com/res/v1/web/search",
        secrets=("BRAVE_API_KEY",),
        request=_brave_request,
        read=_brave_read,
        most_results=20,
        most_chars=400,
        most_words=50,
        rate=1.0,  # of the free plan
    ),
    "tavily": WebEngine(
        help="Tavily",
        url="https://api.tavily.com/search",
        secrets=("TAVILY_API_KEY",),
        request=_tavily_request,
        read=lambda reply: [clean(i.get("title"), i["url"], i.get("content")) for i in reply["results"]],
        most_results=20,
        most_chars=400,
        hints=dict.fromkeys((432, 433), "the plan's limit is reached"),
    ),
    "google-cse": WebEngine(
        help="Google Custom Search",
        url="https://www.googleapis.com/customsearch/v1",
        secrets=("GOOGLE_API_KEY", "GOOGLE_CSE_ID"),
        request=_google_request,
        read=lambda reply: [clean(i.get("title"), i["link"], i.get("snippet")) for i in reply.get("items", [])],
        most_results=10,
    ),
    "searxng": WebEngine(
        help="an instance of SearXNG",
        url="",
        secrets=(),
        request=_searxng_request,
        read=_searxng_read,
        most_results=50,
        hints={403: "the instance must allow JSON: `search: formats: [html, json]` in its settings.yml"},
    ),
}
"""Web engines by name.

Sources: https://serpapi.com/search-api and https://serpapi.com/search-errors,
https://api-dashboard.search.brave.com/api-reference/web/search/get, https://docs.tavily.com (POST /search),
https://developers.google.com/custom-search/v1/using_rest, https://docs.searxng.org/dev/search_api.html.
"""
