"""Small SVG pictures: avatars of users and emblems of boards."""

from __future__ import annotations

from functools import lru_cache
from html import escape
from typing import Any

from agentgym_envs.webarena.sites.forum.wordlists import COLOURS

_FILLS = ("#0f766e", "#b91c1c", "#b45309", "#4338ca", "#4d7c0f", "#86198f", "#475569", "#c2410c")


@lru_cache(maxsize=1024)
def avatar(name: str, colour: str, size: int = 20) -> Any:
    """Draw a disc in the user's colour with the initial of their name."""
    fill = _FILLS[COLOURS.index(colour)] if colour in COLOURS else _FILLS[6]
    return _drawn(f'<circle cx="16" cy="16" r="16" fill="{fill}"/>', name, size)


@lru_cache(maxsize=1024)
def emblem(name: str, size: int = 20) -> Any:
    """Draw the emblem of a board: a rounded square whose pattern depends on the letters of the name."""
    sum_of_letters = sum(map(ord, name.lower()))
    fill = _FILLS[sum_of_letters % len(_FILLS)]
    shift = sum_of_letters // len(_FILLS) % 4 * 6
    shape = f'<rect width="32" height="32" rx="8" fill="{fill}"/>'
    shape += f'<path d="M{shift} 32 L{shift + 14} 0 L32 0 L32 32 Z" fill="#fff" fill-opacity=".16"/>'
    return _drawn(shape, name, size)


def _drawn(shape: str, name: str, size: int) -> Any:
    from markupsafe import Markup

    letter = escape(next((sign for sign in name if sign.isalnum()), "?").upper())
    text = f'<text x="16" y="22" text-anchor="middle" font-size="17" font-weight="700" fill="#fff">{letter}</text>'
    return Markup(
        f'<svg class="face" width="{size}" height="{size}" viewBox="0 0 32 32" aria-hidden="true">{shape}{text}</svg>'
    )
