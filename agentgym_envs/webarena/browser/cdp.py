"""The observation from Chrome's own accessibility tree, in two calls of the DevTools protocol and one for each frame.

Roles and names are exactly Chrome's; it costs some ten times what our own script does, and is meant for sites that
nobody of us wrote. Source: WebArena (arXiv 2307.13854), whose lines these are; ids are Chrome's node ids, as there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from agentgym_envs.webarena.browser.snapshot import Box, Layout, Thing, take_layout
from agentgym_envs.webarena.browser.tab import ContextLost, Tab, script_value
from agentgym_envs.webarena.browser.view import View, ViewOptions, quoted, spaced, squeezed

_LONGEST_NAME, _LONGEST_TEXT, _LONGEST_VALUE, _LONGEST_CLICKABLE = 200, 10_000, 1_000, 80
_MOST_OPTIONS, _MOST_FRAMES, _TRIES = 50, 20, 5
_NOTE_SPACE = 100


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_OTHER_NAMES = {
    "image": "img",
    "LayoutTable": "table",
    "LayoutTableCell": "cell",
    "LayoutTableRow": "row",
}
"""What WebArena, or the HTML standard, calls by another name."""
_UNTOLD = {"InlineTextBox", "LineBreak", "ListMarker"}
_STRUCTURE = _words(
    """Abbr banner caption code deletion DescriptionList definition emphasis Figcaption generic img insertion LabelText
    Legend list listitem mark MenuListPopup navigation none paragraph rowgroup Ruby sectionfooter sectionheader strong
    subscript superscript SvgRoot time"""
)
"""What is told only if it has a name, or something to be said of it."""
_INTERACTIVE = _words(
    """button checkbox ColorWell combobox Date DateTime DisclosureTriangle InputTime link listbox menuitem
    menuitemcheckbox menuitemradio option radio scrollbar searchbox slider spinbutton switch tab textbox treeitem"""
)
_LEAF_TAGS = {"AUDIO", "INPUT", "METER", "PROGRESS", "TEXTAREA", "VIDEO"}
_NEVER_CLICKED = {"", "#document", "AUDIO", "BODY", "FRAME", "HTML", "IFRAME", "VIDEO"}
_VALUED = _words("ColorWell Date DateTime InputTime meter progressbar scrollbar slider spinbutton")
_VALUED_TAGS = {"INPUT", "SELECT", "TEXTAREA"}
_TOLD = (
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
    """Chrome's accessibility tree. See `backends.Backend`."""

    def __init__(self) -> None:
        self._seen: WeakKeyDictionary[Tab, tuple[float, set[int]]] = WeakKeyDictionary()

    def __reduce__(self) -> tuple[Any, ...]:
        """What was seen stays with its tabs."""
        return type(self), ()

    async def observe(self, tab: Tab, options: ViewOptions) -> View:
        """See `Backend`."""
        for _ in range(_TRIES):
            try:
                born = await tab.run("() => performance.timeOrigin")
                page = await _Page.take(tab, options)
                if born != await tab.run("() => performance.timeOrigin"):
                    continue
            except ContextLost:
                continue
            told = _Telling(page, options)
            told.run()
            self._seen[tab] = born, told.ids
            return View(tab.url, page.title, told.lines.text(), len(told.ids), told.lines.lost > 0)
        raise ContextLost("the page goes on to another one all the time")

    async def call(self, tab: Tab, element: int, function: str, *arguments: Any) -> Any:
        """See `Backend`."""
        born, ids = self._seen.get(tab, (0.0, set()))
        if element not in ids:
            return None
        try:
            return await _call(tab, element, _IF_THERE % function, born, *arguments)
        except ContextLost:
            return None


_IF_THERE = """function(born, ...rest) {
  const e = this.documentElement ?? this;
  return performance.timeOrigin === born && e.isConnected ? (%s)(e, ...rest) : null;
}"""
"""Node ids may come again in the next document, and then mean something else."""


async def _call(tab: Tab, node: int, function: str, *arguments: Any) -> Any:
    """Call a function with a node as `this`; None if the node is gone."""
    from playwright.async_api import Error

    context = await tab.context_id()
    try:
        found = await tab.send("DOM.resolveNode", {"backendNodeId": node, "executionContextId": context})
    except Error:
        return None
    asked = {
        "objectId": found["object"]["objectId"],
        "functionDeclaration": function,
        "arguments": [{"value": argument} for argument in arguments],
        "returnByValue": True,
        "awaitPromise": True,
    }
    return script_value(await tab.send("Runtime.callFunctionOn", asked))


@dataclass(slots=True)
class _Node:
    """A node of Chrome's accessibility tree."""

    id: int
    """Its DOM node's id; 0 if it has none."""
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
    """The name; of what is named by an icon only, the description. A text keeps its spaces."""
    name, description = (str(raw.get(key, {}).get("value") or "") for key in ("name", "description"))
    if raw["role"]["value"] == "StaticText":
        return name
    return squeezed(name, _LONGEST_NAME) or (squeezed(description, _LONGEST_NAME) if name else "")


def _is_editor(role: str, properties: Mapping[str, Any]) -> bool:
    """Chrome calls the root of an editable region generic; an agent types into it."""
    return role == "generic" and {"editable", "focusable"} <= properties.keys()


class _Tree(NamedTuple):
    """The accessibility tree of one document: its nodes, and which is the first."""

    nodes: dict[str, _Node]
    root: str

    @classmethod
    async def take(cls, tab: Tab, frame: str | None = None) -> _Tree:
        raw = (await tab.send("Accessibility.getFullAXTree", {"frameId": frame} if frame else {}))["nodes"]
        return cls({node["nodeId"]: _Node.read(node) for node in raw}, raw[0]["nodeId"])


@dataclass(slots=True)
class _Page:
    """All that is known of a page: the trees of its documents and where everything is."""

    title: str
    tree: _Tree
    layout: Layout
    frames: dict[int, _Tree] = field(default_factory=dict)
    """By the ids of the elements that they are in."""
    unwanted: set[int] = field(default_factory=set)

    @classmethod
    async def take(cls, tab: Tab, options: ViewOptions) -> _Page:
        """Read a page. Raises ContextLost."""
        tree = await _Tree.take(tab)
        page = cls(tree.nodes[tree.root].name, tree, await take_layout(tab))
        page.unwanted = await _matching(tab, options.hidden)
        for element, frame in list(page.layout.frames.items())[:_MOST_FRAMES]:
            await page._take_frame(tab, element, frame)
        return page

    async def _take_frame(self, tab: Tab, element: int, frame: str) -> None:
        from playwright.async_api import Error

        try:
            self.frames[element] = await _Tree.take(tab, frame)
        except Error:  # gone meanwhile, or a document of another process
            return


async def _matching(tab: Tab, selectors: Iterable[str]) -> set[int]:
    """The ids of the elements that match any of the selectors, in the page's own document."""
    if not (wanted := ",".join(selectors)):
        return set()
    document = await tab.send("DOM.getDocument", {"depth": 0})
    asked = {"nodeId": document["root"]["nodeId"], "selector": wanted}
    nodes = (await tab.send("DOM.querySelectorAll", asked))["nodeIds"]
    return {(await tab.send("DOM.describeNode", {"nodeId": node}))["node"]["backendNodeId"] for node in nodes}


class _Lines:
    """Lines, up to a length; those beyond are counted only."""

    def __init__(self, most: int) -> None:
        self._lines: list[str] = []
        self._room = most - _NOTE_SPACE
        self.lost = 0

    def add(self, depth: int, line: str) -> bool:
        self._room -= depth + len(line) + 1
        if self._room < 0:
            self.lost += 1
        else:
            self._lines.append("\t" * depth + line)
        return self._room >= 0

    def text(self) -> str:
        note = f"... {self.lost} more line{'s' * (self.lost > 1)} left out: the page is too long"
        return "\n".join([*self._lines, note] if self.lost else self._lines)


class _Place(NamedTuple):
    """Where a node is told: how deep, within what name, in something that is clicked as a whole or seen."""

    depth: int
    tree: _Tree
    name: str = ""
    from_content: bool = False
    active: bool = False
    seen: bool = True


class _Telling:
    """One walk through a page."""

    def __init__(self, page: _Page, options: ViewOptions) -> None:
        self.lines = _Lines(options.max_chars)
        self.ids: set[int] = set()
        self._page, self._layout = page, page.layout
        self._window = page.layout.window if options.viewport else None
        self._labels = {label for tree in self._trees() for node in tree.nodes.values() for label in node.labels}
        self._work: list[tuple[str, _Place]] = []

    def _trees(self) -> Iterator[_Tree]:
        yield self._page.tree
        yield from self._page.frames.values()

    def run(self) -> None:
        """Tell the page."""
        tree = self._page.tree
        root = tree.nodes[tree.root]
        focused = " focused: True" if root.properties.get("focused") else ""
        self._tell(root, 0, f"RootWebArea {quoted(root.name)}{focused}")
        self._enter(root.children, _Place(1, tree))
        while self._work:
            name, place = self._work.pop()
            if (node := place.tree.nodes.get(name)) is not None:
                self._node(node, place)

    def _enter(self, children: list[str], place: _Place) -> None:
        self._work += [(child, place) for child in reversed(children)]

    def _tell(self, node: _Node, depth: int, line: str) -> None:
        if self.lines.add(depth, f"[{node.id}] {line}"):
            self.ids.add(node.id)

    def _node(self, node: _Node, place: _Place) -> None:
        thing = self._layout.things.get(node.id, Thing())
        if node.role in _UNTOLD or thing.tag == "::marker" or node.id in self._page.unwanted:
            return
        if node.role == "StaticText":
            return self._text(node, place)
        inner = self._element(node, thing, place)
        if thing.tag == "SELECT":
            return self._options(node, inner)
        if thing.tag not in _LEAF_TAGS:
            self._enter(node.children, inner)
        if (frame := self._page.frames.get(node.id)) is not None:
            self._enter(frame.nodes[frame.root].children, inner._replace(tree=frame, active=False))

    def _text(self, node: _Node, place: _Place) -> None:
        text = squeezed(node.name, _LONGEST_TEXT)
        if not text or text == place.name or (place.from_content and text in place.name):
            return
        thing = self._layout.things.get(node.id)  # None of what a style sheet writes
        if place.seen if thing is None else self._in_window(thing.box):
            self.lines.add(place.depth, f"StaticText {quoted(text)}")

    def _element(self, node: _Node, thing: Thing, place: _Place) -> _Place:
        """Tell an element, if it is to be told; returns the place of what is in it."""
        clickable = node.role not in _INTERACTIVE and self._is_clickable(node, thing, place)
        name, from_content = node.name, node.from_content
        if clickable and not name:
            name, from_content = self._short_content(node, place), True
            clickable = bool(name) or thing.cursor == "pointer"
        active = place.active or clickable or node.role in _INTERACTIVE
        inner = place._replace(active=active, seen=self._sees(node, thing, place))
        states = _states(node, thing.tag, clickable, node.role in _STRUCTURE)
        if not inner.seen or (node.role in _STRUCTURE and not name and not states):
            return inner
        foreign = thing.tag in ("IFRAME", "FRAME") and node.id not in self._page.frames
        line = f"{node.role} {quoted(name)}{states}" + " cross-origin: True" * foreign
        self._tell(node, place.depth, line)
        return inner._replace(depth=place.depth + 1, name=name, from_content=from_content)

    def _is_clickable(self, node: _Node, thing: Thing, place: _Place) -> bool:
        if thing.tag in _NEVER_CLICKED or node.id in self._labels:
            return False
        focusable = node.role in _STRUCTURE and node.properties.get("focusable")
        return bool(thing.clickable or focusable or (thing.cursor == "pointer" and not place.active))

    def _short_content(self, node: _Node, place: _Place) -> str:
        """The text in an element, or nothing if it is long."""
        texts: list[str] = []
        work = list(reversed(node.children))
        while work and sum(map(len, texts)) <= _LONGEST_CLICKABLE:
            inner = place.tree.nodes.get(work.pop())
            if inner is None or inner.role == "InlineTextBox":
                continue
            if inner.role == "StaticText" or inner.role == "img":
                texts.append(inner.name)
            work += reversed(inner.children)
        text = squeezed("".join(texts), _LONGEST_TEXT)
        return text if len(text) <= _LONGEST_CLICKABLE else ""

    def _sees(self, node: _Node, thing: Thing, place: _Place) -> bool:
        if thing.box is not None and thing.box.width and thing.box.height:
            return self._in_window(thing.box)
        # Boxes of nothing are told for what flows out of them, such as floating pictures in links.
        return any(self._in_window(box) for box in self._boxes_in(node, place))

    def _boxes_in(self, node: _Node, place: _Place) -> Iterator[Box]:
        work = list(node.children)
        while work:
            inner = place.tree.nodes.get(work.pop())
            if inner is None:
                continue
            box = self._layout.things.get(inner.id, Thing()).box
            if box is not None and box.width and box.height:
                yield box
            work += inner.children

    def _in_window(self, box: Box | None) -> bool:
        if box is None or not box.width or not box.height:
            return False
        return self._window is None or box.overlaps(self._window)

    def _options(self, node: _Node, place: _Place) -> None:
        if node.id not in self.ids:
            return
        options = [o for o in self._within(node, place.tree) if o[0].role in ("option", "group")]
        few = [o for i, o in enumerate(options) if i < _MOST_OPTIONS or o[0].properties.get("selected")]
        for option, depth in few:
            states = _states(option, "OPTION", False, False)
            line = f"{option.role} {quoted(option.name)}{states}"
            self._tell(option, place.depth + depth, line)
        if more := len(options) - len(few):
            self.lines.add(place.depth, f"... {more} more options; type the text of one to choose it")

    def _within(self, node: _Node, tree: _Tree) -> Iterator[tuple[_Node, int]]:
        """The options of a list and their groups, and how deep each is."""
        work = [(child, 0) for child in reversed(node.children)]
        while work:
            name, depth = work.pop()
            inner = tree.nodes.get(name)
            if inner is None:
                continue
            yield inner, depth
            deeper = depth + (inner.role == "group")
            work += [(child, deeper) for child in reversed(inner.children)]


def _states(node: _Node, tag: str, clickable: bool, structure: bool) -> str:
    """` key: value` of all that is told of a node."""
    told = {"focused": True} if node.properties.get("focused") else {}
    told |= {"clickable": True} if clickable else {}
    for name in () if structure else _TOLD:
        value = node.properties.get(name)
        if value in (None, "", "false" if name == "invalid" else None) or (value is False and name in _ONLY_IF_TRUE):
            continue
        told.setdefault(name, value)
    return "".join(f" {key}: {value}" for key, value in told.items()) + _value(node, tag)


def _value(node: _Node, tag: str) -> str:
    if node.value in (None, "") or not (node.role in _VALUED or (tag in _VALUED_TAGS and node.role != "button")):
        return ""
    value = f"{node.value:g}" if isinstance(node.value, float) else str(node.value)
    text = "\n".join(map(spaced, value[: 4 * _LONGEST_VALUE].split("\n")))
    told = quoted(text if len(text) <= _LONGEST_VALUE else text[:_LONGEST_VALUE] + "…")
    return f" value: {told}" if text else ""
