"""Evaluators of the requests that the agent's browser sent to the sites."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from email.parser import BytesParser
from email.policy import HTTP
from typing import Any
from urllib.parse import parse_qsl

from agentgym_envs.webarena.evaluators.base import FinishedEpisode, Verdict
from agentgym_envs.webarena.evaluators.state import same
from agentgym_envs.webarena.evaluators.strings import shown
from agentgym_envs.webarena.evaluators.urls import parse_url


@dataclass(frozen=True, slots=True)
class RecordedRequest:
    """One recorded request: an entry of an HTTP archive (HAR 1.2)."""

    entry: Mapping[str, Any]

    @property
    def url(self) -> str:
        """The URL of the request."""
        return str(self.entry["request"]["url"])

    @property
    def method(self) -> str:
        """The method in capitals, such as "GET"."""
        return str(self.entry["request"]["method"]).upper()

    @property
    def status(self) -> int:
        """The status of the response; 0 or less without a response."""
        return int(self.entry.get("response", {}).get("status", 0))

    @property
    def headers(self) -> dict[str, str]:
        """The request's headers by their names in lower case."""
        return {header["name"].lower(): header["value"] for header in self.entry["request"].get("headers", ())}

    @property
    def posted(self) -> Mapping[str, Any]:
        """The posted form or JSON object. If a name occurs twice, its first value counts."""
        data = self.entry["request"].get("postData") or {}
        kind, text = str(data.get("mimeType", "")), str(data.get("text", ""))
        if "json" in kind:
            return _read_json(text)
        if "multipart/form-data" in kind:
            return _read_multipart(kind, text)
        return dict(reversed(parse_qsl(text, keep_blank_values=True)))


@dataclass(frozen=True, slots=True)
class Requested:
    """The browser sent a request like this one, or with `never`, it did not.

    Attributes:
        url: one or more URLs. The request must have the scheme, host, port and path of one of them, and at least its
            query. A regular expression (^...$) must match the whole URL.
        method: the method; any by default.
        status: the status of the response; any by default.
        posted: expected values by name, or by path into a JSON object ("$.note.text", "$.items[0].name"). Values are
            compared as in a database, but numbers may be text.
        headers: regular expressions by header name; each must match the whole value.
        last: consider only the last request to one of the URLs.
        never: expect that no such request was sent.
    """

    url: str | Sequence[str]
    method: str | None = None
    status: int | None = None
    posted: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    last: bool = False
    never: bool = False

    async def __call__(self, episode: FinishedEpisode) -> Verdict:
        """Score the episode."""
        requests = [request for request in map(RecordedRequest, episode.requests) if self._has_url(request)]
        reasons = [self._difference(request) for request in (requests[-1:] if self.last else requests)]
        found = "" in reasons
        if found != self.never:
            return Verdict(1.0)
        if self.never:
            return Verdict(0.0, f"{self._description()} was requested")
        return Verdict(0.0, f"{self._description()} was not requested{f': {reasons[-1]}' if reasons else ''}")

    def _has_url(self, request: RecordedRequest) -> bool:
        urls = [self.url] if isinstance(self.url, str) else self.url
        method = self.method is None or self.method.upper() == request.method
        return method and any(same_url(url, request.url) for url in urls)

    def _difference(self, request: RecordedRequest) -> str:
        """The first difference from the expected request; "" without one."""
        if self.status not in (None, request.status):
            return f"its status was {request.status}, not {self.status}"
        for name, pattern in self.headers.items():
            if re.fullmatch(pattern, request.headers.get(name.lower(), "")) is None:
                return f"its header {name} was {shown(request.headers.get(name.lower(), ''))}"
        for name, expected in self.posted.items():
            values = look_up(request.posted, name)
            if not any(_same_posted(expected, value) for value in values):
                return f"it carried {name} = {', '.join(map(repr, values)) or 'nothing'}, not {expected!r}"
        return ""

    def _description(self) -> str:
        urls = [self.url] if isinstance(self.url, str) else self.url
        return f"{self.method or 'any method'} {' or '.join(urls)}"


def same_url(reference: str, url: str) -> bool:
    """Return True if a URL has the reference's page and at least its query, or matches a regular expression (^...$)."""
    if reference.startswith("^") and reference.endswith("$"):
        return re.fullmatch(reference, url) is not None
    expected, actual = parse_url(reference), parse_url(url)
    return actual._replace(query=expected.query) == expected and actual.query >= expected.query


def look_up(data: Any, path: str) -> list[Any]:
    """The values at a path: a plain name, or steps into JSON such as $.a.b[0]; [*] and .* select all values."""
    if not path.startswith("$"):
        return [data[path]] if isinstance(data, Mapping) and path in data else []
    found = [data]
    for name, index in re.findall(r"\.([^.\[\]]+)|\[([^\]]*)\]", path):
        found = [value for one in found for value in _step(one, name or index.strip("'\""))]
    return found


def _step(data: Any, name: str) -> list[Any]:
    if isinstance(data, str):  # JSON within JSON
        data = _loads(data)
    if isinstance(data, Mapping):
        return list(data.values()) if name == "*" else [data[name]] if name in data else []
    if not isinstance(data, list):
        return []
    if name == "*":
        return data
    return [data[int(name)]] if re.fullmatch(r"-?\d+", name) and -len(data) <= int(name) < len(data) else []


def _same_posted(expected: Any, value: Any) -> bool:
    """Compare values; forms send numbers as text."""
    if isinstance(expected, int | float) and isinstance(value, str):
        return str(expected) == value or same(expected, _loads(value))
    return same(expected, value)


def _loads(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _read_json(text: str) -> Mapping[str, Any]:
    data = _loads(text)
    return data if isinstance(data, Mapping) else {}


def _read_multipart(kind: str, text: str) -> dict[str, str]:
    """The fields of a multipart form; a file is represented by its text."""
    head = f"Content-Type: {kind}\r\n\r\n".encode()
    message = BytesParser(policy=HTTP).parsebytes(head + text.encode("utf-8", "surrogateescape"))
    fields: dict[str, str] = {}
    for part in message.iter_parts() if message.is_multipart() else ():
        name = part.get_param("name", header="content-disposition")
        if isinstance(name, str):
            content = part.get_payload(decode=True)
            fields.setdefault(name, content.decode("utf-8", "replace") if isinstance(content, bytes) else "")
    return fields
