"""The protocol described: OpenAPI, and a page for people."""

from __future__ import annotations

from typing import Any

DOCS_PAGE = ""


def openapi() -> dict[str, Any]:
    """The OpenAPI document."""
    return {}
