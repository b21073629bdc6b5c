"""The protocols of web search engines, from the side of the vendor, after their documentation."""

from collections.abc import Callable
from typing import Any

from tests.search.protocol_server import Answer, Received, Reply

KEY = "sk-very/secret+key"
CSE = "0123456789:abcdef"
PAGES = [
    {
        "title": f"Page {i} of &quot;x&quot;",
        "url": f"https://example.org/{i}",
        "text": f"The <strong>text</strong> {i} &amp; more.",
    }
    for i in range(40)
]
Pages = list[dict[str, str]]


def some(pages: Pages, count: object, most: int) -> Pages:
    number = int(str(count))
    assert 1 <= number <= most, "the vendor refuses this number of results"
    return pages[:number]


def serpapi(request: Received, pages: Pages) -> Reply:
    assert (request.method, request.path) == ("GET", "/search") and request.parameters["engine"] == "google"
    if request.parameters.get("api_key") != KEY:
        return Reply(401, {"error": "Invalid API key. Your API key should be here: https://serpapi.com/manage-api-key"})
    if not request.parameters.get("q"):
        return Reply(400, {"error": "Missing query `q` parameter."})
    found = some(pages, request.parameters["num"], 100)
    results = [
        {"position": i, "title": p["title"], "link": p["url"], "snippet": p["text"]} for i, p in enumerate(found)
    ]
    reply = {"search_metadata": {"id": "1", "status": "Success"}, "search_parameters": {"q": request.parameters["q"]}}
    if not results:
        return Reply(200, {**reply, "error": "Google hasn't returned any results for this query."})
    return Reply(200, {**reply, "organic_results": results})


def brave(request: Received, pages: Pages) -> Reply:
    assert (request.method, request.path) == ("GET", "/search") and request.headers["accept"] == "application/json"
    if request.headers.get("x-subscription-token") != KEY:
        return Reply(401, {"type": "ErrorResponse", "error": {"code": "SUBSCRIPTION_TOKEN_INVALID", "status": 401}})
    query = request.parameters.get("q", "")
    if not query or len(query) > 400 or len(query.split()) > 50:
        return Reply(422, {"type": "ErrorResponse", "error": {"code": "VALIDATION", "status": 422}})
    found = some(pages, request.parameters["count"], 20)
    results = [{"type": "search_result", "title": p["title"], "url": p["url"], "description": p["text"]} for p in found]
    reply: dict[str, Any] = {"type": "search", "query": {"original": query, "more_results_available": False}}
    return Reply(200, {**reply, "web": {"type": "search", "results": results}} if results else reply)


def tavily(request: Received, pages: Pages) -> Reply:
    assert (request.method, request.path) == ("POST", "/search")
    if request.headers.get("authorization") != f"Bearer {KEY}":
        return Reply(401, {"detail": {"error": "Unauthorized: missing or invalid API key."}})
    if not request.body["query"] or len(request.body["query"]) > 400:
        return Reply(400, {"detail": {"error": "Query is too long. Max query length is 400 characters."}})
    found = some(pages, request.body["max_results"], 20)
    results = [
        {"title": p["title"], "url": p["url"], "content": p["text"], "score": 0.9, "raw_content": None} for p in found
    ]
    return Reply(200, {"query": request.body["query"], "results": results, "images": [], "response_time": 1.1})


def google_cse(request: Received, pages: Pages) -> Reply:
    assert (request.method, request.path) == ("GET", "/search")
    if request.parameters.get("key") != KEY or request.parameters.get("cx") != CSE:
        error = {"code": 400, "message": "API key not valid.", "status": "INVALID_ARGUMENT"}
        return Reply(400, {"error": error})
    found = some(pages, request.parameters["num"], 10)
    results = [
        {"kind": "customsearch#result", "title": p["title"], "link": p["url"], "snippet": p["text"]} for p in found
    ]
    reply = {"kind": "customsearch#search", "searchInformation": {"totalResults": str(len(results))}}
    return Reply(200, {**reply, "items": results} if results else reply)


def searxng(request: Received, pages: Pages) -> Reply:
    assert (request.method, request.path) == ("GET", "/search")
    if request.parameters.get("format") != "json":
        return Reply(403, b"Forbidden")
    results = [{"title": p["title"], "url": p["url"], "content": p["text"], "engine": "bing"} for p in pages[:20]]
    query = request.parameters["q"]
    return Reply(200, {"query": query, "number_of_results": 0, "results": results, "unresponsive_engines": []})


VENDORS: dict[str, Callable[[Received, Pages], Reply]] = {
    "serpapi": serpapi, "brave": brave, "tavily": tavily, "google-cse": google_cse, "searxng": searxng,
}  # fmt: skip


def answering(engine: str, pages: Pages | None = None) -> Answer:
    """The answers of a vendor: `pages` for every query, and nothing for the query "nothing"."""

    def answer(request: Received) -> Reply:
        query = (request.body or {}).get("query") or request.parameters.get("q")
        return VENDORS[engine](request, [] if query == "nothing" else PAGES if pages is None else pages)

    return answer
