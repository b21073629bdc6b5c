"""Formats of search results in observations.

Published checkpoints were trained on the named formats. A passage is data: text in it that looks like one of the tags
of an episode is escaped, and truncation never removes the end of the wrapper.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from agentgym_envs.errors import UsageError
from agentgym_envs.search.retrieval.base import Hit, Passage

NOTHING = "Nothing was found."
_ELLIPSIS = " ..."
_MOST_JSON = 20_000  # JSON may write a character as twelve
_MARKUP = re.compile(
    r"<(?=\s*(?:/\s*)?(?:think|search|information|answer|action|tool_call|tool_response)\b)", re.IGNORECASE
)


class RenderedHits(NamedTuple):
    """An observation, and the number of passages in it."""

    text: str
    passages: int


@dataclass(frozen=True, slots=True)
class Format:
    """A format: `one` renders a passage by its rank from 1, and `wrap` puts all of them into an observation."""

    one: Callable[[int, Passage], str]
    wrap: Callable[[str], str]
    nothing: str = NOTHING
    most_chars: int = 200_000
    """The largest `max_chars`, so that the result fits into an observation."""

    def render(self, hits: Sequence[Hit], max_chars: int, *, neutral: bool = True) -> RenderedHits:
        """Render hits, with at most `max_chars` characters of their passages.

        `neutral=False` leaves tags in passages unescaped.
        """
        shown = shown_passages(hits, max_chars, neutral=neutral)
        rendered = "".join(self.one(rank, passage) for rank, passage in enumerate(shown, 1))
        return RenderedHits(self.wrap(rendered if shown else self.nothing), len(shown))


def shown_passages(hits: Sequence[Hit], max_chars: int, *, neutral: bool = True) -> list[Passage]:
    """The passages of hits as an observation shows them: up to `max_chars` characters of their contents."""
    shown, left = list[Passage](), max_chars
    for hit in hits:
        name, contents = (_MARKUP.sub("&lt;", text) if neutral else text for text in hit.passage)
        if len(contents) > left:
            contents = contents[:left] + _ELLIPSIS
        shown.append(Passage(name, contents))
        left -= len(contents)
        if left <= 0:
            break
    return shown


def _search_r1(rank: int, passage: Passage) -> str:
    title, _, text = passage.contents.partition("\n")  # the title with its quotes, as in the corpus
    return f"Doc {rank}(Title: {title}) {text}\n"


def _skyrl(rank: int, passage: Passage) -> str:
    return f"Doc {rank}: {passage.contents.strip()}\n"


def _verl(rank: int, passage: Passage) -> str:
    title, _, text = passage.contents.partition("\n")
    return f"Doc {rank} (Title: {title})\n{text}\n\n"


def _plain(rank: int, passage: Passage) -> str:
    return f"[{rank}] {passage.title or passage.id}\n{passage.text}\n"


def _result(text: str, ascii_only: bool) -> str:
    return json.dumps({"result": text}, ensure_ascii=ascii_only)


FORMATS: dict[str, Format] = {
    "agentgym": Format(_search_r1, lambda text: f"<information>{text.strip()}</information>"),
    "search-r1": Format(_search_r1, lambda text: f"\n\n<information>{text.strip()}</information>\n\n", nothing=""),
    "skyrl": Format(
        _skyrl, lambda text: f"\n<information>{_result(text, True)}</information>\n", most_chars=_MOST_JSON
    ),
    "verl": Format(_verl, lambda text: _result(text.strip(), False), most_chars=_MOST_JSON),
    "plain": Format(_plain, lambda text: f"<information>\n{text.strip()}\n</information>"),
}
"""Formats by name. Sources: AgentGym's searchqa, Search-R1's generation.py, SkyRL's and verl's search tools."""


def find_format(name: str) -> Format:
    """Return the format of that name. Raises UsageError."""
    if not isinstance(name, str) or name not in FORMATS:
        raise UsageError(f"there is no format {name!r}; choose one of {', '.join(FORMATS)}")
    return FORMATS[name]
