"""Rendering of pages: the Jinja environment of a site and the filters that all templates can use."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentgym_envs.webarena.sites import clock
from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.responses import TemplateResponse
from agentgym_envs.webarena.sites.framework.site import Site, load_site

if TYPE_CHECKING:
    from jinja2 import Environment

_LINK = re.compile(r"https?://[^\s<>\"'()]{1,300}[^\s<>\"'().,;:!?]")


def render(site: Site, context: RequestContext, page: TemplateResponse) -> str:
    """Render a page to HTML, together with the flash messages, which are removed."""
    messages = context.rows("SELECT kind, text FROM web_messages WHERE site = ? ORDER BY id", site.name)
    if messages:
        context.database.execute("DELETE FROM web_messages WHERE site = ?", (site.name,))
    values: dict[str, Any] = {
        "context": context,
        "site": site,
        "messages": messages,
        **site.layout(context),
        **page.values,
    }
    return _environment(site.name).get_template(page.template).render(values)


def macro(site: str, template: str, name: str) -> Callable[..., Any]:
    """Return a macro of a site's template. It must not use the context of a request."""
    found: Callable[..., Any] = getattr(_environment(site).get_template(template).module, name)
    return found


def money(cents: int) -> str:
    """Format an amount of cents: "$1,249.50"."""
    return f"{'-' if cents < 0 else ''}${abs(cents) / 100:,.2f}"


def plural(count: int, one: str, many: str = "") -> str:
    """Format a count with its noun: "1 item", "3 items"."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def paragraphs(text: str) -> Any:
    """Convert plain text by users to HTML: escaped, in paragraphs, with URLs as links."""
    from markupsafe import Markup

    parts = (part.strip() for part in re.split(r"\n\s*\n", text))
    return Markup("".join(f"<p>{_linked(part)}</p>" for part in parts if part))


def _linked(text: str) -> str:
    """Escape the text and the URLs in it, and make links of the URLs."""
    parts, end = [], 0
    for link in _LINK.finditer(text):
        url = escape(link[0])
        parts += [escape(text[end : link.start()]), f'<a href="{url}" rel="nofollow">{url}</a>']
        end = link.end()
    return "".join([*parts, escape(text[end:])]).replace("\n", "<br>")


@cache
def _environment(name: str) -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    site = load_site(name)
    folders = [site.folder / "templates", Path(__file__).parent / "templates"]
    environment = Environment(
        loader=FileSystemLoader(folders),
        autoescape=True,
        undefined=StrictUndefined,
        auto_reload=False,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["today"] = clock.TODAY.isoformat()
    environment.filters.update({**_FILTERS, **site.filters})
    environment.tests["under"] = lambda context, path: context.path == path or context.path.startswith(f"{path}/")
    return environment


_FILTERS: Mapping[str, Any] = {
    "money": money,
    "plural": plural,
    "paragraphs": paragraphs,
    "day": clock.day,
    "minute": clock.minute,
    "ago": clock.ago,
}
