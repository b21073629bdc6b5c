"""The static files of the page, for the server and the export."""

from __future__ import annotations

from importlib.resources import files

PAGE = "index.html"
_KINDS = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}


def read_static(name: str) -> tuple[bytes, str] | None:
    """Return a static file and its media type; None if there is no such file. No other path can be read."""
    folder = files("agentgym_envs.viewer") / "static"
    kind = next((kind for suffix, kind in _KINDS.items() if name.endswith(suffix)), None)
    if kind is None or name not in {file.name for file in folder.iterdir()}:
        return None
    return (folder / name).read_bytes(), kind
