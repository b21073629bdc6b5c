"""Episodes as one HTML file that opens anywhere: the viewer's own page, with its scripts, styles and data inside.

The file says by a policy of its own that nothing may run in it but these scripts, and that it may load nothing; what
an episode says is data in it, and cannot become a part of the page.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections import Counter
from collections.abc import Callable, Container, Sequence
from contextlib import suppress
from typing import Any

from agentgym_envs.viewer.api import UnknownEpisode, Viewer, row_of, summary_of, to_json
from agentgym_envs.viewer.index import EpisodeEntry
from agentgym_envs.viewer.pages import PAGE, read_static

_SCRIPT = re.compile(r'<script src="static/([\w.-]+)"></script>')
_STYLE = re.compile(r'<link rel="stylesheet" href="static/([\w.-]+)" ?/?>')
_CHARSET = re.compile(r'<meta charset="utf-8" ?/?>')
_CLOSING = re.compile(r"</(?=script|style)|<!--", re.IGNORECASE)


def export_html(
    viewer: Viewer,
    entries: Sequence[EpisodeEntry],
    on_done: Callable[[int], Any] = lambda done: None,
    on_left_out: Callable[[list[str]], Any] = lambda problems: None,
) -> str:
    """The page with these episodes in it. `on_done` hears how many are done, `on_left_out` which are not in it.

    An episode that does not read is left out, and the page says so; it does not tell where the files lie.
    """
    data: dict[str, Any] = {"episodes": {}, "panels": {}, "tokens": {}, "training": viewer.training()}
    for done, entry in enumerate(entries, 1):
        with suppress(UnknownEpisode):
            data["episodes"][entry.id] = viewer.episode(entry.id)
            data["panels"][entry.id] = viewer.panels(entry.id)
            if entry.file.has_tokens:
                data["tokens"][entry.id] = viewer.tokens(entry.id)
        on_done(done)
    kept = [entry for entry in entries if entry.id in data["panels"]]
    ids = {entry.id for entry in kept}
    data["episodes"] = {entry.id: _among(data["episodes"][entry.id], ids) for entry in kept}
    left_out = [f"episode {entry.id} did not read and was left out" for entry in entries if entry.id not in ids]
    on_left_out(left_out)
    data["summary"] = {**_summary(viewer, kept), "problems": left_out}
    data["rows"] = [row_of(entry) for entry in kept]
    return page_with(to_json(data))


def _among(episode: dict[str, Any], ids: Container[int]) -> dict[str, Any]:
    """An episode with those siblings only that are in the page as well."""
    return {**episode, "siblings": [row for row in episode["siblings"] if row["id"] in ids]}


def _summary(viewer: Viewer, entries: Sequence[EpisodeEntry]) -> dict[str, Any]:
    summary = summary_of(viewer.index.snapshot._replace(entries=list(entries)))
    counts = Counter(entry.file.source.name for entry in entries)
    sources = [{**row, "count": counts[row["name"]]} for row in summary["sources"] if row["name"] in counts]
    return {**summary, "sources": sources}


def page_with(data: str) -> str:
    """The page as one file, with this JSON in it."""
    page, hashes = _text(PAGE), dict[str, list[str]]({"script": [], "style": []})

    def inline(tag: str, match: re.Match[str]) -> str:
        code = _text(match[1])
        if _CLOSING.search(code):
            raise AssertionError(f"{match[1]} cannot stand in a page: it holds what would end it")
        digest = base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
        hashes[tag].append(f"'sha256-{digest}'")
        return f"<{tag}>{code}</{tag}>"

    page = _STYLE.sub(lambda match: inline("style", match), page)
    page = _SCRIPT.sub(lambda match: inline("script", match), page)
    policy = (
        f"default-src 'none'; script-src {' '.join(hashes['script'])}; style-src {' '.join(hashes['style'])}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    told = f'\n    <meta http-equiv="Content-Security-Policy" content="{policy}">'
    held = '<body>\n  <script type="application/json" id="data">{}</script>'.format(data.replace("<", "\\u003c"))
    head, _, body = page.partition("<body>")
    return _CHARSET.sub(lambda match: match[0] + told, head, count=1) + held + body


def _text(name: str) -> str:
    found = read_static(name)
    assert found is not None, f"the page has no file {name}"
    return found[0].decode()
