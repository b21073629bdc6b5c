"""What pages hold when the episode has ended, read beside the agent's own tabs.

Source: WebArena (arXiv 2307.13854, section 3.2), whose program_html this is.
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
"""A function that a check names: awaited with the episode and the arguments as text, it returns text.

Of the arguments, `__last_url__` has become the URL that the agent ended on, and `__page__` the page that the check
is about, as `FinishedEpisode.read` takes it: a URL, or None for the page that the agent ended on.
"""

_PREFIX = "func:"


@dataclass(frozen=True, slots=True)
class PageHolds:
    """A page holds some contents, or has exactly one.

    `url` is a URL, "last" for the page that the agent ended on, or `func:name('argument')` for what a helper says.
    `locator` is a JavaScript expression, "" for the HTML of the whole page, or a `func:`. `before` are JavaScript
    expressions that are evaluated first (what they raise does not count). Nothing of this is evaluated by Python.
    """

    url: str
    locator: str = ""
    includes: Sequence[str] = ()
    exact: str | None = None
    before: Sequence[str] = ()
    helpers: Mapping[str, Helper] = field(default_factory=dict)

    @classmethod
    def from_check(cls, check: Mapping[str, Any], helpers: Mapping[str, Helper]) -> PageHolds:
        """One entry of a task's `program_html`. Raises UsageError if it is none."""
        required = check.get("required_contents")
        if not isinstance(required, Mapping) or len(required.keys() & {"exact_match", "must_include"}) != 1:
            raise UsageError(f"required_contents holds exact_match or must_include, not {required!r}")
        included, exact = tuple(required.get("must_include", ())), required.get("exact_match")
        made = cls(check["url"], check["locator"], included, exact, tuple(check.get("prep_actions", ())), helpers)
        for text in (made.url, made.locator):
            if text.startswith(_PREFIX):
                made._helper(parse_helper_call(text))
        return made

    async def __call__(self, episode: FinishedEpisode) -> Verdict:
        """See `Evaluator`. A page that may not be visited, where the agent's own URL leads, holds nothing."""
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
    """A helper's name and arguments; None stands for the page that the check is about."""

    name: str
    arguments: tuple[str | None, ...]


def parse_helper_call(text: str) -> HelperCall:
    """`func:name('argument', __page__)`, read but not run. Raises UsageError if it is anything else."""
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
