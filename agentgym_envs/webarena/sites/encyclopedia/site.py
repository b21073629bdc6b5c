"""The encyclopedia: its routes. It has no accounts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentgym_envs.webarena.sites.encyclopedia import views_articles, views_lists, views_search
from agentgym_envs.webarena.sites.encyclopedia.articles import article_path, category_path
from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.site import Site


def _layout(context: RequestContext) -> Mapping[str, Any]:
    return {"words": context.query.text("q", most=200)}


SITE = Site(
    name="encyclopedia",
    title="Kenning",
    routes=(*views_articles.routes.all, *views_search.routes.all, *views_lists.routes.all),
    layout=_layout,
    find_account=lambda database, name: 0,
    default_account=lambda database: 0,
    filters={"article_path": article_path, "category_path": category_path},
)
