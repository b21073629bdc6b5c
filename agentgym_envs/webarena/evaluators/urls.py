"""The evaluator of the agent's last page by its URL."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

from agentgym_envs.errors import UsageError
from agentgym_envs.webarena.evaluators.base import FinishedEpisode, Verdict
from agentgym_envs.webarena.evaluators.strings import OR, shown

_PORTS = {"http": 80, "https": 443}


class ParsedUrl(NamedTuple):
    """The parts of a URL, decoded and in lower case, without user and fragment. The path is a tuple of segments."""

    scheme: str
    host: str
    port: int | None
    path: tuple[str, ...]
    query: frozenset[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class EndsOn:
    """The agent's last page has the reference URL, or one of its alternatives (" |OR| ").

    Scheme, host, port and path must be equal after decoding. The page must have every value of the reference's query,
    and may have more. Case is ignored, because WebArena's tasks write forum names in lower case (/f/machinelearning).

    With `below`, the path may continue after the reference's path, by whole segments. WebArena's tasks that create
    something need this: they name /f/books for /f/books/130/title, or /-/issues for /-/issues/12. The administration of
    its shop also appends filters and keys to a path. WebArena itself accepts any URL that contains the reference, so
    that /f/iphone also matches /f/iphone13.
    """

    reference: str
    below: bool = False

    async def __call__(self, episode: FinishedEpisode) -> Verdict:
        """Score the episode."""
        page = parse_url(episode.url)
        if any(self._matches(page, parse_url(reference)) for reference in self.reference.split(OR)):
            return Verdict(1.0)
        return Verdict(0.0, f"the last page is {shown(episode.url)}, not {shown(self.reference)}")

    def _matches(self, page: ParsedUrl, reference: ParsedUrl) -> bool:
        path = page.path[: len(reference.path)] if self.below else page.path
        return page._replace(path=path, query=reference.query) == reference and page.query >= reference.query


def parse_url(url: str) -> ParsedUrl:
    """Parse a URL. Raises UsageError if it is malformed."""
    try:
        parts = urlsplit(url.strip())
        port = parts.port or _PORTS.get(parts.scheme.lower())
    except ValueError as error:
        raise UsageError(f"{url!r} is no URL: {error}") from None
    path = tuple(unquote(segment).strip().casefold() for segment in parts.path.split("/") if segment)
    return ParsedUrl(parts.scheme.lower(), (parts.hostname or "").rstrip("."), port, path, query_of(parts.query))


def query_of(query: str) -> frozenset[tuple[str, str]]:
    """The names and values of a query, without surrounding white space; values are in lower case."""
    pairs = parse_qsl(query, keep_blank_values=True)
    return frozenset((name.strip(), value.strip().casefold()) for name, value in pairs)
