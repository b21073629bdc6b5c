"""Cards of products in lists."""

from __future__ import annotations

import sqlite3
from functools import lru_cache
from typing import TYPE_CHECKING

from agentgym_envs.webarena.sites.framework.rendering import macro

if TYPE_CHECKING:
    from markupsafe import Markup


@lru_cache(maxsize=4096)
def card(product: sqlite3.Row, level: int, short: bool = False) -> Markup:
    """Render the card of a product; `level` is that of its heading. A large list takes most of its time for them."""
    rendered: Markup = macro("shop", "parts.html", "card")(product, level, short)
    return rendered
