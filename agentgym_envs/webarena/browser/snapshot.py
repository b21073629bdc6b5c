"""The layout of a page, read from one DOM snapshot of Chrome."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from agentgym_envs.webarena.browser.tab import Tab

_STYLES = ["cursor", "border-left-width", "border-top-width", "padding-left", "padding-top"]


class Box(NamedTuple):
    """A rectangle in CSS pixels of the top document, which may be scrolled."""

    x: float
    y: float
    width: float
    height: float

    def overlaps(self, other: Box) -> bool:
        """Return True if the two rectangles share an area."""
        horizontally = self.x < other.x + other.width and other.x < self.x + self.width
        return horizontally and self.y < other.y + other.height and other.y < self.y + self.height


class NodeLayout(NamedTuple):
    """The layout of a DOM node: tag in capitals, box, whether it has a click listener, and mouse cursor."""

    tag: str = ""
    box: Box | None = None
    clickable: bool = False
    cursor: str = ""


@dataclass(slots=True)
class Layout:
    """The nodes of a page by Chrome's node ids, and the documents of its frames by the ids of the frame elements."""

    window: Box
    nodes: dict[int, NodeLayout] = field(default_factory=dict)
    frames: dict[int, str] = field(default_factory=dict)


async def take_layout(tab: Tab) -> Layout:
    """Read the current layout of a page. Raises ContextLost."""
    parameters = {"computedStyles": _STYLES, "includeDOMRects": False, "includePaintOrder": False}
    width, height = await tab.run("() => [innerWidth, innerHeight]")
    raw = await tab.send("DOMSnapshot.captureSnapshot", parameters)
    first = raw["documents"][0]
    layout = Layout(Box(first["scrollOffsetX"], first["scrollOffsetY"], width, height))
    work = [_Document(raw, 0, 0.0, 0.0)]
    while work:
        document = work.pop()
        document.add_to(layout)
        work += document.inner_documents()
    return layout


class _Document:
    """One document of a snapshot. Its content begins at (dx, dy) of the top document."""

    def __init__(self, raw: Mapping[str, Any], index: int, dx: float, dy: float) -> None:
        self._raw, self._document, self._strings = raw, raw["documents"][index], raw["strings"]
        self._nodes, self._layout, self._dx, self._dy = self._document["nodes"], self._document["layout"], dx, dy
        self._layout_index = {node: index for index, node in reversed(list(enumerate(self._layout["nodeIndex"])))}

    def add_to(self, layout: Layout) -> None:
        """Add the nodes and the frames of this document to a layout."""
        clickable = set(self._nodes["isClickable"]["index"])
        for index, node in enumerate(self._nodes["backendNodeId"]):
            tag = self._strings[self._nodes["nodeName"][index]]
            layout.nodes[node] = NodeLayout(tag, self._box(index), index in clickable, self._style(index, "cursor"))
        for index, inner in self._frames():
            frame = self._strings[self._raw["documents"][inner]["frameId"]]
            layout.frames[self._nodes["backendNodeId"][index]] = frame

    def inner_documents(self) -> Iterator[_Document]:
        """Yield the documents of the frames that have a box."""
        for index, inner in self._frames():
            if (box := self._box(index)) is not None:
                scrolled = self._raw["documents"][inner]
                x = box.x + self._edge(index, "left") - scrolled["scrollOffsetX"]
                y = box.y + self._edge(index, "top") - scrolled["scrollOffsetY"]
                yield _Document(self._raw, inner, x, y)

    def _frames(self) -> Iterator[tuple[int, int]]:
        """Yield the frame elements of the same origin with the indices of their documents."""
        found = self._nodes["contentDocumentIndex"]
        for index, inner in zip(found["index"], found["value"], strict=True):
            url = self._url(self._raw["documents"][inner])
            if url.startswith("about:") or _origin(url) == _origin(self._url(self._raw["documents"][0])):
                yield index, inner

    def _url(self, document: Mapping[str, Any]) -> str:
        return str(self._strings[document["documentURL"]])

    def _box(self, index: int) -> Box | None:
        if (position := self._layout_index.get(index)) is None:
            return None
        x, y, width, height = self._layout["bounds"][position]
        return Box(x + self._dx, y + self._dy, width, height)

    def _edge(self, index: int, side: str) -> float:
        return self._pixels(index, f"border-{side}-width") + self._pixels(index, f"padding-{side}")

    def _pixels(self, index: int, name: str) -> float:
        return float(self._style(index, name).removesuffix("px") or 0)

    def _style(self, index: int, name: str) -> str:
        if (position := self._layout_index.get(index)) is None or not (styles := self._layout["styles"][position]):
            return ""
        return str(self._strings[styles[_STYLES.index(name)]])


def _origin(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.scheme, parts.netloc
