"""Conversion of Markdown to HTML: headings, lists, code, tables, links and emphasis."""

from __future__ import annotations

import re
from collections.abc import Callable
from html import escape
from typing import Any

_FENCE = re.compile(r"```.*")
_HEADING = re.compile(r"(#{1,4}) +(.+)")
_ITEM = re.compile(r"(?:[-*]|\d{1,3}[.)]) +(.*)")
_RULE = re.compile(r"\|(?:\s*:?-+:?\s*\|)+")
_INLINE = re.compile(
    r"`(?P<code>[^`\n]+)`|\*\*(?P<strong>[^*\n]+)\*\*|\[(?P<text>[^\]\n]{1,300})\]\((?P<link>[^()\s]{1,300})\)"
    r"|(?P<url>https?://[^\s<>\"'()]{1,300}[^\s<>\"'().,;:!?])|<(?P<mail>[\w.+-]{1,60}@[\w.-]{1,60})>"
    r"|(?<![\w/])(?P<sign>[#!])(?P<number>\d{1,9})\b|(?<!\w)@(?P<user>[A-Za-z0-9_.-]{0,60}[A-Za-z0-9_])"
)


def markdown(text: str, base: str = "") -> Any:
    """Convert Markdown to escaped HTML. With the path `base` of a project, #12 and !3 become links."""
    from markupsafe import Markup

    lines, parts = text.splitlines(), list[str]()
    while lines:
        parts.append(_block(lines, base))
    return Markup("\n".join(part for part in parts if part))


def _block(lines: list[str], base: str) -> str:
    """Remove the first block from the lines and return its HTML."""
    line = lines[0].rstrip()
    if _FENCE.fullmatch(line):
        return _code(lines)
    if heading := _HEADING.fullmatch(line):
        lines.pop(0)
        level = len(heading[1]) + 1
        return f"<h{level}>{_inline(heading[2], base)}</h{level}>"
    if _ITEM.fullmatch(line):
        return _list(lines, base)
    if line.startswith("|") and len(lines) > 1 and _RULE.fullmatch(lines[1].strip()):
        return _table(lines, base)
    if not line:
        lines.pop(0)
        return ""
    return f"<p>{_inline(' '.join(_taken(lines, _is_text)), base)}</p>"


def _code(lines: list[str]) -> str:
    lines.pop(0)
    body = _taken(lines, lambda line: not _FENCE.fullmatch(line.rstrip()))
    if lines:
        lines.pop(0)
    return f"<pre><code>{escape(chr(10).join(body))}</code></pre>"


def _list(lines: list[str], base: str) -> str:
    numbered = lines[0][0].isdigit()
    items = _taken(lines, lambda line: _ITEM.fullmatch(line.rstrip()) is not None and line[0].isdigit() == numbered)
    texts = (_ITEM.sub(r"\1", item.rstrip(), count=1) for item in items)
    inner = "".join(f"<li>{_inline(text, base)}</li>" for text in texts)
    return f"<ol>{inner}</ol>" if numbered else f"<ul>{inner}</ul>"


def _table(lines: list[str], base: str) -> str:
    rows = _taken(lines, lambda line: line.startswith("|"))
    cells = [[cell.strip() for cell in row.strip().strip("|").split("|")] for row in rows]
    head = "".join(f"<th>{_inline(cell, base)}</th>" for cell in cells[0])
    body = "".join(f"<tr>{''.join(f'<td>{_inline(cell, base)}</td>' for cell in row)}</tr>" for row in cells[2:])
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _taken(lines: list[str], while_: Callable[[str], bool]) -> list[str]:
    """Remove the leading lines that satisfy a condition, and return them."""
    end = next((index for index, line in enumerate(lines) if not while_(line)), len(lines))
    taken = lines[:end]
    del lines[:end]
    return taken


def _is_text(line: str) -> bool:
    line = line.rstrip()
    return bool(line) and not any(pattern.fullmatch(line) for pattern in (_FENCE, _HEADING, _ITEM))


def _inline(text: str, base: str) -> str:
    parts, end = list[str](), 0
    for match in _INLINE.finditer(text):
        parts += [escape(text[end : match.start()]), _marked(match, base)]
        end = match.end()
    return "".join([*parts, escape(text[end:])])


def _marked(match: re.Match[str], base: str) -> str:
    for tag in ("code", "strong"):
        if match[tag]:
            return f"<{tag}>{escape(match[tag])}</{tag}>"
    if match["sign"]:
        kind = "issues" if match["sign"] == "#" else "merge_requests"
        return _link(f"{base}/-/{kind}/{match['number']}", match[0]) if base else escape(match[0])
    if match["user"]:
        return _link(f"/{match['user']}", match[0])
    if match["mail"]:
        return escape(match["mail"])
    address = match["url"] or match["link"]
    if not re.match(r"https?://|/(?![/\\])", address):
        return escape(match[0])
    return _link(address, match["text"] or address)


def _link(address: str, text: str) -> str:
    return f'<a href="{escape(address)}">{escape(text)}</a>'
