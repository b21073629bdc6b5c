"""WebArena's browser actions as dataclasses, with a parser and a formatter for their commands.

Source: the action space with element ids of WebArena (arXiv 2307.13854).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Literal, NamedTuple, TypeAlias

from agentgym_envs.errors import InvalidAction
from agentgym_envs.webarena.keys import parse_keys, shortened


@dataclass(frozen=True, slots=True)
class Click:
    """`click [id]`. A click on an option of a drop-down list selects it."""

    id: int


@dataclass(frozen=True, slots=True)
class Type:
    """`type [id] [text] [0|1]`: replace the text of a field, then press Enter unless the flag is 0."""

    id: int
    text: str
    enter: bool = True


@dataclass(frozen=True, slots=True)
class Hover:
    """`hover [id]`."""

    id: int


@dataclass(frozen=True, slots=True)
class Press:
    """`press [keys]`, for example `Control+a`, with Playwright's key names.

    `press [id] [keys]` focuses that element first, as BrowserGym's `press` does. WebArena has no such form.
    """

    keys: str
    id: int | None = None


@dataclass(frozen=True, slots=True)
class Scroll:
    """`scroll [up|down]`: scroll by the height of the window."""

    direction: Literal["up", "down"]


@dataclass(frozen=True, slots=True)
class ClickXY:
    """`click_xy [x] [y]`: click a point of the window, in pixels from its upper left corner."""

    x: int
    y: int


@dataclass(frozen=True, slots=True)
class HoverXY:
    """`hover_xy [x] [y]`: move the mouse to a point of the window."""

    x: int
    y: int


@dataclass(frozen=True, slots=True)
class KeyboardType:
    """`keyboard_type [text]`: type a text where the focus is, after what is there."""

    text: str


@dataclass(frozen=True, slots=True)
class NewTab:
    """`new_tab`: open an empty tab and switch to it."""


@dataclass(frozen=True, slots=True)
class TabFocus:
    """`tab_focus [index]`: switch to a tab, counted from 0."""

    index: int


@dataclass(frozen=True, slots=True)
class CloseTab:
    """`close_tab`: close this tab."""


@dataclass(frozen=True, slots=True)
class Goto:
    """`goto [url]`."""

    url: str


@dataclass(frozen=True, slots=True)
class GoBack:
    """`go_back`."""


@dataclass(frozen=True, slots=True)
class GoForward:
    """`go_forward`."""


@dataclass(frozen=True, slots=True)
class Wait:
    """`wait`: do nothing and observe the page again."""


@dataclass(frozen=True, slots=True)
class StopTask:
    """`stop [answer]`: end the task. The answer may be empty; it is N/A if the task cannot be done."""

    answer: str = ""


Action: TypeAlias = (
    Click
    | Type
    | Hover
    | Press
    | Scroll
    | ClickXY
    | HoverXY
    | KeyboardType
    | NewTab
    | TabFocus
    | CloseTab
    | Goto
    | GoBack
    | GoForward
    | Wait
    | StopTask
)


class CommandForm(NamedTuple):
    """The syntax of a command, its meaning, and a note on what `form` does not show."""

    form: str
    meaning: str
    note: str = ""


FORMS = {
    "click": CommandForm(
        "click [id]", "click an element; an option of a drop-down list is chosen by clicking the option."
    ),
    "type": CommandForm(
        "type [id] [text] [0|1]",
        "replace what a field holds by a text, and press Enter afterwards unless told not to.",
        "0 is without Enter; 1, or nothing, is with Enter.",
    ),
    "hover": CommandForm("hover [id]", "move the mouse over an element."),
    "press": CommandForm(
        "press [keys]",
        "press a key or a combination, such as Enter, PageDown or Control+a, where the focus is or on an element.",
        "press [id] [keys] is on an element.",
    ),
    "scroll": CommandForm("scroll [up|down]", "scroll the page by the height of the window."),
    "new_tab": CommandForm("new_tab", "open an empty tab and go to it."),
    "tab_focus": CommandForm("tab_focus [index]", "go to another tab; the first is 0."),
    "close_tab": CommandForm("close_tab", "close this tab."),
    "goto": CommandForm("goto [url]", "visit an address in this tab."),
    "go_back": CommandForm("go_back", "go to the page before, as a browser's Back button does."),
    "go_forward": CommandForm("go_forward", "undo a go_back."),
    "wait": CommandForm("wait", "do nothing and look at the page again."),
    "stop": CommandForm(
        "stop [answer]",
        "end the task, when it is done. A question is answered here, in as few words as it takes; otherwise the answer "
        "stays empty. If the task cannot be done, the answer is N/A.",
    ),
}
"""The commands by element ids, in the order in which the instructions list them."""
COORDINATE_FORMS = {
    "click_xy": CommandForm(
        "click_xy [x] [y]", "click a point of the screenshot, in pixels from its upper left corner."
    ),
    "hover_xy": CommandForm("hover_xy [x] [y]", "move the mouse to a point of the screenshot."),
    "keyboard_type": CommandForm(
        "keyboard_type [text]", "type a text where the focus is; click a field first, and press Enter afterwards."
    ),
}
"""The commands by coordinates, which an environment accepts only on request."""

NAMES: dict[type[Action], str] = {
    Click: "click",
    Type: "type",
    Hover: "hover",
    Press: "press",
    Scroll: "scroll",
    ClickXY: "click_xy",
    HoverXY: "hover_xy",
    KeyboardType: "keyboard_type",
    NewTab: "new_tab",
    TabFocus: "tab_focus",
    CloseTab: "close_tab",
    Goto: "goto",
    GoBack: "go_back",
    GoForward: "go_forward",
    Wait: "wait",
    StopTask: "stop",
}


ALL_FORMS = {name: (FORMS | COORDINATE_FORMS)[name] for name in NAMES.values()}


def parse_command(command: str, forms: Mapping[str, CommandForm] = FORMS) -> Action:
    """Parse a command, strictly in its meaning and leniently in its spelling, in linear time.

    The name may be in any case. These are optional: brackets around a single argument, quotes in them, backticks
    around the command, and a full stop after it. Typed texts and answers are taken literally. They may contain
    brackets: the first and the last one delimit the text.

    Args:
        command: one action, such as `click [12]`.
        forms: the commands that this environment accepts.

    Raises:
        InvalidAction: not an accepted command. Its message is the reply to the model.
    """
    _check_characters(command)
    name, rest = _split(_unwrapped(command), forms)
    try:
        return _PARSERS[name](rest)
    except InvalidAction as error:
        raise InvalidAction(f"{error} Write the action as: {ALL_FORMS[name].form}") from None


def normalized(action: Action) -> Action:
    """Check an action built from typed arguments, and write its keys or its address as `parse_command` does.

    Raises InvalidAction.
    """
    for field in fields(action):
        if isinstance(value := getattr(action, field.name), str):
            _check_characters(value)
    match action:
        case Press(keys, element):
            return Press(parse_keys(_plain(f"[{keys}]", "key_comb")), element)
        case Goto(url):
            return _parse_goto(f"[{url}]")
    return action


def check_available(action: Action, forms: Mapping[str, CommandForm]) -> None:
    """Raise InvalidAction if an action is not among the commands that an environment accepts."""
    _check_name(NAMES[type(action)], forms)


def format_command(action: Action) -> str:
    """Format an action as a command: `parse_command(format_command(action)) == action`."""
    values = [getattr(action, field.name) for field in fields(action)]
    if isinstance(action, Press):
        values.reverse()
    return " ".join([NAMES[type(action)], *(f"[{_argument(value)}]" for value in values if value is not None)])


def _argument(value: str | int) -> str | int:
    return int(value) if isinstance(value, bool) else value


_SURROGATE = re.compile(r"[\ud800-\udfff]")
_NAME = re.compile(r"([A-Za-z]+)(?:[ _-]?([A-Za-z]+))?")
_NUMBER = re.compile(r"(?:0|[1-9][0-9]{0,8})\Z")
_ALIASES = {name.replace("_", ""): name for name in ALL_FORMS} | {
    "noop": "wait",
    "tabclose": "close_tab",
    "pageclose": "close_tab",
    "focustab": "tab_focus",
    "pagefocus": "tab_focus",
    "switchtab": "tab_focus",
}
_QUOTES = ('""', "''", "``", "“”", "‘’")
_UNCLOSED = "A bracket is not closed, or something follows it."
_FLAGS = {"0": False, "1": True, "false": False, "true": True}


def _check_characters(text: str) -> None:
    if _SURROGATE.search(text):
        raise InvalidAction("The action holds half of a character (a lone surrogate). Write it in whole characters.")


def _unwrapped(command: str) -> str:
    """Strip backticks around a command and punctuation after its last bracket."""
    text = command.strip()
    if text.startswith("`"):
        text = text.strip("`").strip()
    bare = text.rstrip(" \t\r\n.,;:!")
    return bare if bare.endswith("]") else text


_SELECTS = re.compile(r"\W*(select|choose|pick)", re.IGNORECASE)


def _split(text: str, forms: Mapping[str, CommandForm]) -> tuple[str, str]:
    """Split a command into its canonical name and its arguments."""
    if found := _leading_name(text):
        name, end = found
        _check_name(name, forms)
        return name, text[end:].strip()
    hint = " An option of a drop-down list is chosen by clicking the option." if _SELECTS.match(text) else ""
    raise InvalidAction(
        f"{shortened(text) if text else 'Nothing'} is not an action. Write only the action, such as click [12]. "
        f"The actions are: {', '.join(forms)}.{hint}"
    )


def _check_name(name: str, forms: Mapping[str, CommandForm]) -> None:
    if name not in forms:
        raise InvalidAction(f"{name} cannot be done here. The actions are: {', '.join(forms)}.")


def _leading_name(text: str) -> tuple[str, int] | None:
    """The canonical name of the command at the start of a text, and its end."""
    found = _NAME.match(text)
    if not found:
        return None
    both, first = (found[1] + (found[2] or "")).lower(), found[1].lower()
    if both in _ALIASES:
        return _ALIASES[both], found.end()
    return (_ALIASES[first], found.end(1)) if first in _ALIASES else None


def _unquoted(text: str) -> str:
    return text[1:-1].strip() if len(text) > 1 and text[0] + text[-1] in _QUOTES else text


def _enclosed(text: str) -> bool:
    return len(text) > 1 and text[0] == "[" and text[-1] == "]"


def _plain(text: str, name: str) -> str:
    """Strip an argument of brackets, white space, quotes and its name, such as `direction=`."""
    text = (text[1:-1] if _enclosed(text) else text).strip()
    before, equals, after = text.partition("=")
    return _unquoted(after.strip() if equals and before.strip().lower() == name else text)


def _line(text: str) -> str:
    """A text without brackets: the rest of the line."""
    if text.startswith("["):
        raise InvalidAction(_UNCLOSED)
    if "\n" in text or "\r" in text:
        raise InvalidAction("A text of several lines must stand in brackets, with nothing after it.")
    return _unquoted(text)


def _text(text: str) -> str:
    """A text argument, taken literally if it is in brackets."""
    return text[1:-1] if _enclosed(text) else _line(text)


def _number(text: str, command: str, name: str) -> int:
    found = _plain(text, name).rstrip(".")
    if _NUMBER.match(found):
        return int(found)
    if _NUMBER.match(_plain(_first(text)[0], name)):
        raise InvalidAction("Nothing may follow the action: write one action at a time, and nothing behind it.")
    if name == "id":
        why = "the id of an element, the whole number in brackets at the beginning of its line"
    else:
        why = "the number of a tab, counted from 0"
    raise InvalidAction(f"{command} needs {why}{f', not {shortened(found)}' if found else ''}.")


def _first(rest: str) -> tuple[str, str]:
    """Split off the first argument, with or without brackets."""
    end = rest.find("]") + 1 if rest.startswith("[") else _word_end(rest)
    return rest[:end], rest[end:].strip()


def _word_end(text: str) -> int:
    found = re.search(r"[\s\[]", text)
    return found.start() if found else len(text)


def _parse_type(rest: str) -> Action:
    first, rest = _first(rest)
    element = _number(first, "type", "id")
    if not rest:
        raise InvalidAction("The text to type is missing.")
    body, enter = _enter_flag(rest)
    return Type(element, _text(body), enter)


def _enter_flag(rest: str) -> tuple[str, bool]:
    """Split off the Enter flag. A bracketed text that looks like a flag is a flag only after another text."""
    start = rest.rfind("[")
    body = rest[:start].rstrip() if start > 0 and rest.endswith("]") else ""
    if not body or (body.startswith("[") and not _enclosed(body)):
        return rest, True
    flag = _plain(rest[start:], "press_enter_after").lower()
    if flag in _FLAGS:
        return body, _FLAGS[flag]
    if body.endswith("]") and "]" not in rest[start:-1]:
        raise InvalidAction(f"What follows the text must be 0 or 1, not {shortened(flag)}.")
    return rest, True


def _parse_point(rest: str, command: str) -> tuple[int, int]:
    """Two coordinates, as `[x] [y]`, `[x, y]`, `(x, y)` or `x y`."""
    numbers = rest.translate(_TO_SPACES).rstrip(" .").split()
    if len(numbers) != 2 or not all(map(_PIXELS.fullmatch, numbers)):
        raise InvalidAction(f"{command} needs two whole numbers, the pixels from the left and from the top.")
    return int(numbers[0]), int(numbers[1])


_PIXELS = re.compile(r"[0-9]{1,5}")
_TO_SPACES = str.maketrans("[](),", "     ")


def _parse_press(rest: str) -> Action:
    first, keys = _first(rest)
    if _enclosed(first) and _enclosed(keys):
        return Press(parse_keys(_plain(keys, "key_comb")), _number(first, "press", "id"))
    return Press(parse_keys(_plain(rest, "key_comb")))


def _parse_scroll(rest: str) -> Action:
    match _plain(rest, "direction").lower().rstrip("."):
        case "up":
            return Scroll("up")
        case "down":
            return Scroll("down")
    raise InvalidAction("A page is scrolled up or down.")


def _parse_goto(rest: str) -> Action:
    url = _plain(rest, "url")
    if not url:
        raise InvalidAction("The address is missing.")
    if rest.startswith("[") and not _enclosed(rest):
        raise InvalidAction(_UNCLOSED)
    return Goto(url)


def _parse_stop(rest: str) -> Action:
    return StopTask("" if rest == "." else _text(rest))


def _no_arguments(name: str, action: Action) -> Callable[[str], Action]:
    """A parser for a command without arguments."""

    def parser(rest: str) -> Action:
        if rest not in ("", ".", "[]", "()"):
            hint = " It opens an empty tab; visit an address with goto afterwards." if name == "new_tab" else ""
            raise InvalidAction(f"Nothing may follow {name}.{hint}")
        return action

    return parser


_PARSERS: dict[str, Callable[[str], Action]] = {
    "click": lambda rest: Click(_number(rest, "click", "id")),
    "type": _parse_type,
    "hover": lambda rest: Hover(_number(rest, "hover", "id")),
    "press": _parse_press,
    "scroll": _parse_scroll,
    "click_xy": lambda rest: ClickXY(*_parse_point(rest, "click_xy")),
    "hover_xy": lambda rest: HoverXY(*_parse_point(rest, "hover_xy")),
    "keyboard_type": lambda rest: KeyboardType(_text(rest)),
    "new_tab": _no_arguments("new_tab", NewTab()),
    "tab_focus": lambda rest: TabFocus(_number(rest, "tab_focus", "tab_index")),
    "close_tab": _no_arguments("close_tab", CloseTab()),
    "goto": _parse_goto,
    "go_back": _no_arguments("go_back", GoBack()),
    "go_forward": _no_arguments("go_forward", GoForward()),
    "wait": _no_arguments("wait", Wait()),
    "stop": _parse_stop,
}
