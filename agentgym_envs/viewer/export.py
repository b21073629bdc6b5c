"""Export of episodes to one self-contained HTML file: the viewer's page with its scripts, styles and data.

The content security policy of the file allows these scripts only, and no requests. The text of episodes is embedded as
data and cannot become part of the page.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections import Counter
from collections.abc import Callable, Container, Sequence
from contextlib import suppress
from typing import Any

from agentgym_envs.image_files import is_image_name, read_image, to_data_url
from agentgym_envs.viewer.api import UnknownEpisode, Viewer, summary_of, to_json
from agentgym_envs.viewer.figures import FIGURES, Figures
from agentgym_envs.viewer.index import EpisodeEntry
from agentgym_envs.viewer.pages import PAGE, read_static
from agentgym_envs.viewer.runs import entries_by_source, run_of

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
    """Export episodes to a page. `on_done` receives the number of finished episodes, `on_left_out` the problems.

    Unreadable episodes are left out, with a note on the page. The page does not contain the paths of the files.
    """
    data: dict[str, Any] = {"episodes": {}, "panels": {}, "tokens": {}, "images": {}, "training": viewer.training()}
    for done, entry in enumerate(entries, 1):
        with suppress(UnknownEpisode):
            data["episodes"][entry.id] = viewer.episode(entry.id)
            data["panels"][entry.id] = viewer.panels(entry.id)
            data["images"] |= _images(entry, data["panels"][entry.id])
            if entry.file.has_tokens:
                data["tokens"][entry.id] = viewer.tokens(entry.id)
        on_done(done)
    readable = [entry for entry in entries if entry.id in data["panels"]]
    ids = {entry.id for entry in readable}
    data["episodes"] = {entry.id: _with_siblings(data["episodes"][entry.id], ids) for entry in readable}
    left_out = [f"episode {entry.id} could not be read and was left out" for entry in entries if entry.id not in ids]
    on_left_out(left_out)
    data["rows"] = rows = [data["episodes"][entry.id]["row"] for entry in readable]
    known: dict[str, Any] = {"figures": [name for name in FIGURES if any(row[name] is not None for row in rows)]}
    known["tags"] = sorted({tag for row in rows for tag in row["tags"]})
    known["noted"] = any(row["noted"] or row["tags"] for row in rows)
    data["summary"] = {**_summary(viewer, readable), **known, "problems": left_out}
    data["runs"] = runs_of(readable)
    return page_with(to_json(data))


def _images(entry: EpisodeEntry, panel: dict[str, Any]) -> dict[str, str]:
    """The images of a panel by name, as `data:` URLs."""
    names = {state.get("image") for state in panel["states"]}
    found = {name: read_image(entry.file.path.parent, name) for name in names if is_image_name(name)}
    return {name: to_data_url(image) for name, image in found.items() if image is not None}


def runs_of(entries: Sequence[EpisodeEntry]) -> dict[str, Any]:
    """The runs of these episodes, by name. Their config is left out, as it has paths of this machine."""
    cache = Figures()
    found = {source.name: run_of(source, own, cache) for source, own in entries_by_source(entries).items()}
    return {name: {**run, "config": {}} for name, run in found.items()}


def _with_siblings(episode: dict[str, Any], ids: Container[int]) -> dict[str, Any]:
    """The episode with only those siblings that are on the page."""
    return {**episode, "siblings": [row for row in episode["siblings"] if row["id"] in ids]}


def _summary(viewer: Viewer, entries: Sequence[EpisodeEntry]) -> dict[str, Any]:
    summary = summary_of(viewer.index.snapshot._replace(entries=list(entries)))
    counts = Counter(entry.file.source.name for entry in entries)
    sources = [{**row, "count": counts[row["name"]]} for row in summary["sources"] if row["name"] in counts]
    return {**summary, "sources": sources}


def page_with(data: str) -> str:
    """The page as one file, with embedded JSON."""
    page, hashes = _text(PAGE), dict[str, list[str]]({"script": [], "style": []})

    def inline(tag: str, match: re.Match[str]) -> str:
        code = _text(match[1])
        if _CLOSING.search(code):
            raise AssertionError(f"{match[1]} cannot be embedded: it contains a closing tag")
        digest = base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
        hashes[tag].append(f"'sha256-{digest}'")
        return f"<{tag}>{code}</{tag}>"

    page = _STYLE.sub(lambda match: inline("style", match), page)
    page = _SCRIPT.sub(lambda match: inline("script", match), page)
    policy = (
        f"default-src 'none'; script-src {' '.join(hashes['script'])}; style-src {' '.join(hashes['style'])}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    meta = f'\n    <meta http-equiv="Content-Security-Policy" content="{policy}">'
    embedded = '<body>\n  <script type="application/json" id="data">{}</script>'.format(data.replace("<", "\\u003c"))
    head, _, body = page.partition("<body>")
    return _CHARSET.sub(lambda match: match[0] + meta, head, count=1) + embedded + body


def _text(name: str) -> str:
    found = read_static(name)
    assert found is not None, f"the page has no file {name}"
    return found[0].decode()
