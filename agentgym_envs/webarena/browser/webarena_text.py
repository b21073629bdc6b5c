"""Observations in the text format of WebArena's own code, made from Chrome's accessibility tree.

Source: the rules of `browser_env/processors.py` in https://github.com/web-arena-x/webarena (arXiv 2307.13854):

- A line is `[id] role 'name' property: value ...`, with Python's `repr` of the name and Chrome's properties in Chrome's
  order, indented by one tab per enclosing line. Texts have ids, too. Values of fields are texts inside of them.
- Ignored nodes, and those in `_OMITTED` without a name and properties, have no line: their children take their place.
- A text that any of the three lines above contains is left out.
- In the window only: nodes without a box, or outside of the window, are taken out in the same way.
- Frames appear without their contents.

Chrome has changed since. What WebArena's version of it did not report is left out: the addresses of links (`url`) and
the boxes of lines of text. The role `image` is written `img` again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from agentgym_envs.webarena.browser.cdp import boxes_in_window, call_node, matching_nodes
from agentgym_envs.webarena.browser.snapshot import Box, Layout, NodeLayout, take_layout
from agentgym_envs.webarena.browser.tab import ContextLost, Tab
from agentgym_envs.webarena.browser.view import PageView, ViewOptions, squeezed

_HIDDEN_PROPERTIES = {"focusable", "editable", "readonly", "level", "settable", "multiline", "invalid", "url"}
_OMITTED = {"generic", "img", "list", "strong", "paragraph", "banner", "navigation", "Section", "LabelText"}
_OMITTED |= {"Legend", "listitem"}
"""Roles that have no line without a name and properties; a list item has none without a name."""
_ROLES = {"image": "img"}
_TEXT = re.compile(r"\[\d+\] StaticText (.+)")
_REPEATED_WITHIN = 3
_LEAST_VISIBLE = 0.6
_LONGEST_VALUE, _LONGEST_TITLE, _NOTE_SPACE, _MAX_ATTEMPTS = 1_000, 200, 100, 5


class AxNode(NamedTuple):
    """A node of Chrome's accessibility tree. `dom` is the id of its DOM node, or of that around a generated text."""

    role: str
    name: str | None
    properties: Mapping[str, Any]
    dom: int
    generated: bool
    children: tuple[str, ...]


class Line(NamedTuple):
    """A line before it is numbered: depth, text behind the id, and the path of AX ids to its node."""

    depth: int
    text: str
    path: tuple[str, ...]


@dataclass(slots=True)
class AxTree:
    """The accessibility tree of the top document."""

    nodes: dict[str, AxNode]
    root: str

    @classmethod
    def read(cls, raw: Iterable[Mapping[str, Any]]) -> AxTree:
        """Read the reply of `Accessibility.getFullAXTree`. Some nodes are in it twice."""
        found: dict[str, Mapping[str, Any]] = {}
        for node in raw:
            found.setdefault(node["nodeId"], node)
        return cls({key: _read(node, found) for key, node in found.items()}, next(iter(found)))


def _read(raw: Mapping[str, Any], others: Mapping[str, Mapping[str, Any]]) -> AxNode:
    role, around = raw["role"]["value"], raw
    while "backendDOMNodeId" not in around and around.get("parentId") in others:
        around = others[around["parentId"]]
    name = None if raw["ignored"] else raw.get("name", {}).get("value")
    properties = {one["name"]: one["value"]["value"] for one in raw.get("properties", ()) if "value" in one["value"]}
    return AxNode(
        _ROLES.get(role, role),
        name,
        {key: value for key, value in properties.items() if key not in _HIDDEN_PROPERTIES},
        around.get("backendDOMNodeId", 0),
        around is not raw,
        tuple(raw.get("childIds", ())),
    )


def lines_of(tree: AxTree, taken_out: frozenset[str] = frozenset(), hidden: frozenset[int] = frozenset()) -> list[Line]:
    """The lines of a tree, texts that repeat included. Children of nodes that are `taken_out` take their place."""
    lines: list[Line] = []
    work: list[tuple[str, int, tuple[str, ...]]] = [(tree.root, 0, ())]
    while work:
        key, depth, path = work.pop()
        node = tree.nodes.get(key)
        if node is None or node.role == "InlineTextBox" or node.dom in hidden:
            continue
        path = (*path, key)
        if key not in taken_out and _has_line(node):
            lines.append(Line(depth, _text(node), path))
            depth += 1
        work += [(child, depth, path) for child in reversed(node.children)]
    return lines


def _has_line(node: AxNode) -> bool:
    if node.name is None:
        return False
    if node.name.strip() or node.role not in _OMITTED:
        return True
    return bool(node.properties) and node.role != "listitem"


def _text(node: AxNode) -> str:
    """A line without its id. Values are on one line, so that a page cannot forge another one."""
    values = {name: value if isinstance(value, bool) else _value(value) for name, value in node.properties.items()}
    return " ".join([f"{node.role} {node.name!r}", *(f"{name}: {value}" for name, value in values.items())])


def _value(value: Any) -> str:
    return squeezed(str(value), _LONGEST_VALUE)


def shown_lines(lines: Sequence[str]) -> list[int]:
    """The indices of the lines that remain without each text that one of the three lines above it contains."""
    shown: list[int] = []
    for index, line in enumerate(lines):
        if "statictext" in line.lower():  # as in WebArena, also in a name
            found = _TEXT.search(line)
            text = found[1][1:-1] if found else ""
            if not text or any(text in lines[above] for above in shown[-_REPEATED_WITHIN:]):
                continue
        shown.append(index)
    return shown


def outside(tree: AxTree, layout: Layout) -> frozenset[str]:
    """The nodes that WebArena takes out when it shows the window only."""
    return frozenset(key for key, node in tree.nodes.items() if key != tree.root and not _in_window(node, layout))


def _in_window(node: AxNode, layout: Layout) -> bool:
    box = None if node.generated else layout.nodes.get(node.dom, NodeLayout()).box
    if box is None or not box.width or not box.height:
        return False
    width, height = _overlap(box, layout.window)
    return width * height / box.width * box.height >= _LEAST_VISIBLE  # in this order, as in WebArena


def _overlap(one: Box, other: Box) -> tuple[float, float]:
    width = min(one.x + one.width, other.x + other.width) - max(one.x, other.x)
    height = min(one.y + one.height, other.y + other.height) - max(one.y, other.y)
    return max(0.0, width), max(0.0, height)


@dataclass(slots=True)
class _Document:
    """The ids on the pages of a document. They count from 1 in the order of their first appearance."""

    loaded_at: float
    ids: dict[Any, int] = field(default_factory=dict)
    shown: dict[int, int] = field(default_factory=dict)
    """DOM nodes by the ids of the last observation."""
    paths: dict[int, frozenset[int]] = field(default_factory=dict)
    """The DOM nodes around and at each id of the last observation."""

    def number(self, tree: AxTree, lines: Iterable[Line]) -> Iterator[tuple[int, str]]:
        """Yield the lines with their ids."""
        generated: dict[int, int] = {}
        for line in lines:
            node = tree.nodes[line.path[-1]]
            key: Any = node.dom
            if node.generated:  # it has no DOM node of its own
                generated[node.dom] = generated.get(node.dom, 0) + 1
                key = node.dom, generated[node.dom]
            number = self.ids.setdefault(key, len(self.ids) + 1)
            yield number, "\t" * line.depth + f"[{number}] {line.text}"


class WebArenaBackend:
    """Observes pages in WebArena's text format; see `backends.Backend`."""

    counts_ids = True

    def __init__(self) -> None:
        self._documents: WeakKeyDictionary[Tab, _Document] = WeakKeyDictionary()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle without the observations, which belong to tabs of this process."""
        return type(self), ()

    async def observe(self, tab: Tab, options: ViewOptions) -> PageView:
        """Observe a page, as in `Backend`."""
        for _ in range(_MAX_ATTEMPTS):
            try:
                loaded_at = await tab.run("() => performance.timeOrigin")
                tree = AxTree.read((await tab.send("Accessibility.getFullAXTree"))["nodes"])
                layout = await take_layout(tab) if options.viewport or options.boxes else None
                hidden = frozenset(await matching_nodes(tab, options.hidden))
                if loaded_at != await tab.run("() => performance.timeOrigin"):
                    continue
            except ContextLost:
                continue
            document = self._documents.get(tab)
            if document is None or document.loaded_at != loaded_at:
                document = self._documents[tab] = _Document(loaded_at)
            return _view(tab, document, tree, layout, hidden, options)
        raise ContextLost("the page does not stop navigating")

    async def call(self, tab: Tab, element: int, function: str, *arguments: Any) -> Any:
        """Call a function with an element, as in `Backend`; for a text, with the element that it is in."""
        document = self._documents.get(tab)
        if document is None or element not in document.shown:
            return None
        try:
            call = _IN_ELEMENT % function
            return await call_node(tab, document.shown[element], call, document.loaded_at, *arguments)
        except ContextLost:
            return None

    async def find(self, tab: Tab, expression: str) -> int | None:
        """The id of the element that a JavaScript expression returns, or of the first one inside of it."""
        context = await tab.context_id()
        reply = await tab.send("Runtime.evaluate", {"expression": expression, "contextId": context})
        if (found := reply["result"].get("objectId")) is None or (document := self._documents.get(tab)) is None:
            return None
        node = (await tab.send("DOM.describeNode", {"objectId": found}))["node"]["backendNodeId"]
        exact = next((number for number, dom in document.shown.items() if dom == node), None)
        return exact or next((number for number, around in document.paths.items() if node in around), None)


_IN_ELEMENT = """function(loadedAt, ...rest) {
  const inside = this.nodeType === Node.TEXT_NODE || this.nodeName.startsWith('::');  // ::before has no events
  let e = this.documentElement ?? (inside ? this.parentElement ?? this.parentNode?.host : this);
  for (let host; (host = e?.getRootNode().host) && /^(input|textarea|select)$/.test(host.localName);) e = host;
  return e && performance.timeOrigin === loadedAt && e.isConnected ? (%s)(e, ...rest) : null;
}"""
"""Calls a function only in the observed document. The inside of a field counts as the field."""


def _view(
    tab: Tab, document: _Document, tree: AxTree, layout: Layout | None, hidden: frozenset[int], options: ViewOptions
) -> PageView:
    taken_out = outside(tree, layout) if options.viewport and layout is not None else frozenset()
    lines = lines_of(tree, taken_out, hidden)
    numbers, texts = zip(*document.number(tree, lines), strict=True)  # the root always has a line
    shown, omitted = _fitting(texts, shown_lines(texts), options.max_chars)
    document.shown = {numbers[index]: tree.nodes[lines[index].path[-1]].dom for index in shown}
    document.paths = {numbers[index]: frozenset(tree.nodes[key].dom for key in lines[index].path) for index in shown}
    boxes = {}
    if options.boxes and layout is not None:
        by_node = dict(boxes_in_window(layout, document.shown.values()))
        boxes = {number: by_node[node] for number, node in document.shown.items() if node in by_node}
    note = [f"... {omitted} more line{'s' * (omitted > 1)} left out: the page is too long"] if omitted else []
    title = squeezed(tree.nodes[tree.root].name or "", _LONGEST_TITLE)
    tree_text = "\n".join([*(texts[index] for index in shown), *note])
    return PageView(tab.url, title, tree_text, len(shown), bool(omitted), boxes)


def _fitting(lines: Sequence[str], shown: Sequence[int], most: int) -> tuple[list[int], int]:
    """The indices of the lines that fit, and the number of the others."""
    room, fitting = most - _NOTE_SPACE, []
    for index in shown:
        room -= len(lines[index]) + 1
        if room >= 0:
            fitting.append(index)
    return fitting, len(shown) - len(fitting)
