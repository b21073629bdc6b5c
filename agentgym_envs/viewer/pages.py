"""The files of the page, as the server sends them and as the export puts them into one."""

from __future__ import annotations

from importlib.resources import files

PAGE = "index.html"
_KINDS = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}


def read_static(name: str) -> tuple[bytes, str] | None:
    """A file of the page and its media type; None if there is no such file. Nothing else can be named."""
    folder = files("agentgym_envs.viewer") / "static"
    kind = next((kind for suffix, kind in _KINDS.items() if name.endswith(suffix)), None)
    if kind is None or name not in {file.name for file in folder.iterdir()}:
        return None
    return (folder / name).read_bytes(), kind
