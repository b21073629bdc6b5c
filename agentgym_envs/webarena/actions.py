"""What an agent can do in a browser, as typed values: WebArena's actions, read from a command and written as one.

Source: WebArena (arXiv 2307.13854), whose action space with element ids this is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Literal, NamedTuple, NoReturn, TypeAlias

from agentgym_envs.errors import InvalidAction


@dataclass(frozen=True, slots=True)
class Click:
    """`click [id]`. An option of a drop-down list is chosen by clicking it."""

    id: int


@dataclass(frozen=True, slots=True)
class Type:
    """`type [id] [text] [0|1]`: replace what the field holds, and press Enter afterwards unless told 0."""

    id: int
    text: str
    enter: bool = True


@dataclass(frozen=True, slots=True)
class Hover:
    """`hover [id]`."""

    id: int


@dataclass(frozen=True, slots=True)
class Press:
    """`press [keys]`, for example `Control+a`, in Playwright's names of keys.

    With an id, `press [id] [keys]`, that element gets the focus first. WebArena has no such form; BrowserGym's `press`
    does so.
    """

    keys: str
    id: int | None = None


@dataclass(frozen=True, slots=True)
class Scroll:
    """`scroll [up|down]`: by the height of the window."""

    direction: Literal["up", "down"]


@dataclass(frozen=True, slots=True)
class NewTab:
    """`new_tab`: open an empty tab and go to it."""


@dataclass(frozen=True, slots=True)
class TabFocus:
    """`tab_focus [index]`: go to a tab, counted from 0."""

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
    """`wait`: do nothing but look again."""


@dataclass(frozen=True, slots=True)
class Stop:
    """`stop [answer]`: the task is done; the answer may be empty, and is N/A if the task cannot be done."""

    answer: str = ""


Action: TypeAlias = (
    Click | Type | Hover | Press | Scroll | NewTab | TabFocus | CloseTab | Goto | GoBack | GoForward | Wait | Stop
)


class Form(NamedTuple):
    """How a command is written, what it does, and what `form` alone does not say."""

    form: str
    meaning: str
    note: str = ""


FORMS = {
    "click": Form("click [id]", "click an element; an option of a drop-down list is chosen by clicking the option."),
    "type": Form(
        "type [id] [text] [0|1]",
        "replace what a field holds by a text, and press Enter afterwards unless told not to.",
        "0 is without Enter; 1, or nothing, is with Enter.",
    ),
    "hover": Form("hover [id]", "move the mouse over an element."),
    "press": Form(
        "press [keys]",
        "press a key or a combination, such as Enter, PageDown or Control+a, where the focus is or on an element.",
        "press [id] [keys] is on an element.",
    ),
    "scroll": Form("scroll [up|down]", "scroll the page by the height of the window."),
    "new_tab": Form("new_tab", "open an empty tab and go to it."),
    "tab_focus": Form("tab_focus [index]", "go to another tab; the first is 0."),
    "close_tab": Form("close_tab", "close this tab."),
    "goto": Form("goto [url]", "visit an address in this tab."),
    "go_back": Form("go_back", "go to the page before, as a browser's Back button does."),
    "go_forward": Form("go_forward", "undo a go_back."),
    "wait": Form("wait", "do nothing and look at the page again."),
    "stop": Form(
        "stop [answer]",
        "end the task, when it is done. A question is answered here, in as few words as it takes; otherwise the answer "
        "stays empty. If the task cannot be done, the answer is N/A.",
    ),
}
"""All commands, in the order in which a model is told of them."""
FORM_FOLLOWS = " Write the action as: "
"""What stands in a refusal between why and the form of the command."""

NAMES: dict[type[Action], str] = {
    Click: "click",
    Type: "type",
    Hover: "hover",
    Press: "press",
    Scroll: "scroll",
    NewTab: "new_tab",
    TabFocus: "tab_focus",
    CloseTab: "close_tab",
    Goto: "goto",
    GoBack: "go_back",
    GoForward: "go_forward",
    Wait: "wait",
    Stop: "stop",
}


def read(command: str, forms: Mapping[str, Form] = FORMS) -> Action:
    """The action that a command is, strict about what it means and forgiving about how it is spelled.

    `forms` are those that there are in the world at hand; others are refused.

    The verb may be in any case; brackets around a single argument, quotes in them, backticks around the whole and a
    full stop after it may be there or not. What is typed and what is answered is taken as it stands, and may hold
    brackets: the first one and the last one count. Takes linear time. Raises InvalidAction, whose text answers the
    model.
    """
    if _BROKEN.search(command):
        raise InvalidAction("The action holds half of a character (a lone surrogate). Write it in whole characters.")
    verb, rest = _split(_unwrapped(command), forms)
    return _READERS[verb](rest)


def write(action: Action) -> str:
    """The command of an action: `read(write(action)) == action`."""
    values = [getattr(action, field.name) for field in fields(action)]
    if isinstance(action, Press):
        values.reverse()
    return " ".join([NAMES[type(action)], *(f"[{_written(value)}]" for value in values if value is not None)])


def _written(value: str | int) -> str | int:
    return int(value) if isinstance(value, bool) else value


_BROKEN = re.compile(r"[\ud800-\udfff]")
_VERB = re.compile(r"([A-Za-z]+)(?:[ _-]?([A-Za-z]+))?")
_NUMBER = re.compile(r"(?:0|[1-9][0-9]{0,8})\Z")
_VERBS = {name.replace("_", ""): name for name in FORMS} | {
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


def _refuse(verb: str, why: str) -> NoReturn:
    raise InvalidAction(f"{why}{FORM_FOLLOWS}{FORMS[verb].form}")


def _unwrapped(command: str) -> str:
    """Without backticks around it, and without a full stop or the like behind its last bracket."""
    text = command.strip()
    if text.startswith("`"):
        text = text.strip("`").strip()
    bare = text.rstrip(" \t\r\n.,;:!")
    return bare if bare.endswith("]") else text


_SELECTS = re.compile(r"\W*(select|choose|pick)", re.IGNORECASE)


def _split(text: str, forms: Mapping[str, Form]) -> tuple[str, str]:
    """The verb, under its own name, and what follows."""
    if found := _verb(text):
        verb, end = found
        if verb in forms:
            return verb, text[end:].strip()
        raise InvalidAction(f"{verb} cannot be done here. The actions are: {', '.join(forms)}.")
    hint = " An option of a drop-down list is chosen by clicking the option." if _SELECTS.match(text) else ""
    raise InvalidAction(
        f"{_told(text) if text else 'Nothing'} is not an action. Write only the action, such as click [12]. "
        f"The actions are: {', '.join(forms)}.{hint}"
    )


def _verb(text: str) -> tuple[str, int] | None:
    """The name of the verb that a text begins with, and where it ends."""
    found = _VERB.match(text)
    if not found:
        return None
    both, first = (found[1] + (found[2] or "")).lower(), found[1].lower()
    return (_VERBS[both], found.end()) if both in _VERBS else (_VERBS[first], found.end(1)) if first in _VERBS else None


def _told(text: str) -> str:
    """What the model wrote, short enough to tell it."""
    return repr(text if len(text) <= 40 else f"{text[:40]}...")


def _unquoted(text: str) -> str:
    return text[1:-1].strip() if len(text) > 1 and text[0] + text[-1] in _QUOTES else text


def _enclosed(text: str) -> bool:
    return len(text) > 1 and text[0] == "[" and text[-1] == "]"


def _plain(text: str, name: str) -> str:
    """An argument without brackets, white space, quotes and its own name, such as `direction=`."""
    text = (text[1:-1] if _enclosed(text) else text).strip()
    before, equals, after = text.partition("=")
    return _unquoted(after.strip() if equals and before.strip().lower() == name else text)


def _line(text: str, verb: str) -> str:
    """A text that stands without brackets: the rest of the line."""
    if text.startswith("["):
        _refuse(verb, _UNCLOSED)
    if "\n" in text or "\r" in text:
        _refuse(verb, "A text of several lines must stand in brackets, with nothing after it.")
    return _unquoted(text)


def _text(text: str, verb: str) -> str:
    """What is to be written: as it stands, if it is in brackets."""
    return text[1:-1] if _enclosed(text) else _line(text, verb)


def _number(text: str, verb: str, name: str) -> int:
    found = _plain(text, name).rstrip(".")
    if _NUMBER.match(found):
        return int(found)
    if _NUMBER.match(_plain(_first(text)[0], name)):
        _refuse(verb, "Nothing may follow the action: write one action at a time, and nothing behind it.")
    if name == "id":
        why = "the id of an element, the whole number in brackets at the beginning of its line"
    else:
        why = "the number of a tab, counted from 0"
    _refuse(verb, f"{verb} needs {why}{f', not {_told(found)}' if found else ''}.")


def _first(rest: str) -> tuple[str, str]:
    """The first argument, in brackets or without, and what follows."""
    end = rest.find("]") + 1 if rest.startswith("[") else _word_end(rest)
    return rest[:end], rest[end:].strip()


def _word_end(text: str) -> int:
    found = re.search(r"[\s\[]", text)
    return found.start() if found else len(text)


def _read_type(rest: str) -> Action:
    first, rest = _first(rest)
    element = _number(first, "type", "id")
    if not rest:
        _refuse("type", "The text to type is missing.")
    body, enter = _enter_flag(rest)
    return Type(element, _text(body, "type"), enter)


def _enter_flag(rest: str) -> tuple[str, bool]:
    """The text and whether Enter follows; a text in brackets that looks like a flag is one only behind a text."""
    cut = rest.rfind("[")
    body = rest[:cut].rstrip() if cut > 0 and rest.endswith("]") else ""
    if not body or (body.startswith("[") and not _enclosed(body)):
        return rest, True
    flag = _plain(rest[cut:], "press_enter_after").lower()
    if flag in _FLAGS:
        return body, _FLAGS[flag]
    if body.endswith("]") and "]" not in rest[cut:-1]:
        _refuse("type", f"What follows the text must be 0 or 1, not {_told(flag)}.")
    return rest, True


def _read_press(rest: str) -> Action:
    first, keys = _first(rest)
    if _enclosed(first) and _enclosed(keys):
        return Press(read_keys(_plain(keys, "key_comb")), _number(first, "press", "id"))
    return Press(read_keys(_plain(rest, "key_comb")))


def _read_scroll(rest: str) -> Action:
    match _plain(rest, "direction").lower().rstrip("."):
        case "up":
            return Scroll("up")
        case "down":
            return Scroll("down")
    _refuse("scroll", "A page is scrolled up or down.")


def _read_goto(rest: str) -> Action:
    url = _plain(rest, "url")
    if not url:
        _refuse("goto", "The address is missing.")
    if rest.startswith("[") and not _enclosed(rest):
        _refuse("goto", _UNCLOSED)
    return Goto(url)


def _read_stop(rest: str) -> Action:
    return Stop("" if rest == "." else _text(rest, "stop"))


def _alone(verb: str, action: Action) -> Callable[[str], Action]:
    """A reader of a command without arguments."""

    def reader(rest: str) -> Action:
        if rest not in ("", ".", "[]", "()"):
            hint = " It opens an empty tab; visit an address with goto afterwards." if verb == "new_tab" else ""
            _refuse(verb, f"Nothing may follow {verb}.{hint}")
        return action

    return reader


_READERS: dict[str, Callable[[str], Action]] = {
    "click": lambda rest: Click(_number(rest, "click", "id")),
    "type": _read_type,
    "hover": lambda rest: Hover(_number(rest, "hover", "id")),
    "press": _read_press,
    "scroll": _read_scroll,
    "new_tab": _alone("new_tab", NewTab()),
    "tab_focus": lambda rest: TabFocus(_number(rest, "tab_focus", "tab_index")),
    "close_tab": _alone("close_tab", CloseTab()),
    "goto": _read_goto,
    "go_back": _alone("go_back", GoBack()),
    "go_forward": _alone("go_forward", GoForward()),
    "wait": _alone("wait", Wait()),
    "stop": _read_stop,
}

_MODIFIERS = ("Control", "Alt", "Shift", "Meta")
_WORDS = (
    "Enter Tab Escape Backspace Delete Insert Home End PageUp PageDown Space CapsLock ContextMenu "
    "ArrowUp ArrowDown ArrowLeft ArrowRight "
    "Backquote Minus Equal Backslash BracketLeft BracketRight Semicolon Quote Comma Period Slash"
)
_NAMED = (
    *_MODIFIERS,
    *_WORDS.split(),
    *(f"F{number}" for number in range(1, 13)),
    *(f"Digit{number}" for number in range(10)),
    *(f"Key{letter}" for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"),
)
KEYS = {name.lower(): name for name in _NAMED} | {
    "ctrl": "Control",
    "controlormeta": "Control",
    "option": "Alt",
    "cmd": "Meta",
    "command": "Meta",
    "super": "Meta",
    "win": "Meta",
    "windows": "Meta",
    "return": "Enter",
    "esc": "Escape",
    "del": "Delete",
    "ins": "Insert",
    "spacebar": "Space",
    "pgup": "PageUp",
    "pgdn": "PageDown",
    "up": "ArrowUp",
    "down": "ArrowDown",
    "left": "ArrowLeft",
    "right": "ArrowRight",
}
"""Playwright's names of keys, and other names in use for them, in lower case. Source: Playwright's US keyboard."""
_HOLES = str.maketrans("", "", " \t_-")


def read_keys(text: str) -> str:
    """A key or a combination in Playwright's names. Raises InvalidAction."""
    *held, last = [_key(part) for part in _combined(text.strip())]
    if len(set(held)) != len(held) or not set(held) <= set(_MODIFIERS):
        _refuse("press", "In a combination all but the last key are Control, Alt, Shift or Meta, and each once.")
    return "+".join([*held, last])


def _combined(text: str) -> list[str]:
    """The keys of a combination; the plus sign is a key, too, and some write a hyphen between keys."""
    if text == "+" or text.endswith("++"):
        return [*text[:-2].split("+"), "+"] if len(text) > 1 else ["+"]
    before, _, after = text.partition("-")
    if "+" not in text and after and KEYS.get(before.strip().lower()) in _MODIFIERS:
        return text.split("-")
    return text.split("+")


def _key(text: str) -> str:
    text = text.strip()
    if len(text) == 1 and "!" <= text <= "~":
        return text
    if name := KEYS.get(text.lower().translate(_HOLES)):
        return name
    _refuse("press", f"There is no key {_told(text)}. A text is written with type." if text else "A key is missing.")
