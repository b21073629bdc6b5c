"""Evaluators of page contents at the end of an episode, read outside the agent's tabs.

Source: program_html of WebArena (arXiv 2307.13854, section 3.2).
"""

from __future__ import annotations

import ast
import html
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from agentgym_envs.errors import InvalidAction, UsageError
from agentgym_envs.webarena.evaluators.base import FinishedEpisode, Verdict
from agentgym_envs.webarena.evaluators.strings import includes, shown
from agentgym_envs.webarena.evaluators.values import same_value

Helper = Callable[..., Awaitable[str]]
"""An async function that a check calls by name with the episode and text arguments. It returns text.

In the arguments, `__last_url__` is replaced by the agent's last URL, and `__page__` by the page of the check: a URL, or
None for the agent's last page, as `FinishedEpisode.read` accepts it.
"""

_PREFIX = "func:"


@dataclass(frozen=True, slots=True)
class PageHolds:
    """A page includes some texts, or has exactly one text. Python evaluates none of the expressions.

    Attributes:
        url: a URL, "last" for the agent's last page, or `func:name('argument')` for the result of a helper.
        locator: a JavaScript expression, "" for the HTML of the whole page, or a `func:` call.
        includes: texts that the page must include.
        exact: the only text that the page must have.
        before: JavaScript expressions to evaluate first; their errors are ignored.
        helpers: the functions that `func:` may call, by name.
    """

    url: str
    locator: str = ""
    includes: Sequence[str] = ()
    exact: str | None = None
    before: Sequence[str] = ()
    helpers: Mapping[str, Helper] = field(default_factory=dict)

    @classmethod
    def from_check(cls, check: Mapping[str, Any], helpers: Mapping[str, Helper]) -> PageHolds:
        """Read one entry of a task's `program_html`. Raises UsageError if it is malformed."""
        required = check.get("required_contents")
        if not isinstance(required, Mapping) or len(required.keys() & {"exact_match", "must_include"}) != 1:
            raise UsageError(f"required_contents holds exact_match or must_include, not {required!r}")
        included, exact = tuple(required.get("must_include", ())), required.get("exact_match")
        new = cls(check["url"], check["locator"], included, exact, tuple(check.get("prep_actions", ())), helpers)
        for text in (new.url, new.locator):
            if text.startswith(_PREFIX):
                new._helper(parse_helper_call(text))
        return new

    async def __call__(self, episode: FinishedEpisode) -> Verdict:
        """Score the episode; 0 if the agent's URL leads to a host that is not allowed."""
        page = await self._page(episode)
        where = f"{shown(self.locator) if self.locator else 'the HTML'} on {page or 'the last page'}"
        try:
            content = html.unescape(await self._content(episode, page))
        except InvalidAction as error:
            return Verdict(0.0, f"{where} cannot be read: {error}")
        if self.exact is not None and not same_value(self.exact, content):
            return Verdict(0.0, f"{where} is {shown(content)}, not {shown(self.exact)}")
        for reference in self.includes:
            if not includes(content, reference):
                return Verdict(0.0, f"{where} is {shown(content)}, which does not include {shown(reference)}")
        return Verdict(1.0)

    async def _page(self, episode: FinishedEpisode) -> str | None:
        if self.url.startswith(_PREFIX):
            return await self._call(parse_helper_call(self.url), episode, None)
        return None if self.url == "last" else self.url

    async def _content(self, episode: FinishedEpisode, page: str | None) -> str:
        locator = self.locator.strip()
        if locator.startswith(_PREFIX):
            return await self._call(parse_helper_call(locator), episode, page)
        return await episode.read(page, _script(self.before, locator) if locator else "")

    async def _call(self, call: HelperCall, episode: FinishedEpisode, page: str | None) -> str:
        filled = [page if text is None else text.replace("__last_url__", episode.url) for text in call.arguments]
        return await self._helper(call)(episode, *filled)

    def _helper(self, call: HelperCall) -> Helper:
        if call.name not in self.helpers:
            raise UsageError(f"no helper is called {call.name!r}; there are: {', '.join(self.helpers) or 'none'}")
        return self.helpers[call.name]


class HelperCall(NamedTuple):
    """A helper's name and arguments; None represents the page of the check."""

    name: str
    arguments: tuple[str | None, ...]


def parse_helper_call(text: str) -> HelperCall:
    """Parse `func:name('argument', __page__)` without running it. Raises UsageError if it is malformed."""
    try:
        call = ast.parse(text.removeprefix(_PREFIX).strip(), mode="eval").body
    except (SyntaxError, ValueError):
        call = None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.keywords:
        raise UsageError(f"{text!r} is no call of a helper, like func:name('argument')")
    return HelperCall(call.func.id, tuple(_argument(node, text) for node in call.args))


def _argument(node: ast.expr, text: str) -> str | None:
    if isinstance(node, ast.Name) and node.id == "__page__":
        return None
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    raise UsageError(f"the arguments of {text!r} must be texts or __page__")


def _script(before: Sequence[str], locator: str) -> str:
    locator = locator.rstrip("; ")
    if not before:
        return locator
    return f"(() => {{ try {{ {'; '.join(before)} }} catch {{}} return {locator}; }})()"
