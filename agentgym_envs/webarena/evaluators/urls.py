"""The page that the agent ended on, by its URL."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

from agentgym_envs.errors import UsageError
from agentgym_envs.webarena.evaluators.base import FinishedEpisode, Verdict
from agentgym_envs.webarena.evaluators.strings import OR, shown

_PORTS = {"http": 80, "https": 443}


class ParsedUrl(NamedTuple):
    """A URL taken apart: port by number, path by its segments, all decoded and in lower case, no user, no fragment."""

    scheme: str
    host: str
    port: int | None
    path: tuple[str, ...]
    query: frozenset[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class EndsOn:
    """The agent ended on the page of a URL, or of one of its alternatives (" |OR| "), each of which counts whole.

    Scheme, host, port and path are the same, however they are written, and the page has every value of the reference's
    query; it may have more. With `below`, its path may also go on after the reference's, by whole segments: of the 205
    tasks of WebArena with a URL, those that make something end below the page that they name (/f/books for
    /f/books/130/title, /-/issues for /-/issues/12), and its shop's administration puts filters and keys after a path.
    WebArena itself takes any URL in which the reference occurs, so that /f/iphone is also /f/iphone13. The case of
    letters does not count: its tasks name forums that are not written so (/f/machinelearning, /f/diy).
    """

    reference: str
    below: bool = False

    async def __call__(self, episode: FinishedEpisode) -> Verdict:
        """See `Evaluator`."""
        page = parse_url(episode.url)
        if any(self._matches(page, parse_url(reference)) for reference in self.reference.split(OR)):
            return Verdict(1.0)
        return Verdict(0.0, f"the last page is {shown(episode.url)}, not {shown(self.reference)}")

    def _matches(self, page: ParsedUrl, reference: ParsedUrl) -> bool:
        path = page.path[: len(reference.path)] if self.below else page.path
        return page._replace(path=path, query=reference.query) == reference and page.query >= reference.query


def parse_url(url: str) -> ParsedUrl:
    """A URL taken apart. Raises UsageError if it is none."""
    try:
        parts = urlsplit(url.strip())
        port = parts.port or _PORTS.get(parts.scheme.lower())
    except ValueError as error:
        raise UsageError(f"{url!r} is no URL: {error}") from None
    path = tuple(unquote(segment).strip().casefold() for segment in parts.path.split("/") if segment)
    return ParsedUrl(parts.scheme.lower(), (parts.hostname or "").rstrip("."), port, path, query_of(parts.query))


def query_of(query: str) -> frozenset[tuple[str, str]]:
    """The names and values of a query, in lower case and without the white space around them."""
    pairs = parse_qsl(query, keep_blank_values=True)
    return frozenset((name.strip(), value.strip().casefold()) for name, value in pairs)
