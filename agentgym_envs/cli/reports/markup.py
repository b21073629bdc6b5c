"""HTML and SVG from nested calls. Everything except `Markup` is escaped, so that no text can become a tag."""

from __future__ import annotations

import html
import re

_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028\u2029\u202a-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\ud800-\udfff]"
)
"""Characters that are invisible or change the display of their neighbours: controls, bidi controls, surrogates."""
_VOID = frozenset({"meta", "br", "hr", "col"})


class Markup(str):
    """Text that is already HTML or SVG."""

    __slots__ = ()


def el(name: str, /, *children: str | int | None, **attributes: str | float | bool | None) -> Markup:
    """Make an element. Text children are escaped, `Markup` is kept, and None is left out.

    In the name of an attribute, a trailing underscore is dropped (`class_`) and others become hyphens. True makes an
    attribute without a value; attributes with False or None are left out.
    """
    written = "".join(_attribute(key, value) for key, value in attributes.items())
    inside = join(*children)
    return Markup(f"<{name}{written}>" if name in _VOID else f"<{name}{written}>{inside}</{name}>")


def join(*children: str | int | None) -> Markup:
    """Join children without an element around them."""
    return Markup("".join(_inside(child) for child in children if child is not None))


def visible(text: str) -> str:
    """Replace hidden characters by their code points, such as `[U+202E]`."""
    return _HIDDEN.sub(lambda match: f"[U+{ord(match[0]):04X}]", text)


def _inside(child: str | int) -> str:
    return child if isinstance(child, Markup) else html.escape(visible(str(child)), quote=True)


def _attribute(key: str, value: str | float | bool | None) -> str:
    name = key.rstrip("_").replace("_", "-")
    if value is None or value is False:
        return ""
    if value is True:
        return f" {name}"
    shown = f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else visible(str(value))
    return f' {name}="{html.escape(shown, quote=True)}"'
