"""Observations from Chrome's own accessibility tree, by two calls of the DevTools protocol and one per frame.

Roles and names are exactly Chrome's. An observation takes about ten times as long as with the suite's own script, so
this is meant for external sites. Source: the format of WebArena (arXiv 2307.13854), with Chrome's node ids.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from agentgym_envs.webarena.browser.snapshot import Box, Layout, NodeLayout, take_layout
from agentgym_envs.webarena.browser.tab import ContextLost, Tab, script_value
from agentgym_envs.webarena.browser.view import ElementBox, PageView, ViewOptions, quoted, spaced, squeezed

_LONGEST_NAME, _LONGEST_TEXT, _LONGEST_VALUE, _LONGEST_CLICKABLE = 200, 10_000, 1_000, 80
_MAX_OPTIONS, _MAX_FRAMES, _MAX_ATTEMPTS = 50, 20, 5
_NOTE_SPACE = 100


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_OTHER_NAMES = {
    "image": "img",
    "LayoutTable": "table",
    "LayoutTableCell": "cell",
    "LayoutTableRow": "row",
}
"""Chrome's roles that have another name in WebArena or in the HTML standard."""
_SKIPPED = {"InlineTextBox", "LineBreak", "ListMarker"}
_STRUCTURE = _words(
    """Abbr banner caption code deletion DescriptionList definition emphasis Figcaption generic img insertion LabelText
    Legend list listitem mark MenuListPopup navigation none paragraph rowgroup Ruby sectionfooter sectionheader strong
    subscript superscript SvgRoot time"""
)
"""Roles that appear only with a name or a state."""
_INTERACTIVE = _words(
    """button checkbox ColorWell combobox Date DateTime DisclosureTriangle InputTime link listbox menuitem
    menuitemcheckbox menuitemradio option radio scrollbar searchbox slider spinbutton switch tab textbox treeitem"""
)
_LEAF_TAGS = {"AUDIO", "INPUT", "METER", "PROGRESS", "TEXTAREA", "VIDEO"}
_NEVER_CLICKABLE = {"", "#document", "AUDIO", "BODY", "FRAME", "HTML", "IFRAME", "VIDEO"}
_VALUED = _words("ColorWell Date DateTime InputTime meter progressbar scrollbar slider spinbutton")
_VALUED_TAGS = {"INPUT", "SELECT", "TEXTAREA"}
_STATES = (
    "focused",
    "disabled",
    "required",
    "readonly",
    "invalid",
    "hasPopup",
    "expanded",
    "checked",
    "pressed",
    "selected",
)
_ONLY_IF_TRUE = {"focused", "disabled", "required", "readonly", "selected"}


class CdpBackend:
    """Observes pages by Chrome's accessibility tree; see `backends.Backend`."""

    counts_ids = False

    def __init__(self) -> None:
        self._observed: WeakKeyDictionary[Tab, tuple[float, set[int]]] = WeakKeyDictionary()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle without the observations, which belong to tabs of this process."""
        return type(self), ()

    async def observe(self, tab: Tab, options: ViewOptions) -> PageView:
        """Observe a page, as in `Backend`."""
        for _ in range(_MAX_ATTEMPTS):
            try:
                loaded_at = await tab.run("() => performance.timeOrigin")
                page = await _Page.take(tab, options)
                if loaded_at != await tab.run("() => performance.timeOrigin"):
                    continue
            except ContextLost:
                continue
            walk = _Walk(page, options)
            walk.run()
            self._observed[tab] = loaded_at, walk.ids
            boxes = dict(boxes_in_window(page.layout, walk.ids)) if options.boxes else {}
            return PageView(tab.url, page.title, walk.lines.text(), len(walk.ids), walk.lines.omitted > 0, boxes)
        raise ContextLost("the page does not stop navigating")

    async def call(self, tab: Tab, element: int, function: str, *arguments: Any) -> Any:
        """Call a function with an element, as in `Backend`."""
        loaded_at, ids = self._observed.get(tab, (0.0, set()))
        if element not in ids:
            return None
        try:
            return await call_node(tab, element, _IF_CONNECTED % function, loaded_at, *arguments)
        except ContextLost:
            return None


_IF_CONNECTED = """function(loadedAt, ...rest) {
  const e = this.documentElement ?? this;
  return performance.timeOrigin === loadedAt && e.isConnected ? (%s)(e, ...rest) : null;
}"""
"""Calls a function only in the observed document: node ids may repeat in the next one."""


async def call_node(tab: Tab, node: int, function: str, *arguments: Any) -> Any:
    """Call a function with a node as `this`; None if the node is gone."""
    from playwright.async_api import Error

    context = await tab.context_id()
    try:
        resolved = await tab.send("DOM.resolveNode", {"backendNodeId": node, "executionContextId": context})
    except Error:
        return None
    parameters = {
        "objectId": resolved["object"]["objectId"],
        "functionDeclaration": function,
        "arguments": [{"value": argument} for argument in arguments],
        "returnByValue": True,
        "awaitPromise": True,
    }
    return script_value(await tab.send("Runtime.callFunctionOn", parameters))


def boxes_in_window(layout: Layout, ids: Iterable[int]) -> Iterator[tuple[int, ElementBox]]:
    """Yield the boxes of elements inside the window; elements that others cover are included."""
    window = layout.window
    for number in sorted(ids):
        box = layout.nodes.get(number, NodeLayout()).box
        if box is not None and box.width and box.height and box.overlaps(window):
            left, top = max(box.x, window.x), max(box.y, window.y)
            right = min(box.x + box.width, window.x + window.width)
            bottom = min(box.y + box.height, window.y + window.height)
            x, y = round(left - window.x), round(top - window.y)
            yield number, ElementBox(x, y, round(right - left), round(bottom - top))


@dataclass(slots=True)
class _Node:
    """A node of Chrome's accessibility tree."""

    id: int
    """The id of its DOM node; 0 without one."""
    role: str
    name: str
    from_content: bool
    value: Any
    properties: dict[str, Any]
    ignored: bool
    children: list[str]
    labels: list[int]

    @classmethod
    def read(cls, raw: Mapping[str, Any]) -> _Node:
        properties = {p["name"]: p["value"] for p in raw.get("properties", ())}
        role = raw["role"]["value"] if not raw["ignored"] else "none"
        role = "generic" if role.startswith("MathML") else "textbox" if _is_editor(role, properties) else role
        sources = raw.get("name", {}).get("sources", ())
        related = properties.get("labelledby", {}).get("relatedNodes", ())
        return cls(
            id=raw.get("backendDOMNodeId", 0),
            role=_OTHER_NAMES.get(role, role),
            name=_name(raw),
            from_content=any(s["type"] == "contents" and "value" in s and not s.get("superseded") for s in sources),
            value=raw.get("value", {}).get("value"),
            properties={name: value.get("value") for name, value in properties.items()},
            ignored=raw["ignored"],
            children=raw.get("childIds", []),
            labels=[node["backendDOMNodeId"] for node in related if "backendDOMNodeId" in node],
        )


def _name(raw: Mapping[str, Any]) -> str:
    """The name, or the description of an element whose name is an icon. A text keeps its spaces."""
    name, description = (str(raw.get(key, {}).get("value") or "") for key in ("name", "description"))
    if raw["role"]["value"] == "StaticText":
        return name
    return squeezed(name, _LONGEST_NAME) or (squeezed(description, _LONGEST_NAME) if name else "")


def _is_editor(role: str, properties: Mapping[str, Any]) -> bool:
    """Return True for the root of an editable region. Chrome calls it generic, but an agent types into it."""
    return role == "generic" and {"editable", "focusable"} <= properties.keys()


class _Tree(NamedTuple):
    """The accessibility tree of one document: its nodes and the id of the root."""

    nodes: dict[str, _Node]
    root: str

    @classmethod
    async def take(cls, tab: Tab, frame: str | None = None) -> _Tree:
        raw = (await tab.send("Accessibility.getFullAXTree", {"frameId": frame} if frame else {}))["nodes"]
        return cls({node["nodeId"]: _Node.read(node) for node in raw}, raw[0]["nodeId"])


@dataclass(slots=True)
class _Page:
    """A page: the accessibility trees of its documents, and its layout."""

    title: str
    tree: _Tree
    layout: Layout
    frames: dict[int, _Tree] = field(default_factory=dict)
    """Trees by the ids of their frame elements."""
    hidden: set[int] = field(default_factory=set)

    @classmethod
    async def take(cls, tab: Tab, options: ViewOptions) -> _Page:
        """Read a page. Raises ContextLost."""
        tree = await _Tree.take(tab)
        page = cls(tree.nodes[tree.root].name, tree, await take_layout(tab))
        page.hidden = await matching_nodes(tab, options.hidden)
        for element, frame in list(page.layout.frames.items())[:_MAX_FRAMES]:
            await page._take_frame(tab, element, frame)
        return page

    async def _take_frame(self, tab: Tab, element: int, frame: str) -> None:
        from playwright.async_api import Error

        try:
            self.frames[element] = await _Tree.take(tab, frame)
        except Error:  # removed meanwhile, or a document of another process
            return


async def matching_nodes(tab: Tab, selectors: Iterable[str]) -> set[int]:
    """The ids of the elements that match any of the selectors, in the page's own document."""
    if not (selector := ",".join(selectors)):
        return set()
    document = await tab.send("DOM.getDocument", {"depth": 0})
    parameters = {"nodeId": document["root"]["nodeId"], "selector": selector}
    nodes = (await tab.send("DOM.querySelectorAll", parameters))["nodeIds"]
    return {(await tab.send("DOM.describeNode", {"nodeId": node}))["node"]["backendNodeId"] for node in nodes}


class _Lines:
    """Lines up to a total length. Further lines are only counted."""

    def __init__(self, most: int) -> None:
        self._lines: list[str] = []
        self._room = most - _NOTE_SPACE
        self.omitted = 0

    def add(self, depth: int, line: str) -> bool:
        self._room -= depth + len(line) + 1
        if self._room < 0:
            self.omitted += 1
        else:
            self._lines.append("\t" * depth + line)
        return self._room >= 0

    def text(self) -> str:
        note = f"... {self.omitted} more line{'s' * (self.omitted > 1)} left out: the page is too long"
        return "\n".join([*self._lines, note] if self.omitted else self._lines)


class _Context(NamedTuple):
    """Properties that a node inherits from its ancestors, such as its depth and their visibility."""

    depth: int
    tree: _Tree
    name: str = ""
    from_content: bool = False
    active: bool = False
    visible: bool = True


class _Walk:
    """One walk through a page that writes its lines."""

    def __init__(self, page: _Page, options: ViewOptions) -> None:
        self.lines = _Lines(options.max_chars)
        self.ids: set[int] = set()
        self._page, self._layout = page, page.layout
        self._window = page.layout.window if options.viewport else None
        self._labels = {label for tree in self._trees() for node in tree.nodes.values() for label in node.labels}
        self._work: list[tuple[str, _Context]] = []

    def _trees(self) -> Iterator[_Tree]:
        yield self._page.tree
        yield from self._page.frames.values()

    def run(self) -> None:
        """Write the lines of the page."""
        tree = self._page.tree
        root = tree.nodes[tree.root]
        focused = " focused: True" if root.properties.get("focused") else ""
        self._add(root, 0, f"RootWebArea {quoted(root.name)}{focused}")
        self._enter(root.children, _Context(1, tree))
        while self._work:
            node_id, context = self._work.pop()
            if (node := context.tree.nodes.get(node_id)) is not None:
                self._node(node, context)

    def _enter(self, children: list[str], context: _Context) -> None:
        self._work += [(child, context) for child in reversed(children)]

    def _add(self, node: _Node, depth: int, line: str) -> None:
        if self.lines.add(depth, f"[{node.id}] {line}"):
            self.ids.add(node.id)

    def _node(self, node: _Node, context: _Context) -> None:
        layout = self._layout.nodes.get(node.id, NodeLayout())
        if node.role in _SKIPPED or layout.tag == "::marker" or node.id in self._page.hidden:
            return
        if node.role == "StaticText":
            return self._text(node, context)
        inner = self._element(node, layout, context)
        if layout.tag == "SELECT":
            return self._options(node, inner)
        if layout.tag not in _LEAF_TAGS:
            self._enter(node.children, inner)
        if (frame := self._page.frames.get(node.id)) is not None:
            self._enter(frame.nodes[frame.root].children, inner._replace(tree=frame, active=False))

    def _text(self, node: _Node, context: _Context) -> None:
        text = squeezed(node.name, _LONGEST_TEXT)
        if not text or text == context.name or (context.from_content and text in context.name):
            return
        layout = self._layout.nodes.get(node.id)  # None for text from a style sheet
        if context.visible if layout is None else self._in_window(layout.box):
            self.lines.add(context.depth, f"StaticText {quoted(text)}")

    def _element(self, node: _Node, layout: NodeLayout, context: _Context) -> _Context:
        """Write the line of an element, if it gets one. Returns the context of its children."""
        clickable = node.role not in _INTERACTIVE and self._is_clickable(node, layout, context)
        name, from_content = node.name, node.from_content
        if clickable and not name:
            name, from_content = self._short_content(node, context), True
            clickable = bool(name) or layout.cursor == "pointer"
        active = context.active or clickable or node.role in _INTERACTIVE
        inner = context._replace(active=active, visible=self._is_visible(node, layout, context))
        states = _states(node, layout.tag, clickable, node.role in _STRUCTURE)
        if not inner.visible or (node.role in _STRUCTURE and not name and not states):
            return inner
        cross_origin = layout.tag in ("IFRAME", "FRAME") and node.id not in self._page.frames
        line = f"{node.role} {quoted(name)}{states}" + " cross-origin: True" * cross_origin
        self._add(node, context.depth, line)
        return inner._replace(depth=context.depth + 1, name=name, from_content=from_content)

    def _is_clickable(self, node: _Node, layout: NodeLayout, context: _Context) -> bool:
        if layout.tag in _NEVER_CLICKABLE or node.id in self._labels:
            return False
        focusable = node.role in _STRUCTURE and node.properties.get("focusable")
        return bool(layout.clickable or focusable or (layout.cursor == "pointer" and not context.active))

    def _short_content(self, node: _Node, context: _Context) -> str:
        """The text in an element; "" if it is long."""
        texts: list[str] = []
        work = list(reversed(node.children))
        while work and sum(map(len, texts)) <= _LONGEST_CLICKABLE:
            inner = context.tree.nodes.get(work.pop())
            if inner is None or inner.role == "InlineTextBox":
                continue
            if inner.role == "StaticText" or inner.role == "img":
                texts.append(inner.name)
            work += reversed(inner.children)
        text = squeezed("".join(texts), _LONGEST_TEXT)
        return text if len(text) <= _LONGEST_CLICKABLE else ""

    def _is_visible(self, node: _Node, layout: NodeLayout, context: _Context) -> bool:
        if layout.box is not None and layout.box.width and layout.box.height:
            return self._in_window(layout.box)
        # An empty box may have visible contents outside of it, such as a floating picture in a link.
        return any(self._in_window(box) for box in self._boxes_in(node, context))

    def _boxes_in(self, node: _Node, context: _Context) -> Iterator[Box]:
        work = list(node.children)
        while work:
            inner = context.tree.nodes.get(work.pop())
            if inner is None:
                continue
            box = self._layout.nodes.get(inner.id, NodeLayout()).box
            if box is not None and box.width and box.height:
                yield box
            work += inner.children

    def _in_window(self, box: Box | None) -> bool:
        if box is None or not box.width or not box.height:
            return False
        return self._window is None or box.overlaps(self._window)

    def _options(self, node: _Node, context: _Context) -> None:
        if node.id not in self.ids:
            return
        options = [o for o in self._within(node, context.tree) if o[0].role in ("option", "group")]
        shown = [o for i, o in enumerate(options) if i < _MAX_OPTIONS or o[0].properties.get("selected")]
        for option, depth in shown:
            states = _states(option, "OPTION", False, False)
            line = f"{option.role} {quoted(option.name)}{states}"
            self._add(option, context.depth + depth, line)
        if more := len(options) - len(shown):
            self.lines.add(context.depth, f"... {more} more options; type the text of one to choose it")

    def _within(self, node: _Node, tree: _Tree) -> Iterator[tuple[_Node, int]]:
        """Yield the options of a list and their groups, with their depths."""
        work = [(child, 0) for child in reversed(node.children)]
        while work:
            node_id, depth = work.pop()
            inner = tree.nodes.get(node_id)
            if inner is None:
                continue
            yield inner, depth
            deeper = depth + (inner.role == "group")
            work += [(child, deeper) for child in reversed(inner.children)]


def _states(node: _Node, tag: str, clickable: bool, structure: bool) -> str:
    """The states of a node, each as ` key: value`."""
    states = {"focused": True} if node.properties.get("focused") else {}
    states |= {"clickable": True} if clickable else {}
    for name in () if structure else _STATES:
        value = node.properties.get(name)
        if value in (None, "", "false" if name == "invalid" else None) or (value is False and name in _ONLY_IF_TRUE):
            continue
        states.setdefault(name, value)
    return "".join(f" {key}: {value}" for key, value in states.items()) + _value(node, tag)


def _value(node: _Node, tag: str) -> str:
    if node.value in (None, "") or not (node.role in _VALUED or (tag in _VALUED_TAGS and node.role != "button")):
        return ""
    value = f"{node.value:g}" if isinstance(node.value, float) else str(node.value)
    text = "\n".join(map(spaced, value[: 4 * _LONGEST_VALUE].split("\n")))
    shown = quoted(text if len(text) <= _LONGEST_VALUE else text[:_LONGEST_VALUE] + "…")
    return f" value: {shown}" if text else ""
