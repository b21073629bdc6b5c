"""Templates: what all sites' pages can use, and how a page is made of one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentgym_envs.webarena.sites import clock
from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.responses import Page
from agentgym_envs.webarena.sites.framework.site import Site, site

if TYPE_CHECKING:
    from jinja2 import Environment

_LINK = re.compile(r"https?://[^\s<>\"'()]{1,300}[^\s<>\"'().,;:!?]")


def render(where: Site, visit: RequestContext, page: Page) -> str:
    """The HTML of a page, with the messages that wait for the visitor."""
    messages = visit.rows("SELECT kind, text FROM web_messages WHERE site = ? ORDER BY id", where.name)
    if messages:
        visit.database.execute("DELETE FROM web_messages WHERE site = ?", (where.name,))
    values: dict[str, Any] = {"visit": visit, "site": where, "messages": messages, **where.layout(visit), **page.values}
    return _environment(where.name).get_template(page.template).render(values)


def money(cents: int) -> str:
    """An amount of cents: "$1,249.50"."""
    return f"{'-' if cents < 0 else ''}${abs(cents) / 100:,.2f}"


def plural(count: int, one: str, many: str = "") -> str:
    """A count with its word: "1 item", "3 items"."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def paragraphs(text: str) -> Any:
    """Text that somebody wrote, as HTML: escaped, in paragraphs, with addresses as links."""
    from markupsafe import Markup

    parts = (part.strip() for part in re.split(r"\n\s*\n", text))
    return Markup("".join(f"<p>{_linked(part)}</p>" for part in parts if part))


def _linked(text: str) -> str:
    """Escaped between the links, and within them."""
    parts, end = [], 0
    for link in _LINK.finditer(text):
        url = escape(link[0])
        parts += [escape(text[end : link.start()]), f'<a href="{url}" rel="nofollow">{url}</a>']
        end = link.end()
    return "".join([*parts, escape(text[end:])]).replace("\n", "<br>")


@cache
def _environment(name: str) -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    where = site(name)
    folders = [where.folder / "templates", Path(__file__).parent / "templates"]
    made = Environment(
        loader=FileSystemLoader(folders),
        autoescape=True,
        undefined=StrictUndefined,
        auto_reload=False,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update({**_FILTERS, **where.filters})
    made.tests["about"] = lambda visit, path: visit.path == path or visit.path.startswith(f"{path}/")
    return made


_FILTERS: Mapping[str, Any] = {
    "money": money,
    "plural": plural,
    "paragraphs": paragraphs,
    "day": clock.day,
    "minute": clock.minute,
    "ago": clock.ago,
}
