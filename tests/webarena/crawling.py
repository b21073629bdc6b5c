"""A crawler for the embedded sites: visits pages of every kind and collects the forms on them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from agentgym_envs.webarena.sites.framework import login
from agentgym_envs.webarena.sites.framework.site import load_site


@dataclass
class Form:
    """A form: the fields that a browser would send, with their current values."""

    page: str
    action: str
    method: str
    fields: list[tuple[str, str, str]] = field(default_factory=list)
    """(type, name, value)."""


class Page(HTMLParser):
    """The links and forms of a page."""

    def __init__(self, path: str, html: str) -> None:
        super().__init__()
        self.path = path
        self.links: list[str] = []
        self.forms: list[Form] = []
        self.loose: list[tuple[str, tuple[str, str, str]]] = []
        self._open: Form | None = None
        self._select = ""
        self.feed(html)
        for owner, one in self.loose:
            next(form for form in self.forms if getattr(form, "id", "") == owner).fields.append(one)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "a" and given.get("href", "").startswith("/"):
            self.links.append(given["href"])
        elif tag == "form":
            self._open = Form(self.path, given.get("action") or self.path, given.get("method", "get").lower())
            self._open.id = given.get("id", "")  # type: ignore[attr-defined]
            self.forms.append(self._open)
        elif tag in ("input", "button", "textarea", "select") and given.get("name"):
            self._field(tag, given)
        elif tag == "option" and self._select and "value" in given:
            self._add("option", self._select, given["value"], "")

    def _field(self, tag: str, given: dict[str, str]) -> None:
        kind = given.get("type", "text") if tag == "input" else tag
        self._select = given["name"] if tag == "select" else ""
        self._add(kind, given["name"], given.get("value", ""), given.get("form", ""))

    def _add(self, kind: str, name: str, value: str, owner: str) -> None:
        if owner:
            self.loose.append((owner, (kind, name, value)))
        elif self._open is not None:
            self._open.fields.append((kind, name, value))

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self._open = None
        elif tag == "select":
            self._select = ""


class Paths:
    """Maps paths to the routes of a site."""

    def __init__(self, name: str) -> None:
        from starlette.routing import compile_path

        self.routes = [
            (route.method, route.path, compile_path(route.path)[0])
            for route in (*load_site(name).routes, *login.ROUTES)
        ]

    def route(self, method: str, url: str) -> str | None:
        path = urlsplit(url).path
        fits = (name for verb, name, pattern in self.routes if verb == method and pattern.match(path))
        return next(fits, None)

    def all(self, method: str) -> set[str]:
        return {name for verb, name, _ in self.routes if verb == method}


def crawl(http: Any, name: str, *, each: int = 4, most: int = 600) -> Iterator[tuple[str, str]]:
    """Yield (path, HTML) of pages of every kind: at most `each` pages per route and set of query fields."""
    paths, seen, kinds = Paths(name), {"/"}, Counter[Any]()
    waiting = ["/"]
    while waiting and most:
        url = waiting.pop(0)
        response = http.get(url)
        most -= 1
        if not response.headers.get("content-type", "").startswith("text/html"):
            continue
        yield url, response.text
        page = Page(url, response.text)
        for link in [*page.links, *(filled_in(form) for form in page.forms if form.method == "get")]:
            link = link.partition("#")[0]
            kind = paths.route("GET", link), frozenset(key for key, _ in parse_qsl(urlsplit(link).query))
            if link not in seen and kinds[kind] < each:
                seen.add(link)
                kinds[kind] += 1
                waiting.append(link)


def filled_in(form: Form) -> str:
    """Return the URL that a form leads to with its current values, and the first option of each selection."""
    values: dict[str, str] = {}
    for kind, name, value in form.fields:
        if kind == "option" and not values.get(name):
            values[name] = value
        elif kind not in ("button", "select", "checkbox"):
            values.setdefault(name, value)
    return f"{form.action.partition('?')[0]}?{urlencode(values)}"
