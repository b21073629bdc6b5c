"""BrowserGym's function calls, such as `fill('12', 'text')`, read as actions and written. Nothing is ever evaluated.

Source: https://github.com/ServiceNow/BrowserGym, browsergym/core/src/browsergym/core/action/functions.py, for the
functions' names and arguments and what they mean.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, NoReturn

from agentgym_envs.errors import InvalidAction
from agentgym_envs.webarena.actions import (
    FORMS,
    Action,
    Click,
    CloseTab,
    Form,
    GoBack,
    GoForward,
    Goto,
    Hover,
    NewTab,
    Press,
    Scroll,
    Stop,
    TabFocus,
    Type,
    Wait,
)


@dataclass(frozen=True, slots=True)
class Call:
    """A function: the action it stands for, how it is called, what it does, as a model is told, and what makes it."""

    action: str
    form: str
    meaning: str
    make: Callable[..., Action]


def _number(value: Any) -> int:
    """An element's id, which BrowserGym writes as a text."""
    if isinstance(value, str) and re.fullmatch(r"0|[1-9][0-9]{0,8}", value):
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10**9:
        return value
    raise InvalidAction(f"{value!r:.40} is not the id of an element, a whole number in quotes such as '12'.")


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise InvalidAction(f"{value!r:.40} is not a text. Put it in quotes.")
    return value


def _click(bid: Any, button: Any = "left", modifiers: Any = ()) -> Action:
    if button != "left" or modifiers:
        raise InvalidAction("Only the left button without modifiers can click here, as in click('12').")
    return Click(_number(bid))


def _fill(bid: Any, value: Any, press_enter: Any = False) -> Action:
    return Type(_number(bid), _text(value), bool(press_enter))


def _select(bid: Any, options: Any) -> Action:
    if isinstance(options, list):
        if len(options) != 1:
            raise InvalidAction("Choose one option with a call, as in select_option('12', 'blue').")
        options = options[0]
    return Type(_number(bid), _text(options), enter=False)


def _scroll(delta_x: Any, delta_y: Any) -> Action:
    if not isinstance(delta_y, int | float) or not delta_y:
        raise InvalidAction("A page is scrolled up or down, as in scroll(0, 200) or scroll(0, -200).")
    return Scroll("down" if delta_y > 0 else "up")


def _tab_focus(index: Any) -> Action:
    if not isinstance(index, int) or not 0 <= index < 10**9:
        raise InvalidAction("tab_focus takes the number of a tab, counted from 0, as in tab_focus(1).")
    return TabFocus(index)


def _answer(text: Any) -> Action:
    number = isinstance(text, int | float) and not isinstance(text, bool)
    return Stop(str(text) if number else _text(text))


CALLS = {
    "click": Call(
        "click",
        "click('12')",
        "click an element; an option of a drop-down list is chosen by clicking the option.",
        _click,
    ),
    "fill": Call(
        "type",
        "fill('12', 'text')",
        "replace what a field holds by a text; fill('12', 'text', press_enter=True) presses Enter afterwards.",
        _fill,
    ),
    "select_option": Call(
        "type", "select_option('12', 'option')", "choose an option of a drop-down list by its text.", _select
    ),
    "clear": Call("type", "clear('12')", "empty a field.", lambda bid: Type(_number(bid), "", enter=False)),
    "hover": Call("hover", "hover('12')", "move the mouse over an element.", lambda bid: Hover(_number(bid))),
    "press": Call(
        "press",
        "press('12', 'Enter')",
        "move the focus to an element and press a key or a combination, such as 'Control+a'.",
        lambda bid, key_comb: Press(_text(key_comb), _number(bid)),
    ),
    "keyboard_press": Call(
        "press",
        "keyboard_press('PageDown')",
        "press a key or a combination where the focus is.",
        lambda key: Press(_text(key)),
    ),
    "scroll": Call(
        "scroll",
        "scroll(0, 200)",
        "scroll the page down by the height of the window; a negative number scrolls up.",
        _scroll,
    ),
    "new_tab": Call("new_tab", "new_tab()", "open an empty tab and go to it.", NewTab),
    "tab_focus": Call("tab_focus", "tab_focus(1)", "go to another tab; the first is 0.", _tab_focus),
    "tab_close": Call("close_tab", "tab_close()", "close this tab.", CloseTab),
    "goto": Call("goto", "goto('http://example.com')", "visit an address in this tab.", lambda url: Goto(_text(url))),
    "go_back": Call("go_back", "go_back()", "go to the page before.", GoBack),
    "go_forward": Call("go_forward", "go_forward()", "undo a go_back.", GoForward),
    "noop": Call("wait", "noop()", "do nothing and look at the page again.", lambda wait_ms=1000: Wait()),
    "send_msg_to_user": Call(
        "stop",
        "send_msg_to_user('answer')",
        "end the task, when it is done. The answer takes as few words as it can; it is empty if nothing was asked.",
        _answer,
    ),
    "report_infeasible": Call(
        "stop", "report_infeasible('reason')", "end the task, if it cannot be done.", lambda reason: Stop("N/A")
    ),
}
"""The functions that there are in a browser."""
_INSTEAD = {
    "dblclick": "There is no double click here. click('12') clicks once.",
    "focus": "Nothing only moves the focus here. click('12') does so, too.",
    "check": "click('12') turns a check box on or off, and what it is now stands in the tree.",
    "uncheck": "click('12') turns a check box on or off, and what it is now stands in the tree.",
    "type": "Write a text into a field with fill('12', 'text').",
    "keyboard_type": "Write a text into a field with fill('12', 'text').",
    "keyboard_insert_text": "Write a text into a field with fill('12', 'text').",
    "stop": "End the task with send_msg_to_user('answer').",
}
"""What to do instead of what has no counterpart."""


def calls_for(forms: Mapping[str, Form]) -> dict[str, Call]:
    """The functions that stand for these actions. What a world words in its own way is told in its words."""
    calls = {name: call for name, call in CALLS.items() if call.action in forms}
    own = {action: form.meaning for action, form in forms.items() if form != FORMS[action]}
    return {name: replace(call, meaning=own.get(call.action, call.meaning)) for name, call in calls.items()}


def read_call(code: str, forms: Mapping[str, Form] = FORMS) -> Action:
    """The action that a call stands for, of those that there are. Takes linear time. Raises InvalidAction."""
    name, positional, named = _Reader(code).call()
    calls = calls_for(forms)
    if name not in calls:
        instead = _INSTEAD.get(name, f"The functions are: {', '.join(calls)}.")
        raise InvalidAction(f"{name[:40]} cannot be called. {instead}")
    call = calls[name]
    try:
        inspect.signature(call.make).bind(*positional, **named)
    except TypeError:
        raise InvalidAction(f"These are not the arguments of {name}. Call it as {call.form}") from None
    return call.make(*positional, **named)


def write_call(action: Action) -> str:
    """The call that stands for an action: `read_call(write_call(a)) == a`."""
    match action:
        case Click(element):
            return f"click('{element}')"
        case Type(element, text, enter):
            return f"fill('{element}', {text!r}{', press_enter=True' if enter else ''})"
        case Hover(element):
            return f"hover('{element}')"
        case Press(keys, None):
            return f"keyboard_press({keys!r})"
        case Press(keys, element):
            return f"press('{element}', {keys!r})"
        case Scroll(direction):
            return "scroll(0, 200)" if direction == "down" else "scroll(0, -200)"
        case TabFocus(index):
            return f"tab_focus({index})"
        case Goto(url):
            return f"goto({url!r})"
        case Stop(answer):
            return f"send_msg_to_user({answer!r})"
    return _ALONE[type(action)]


_ALONE: dict[type[Action], str] = {
    NewTab: "new_tab()",
    CloseTab: "tab_close()",
    GoBack: "go_back()",
    GoForward: "go_forward()",
    Wait: "noop()",
}
_LITERALS = (
    r""""{3}(?:[^"\\]|\\.|"(?!""))*"{3}""",
    r"""'{3}(?:[^'\\]|\\.|'(?!''))*'{3}""",
    r'"(?:[^"\\]|\\.)*"',
    r"'(?:[^'\\]|\\.)*'",
)
_TOKEN = re.compile(
    rf"\s*(?:(?P<text>{'|'.join(_LITERALS)})|(?P<number>[+-]?[0-9]{{1,12}}(?:\.[0-9]{{0,12}})?)"
    r"|(?P<name>[A-Za-z_][A-Za-z_0-9]*)|(?P<mark>[(),=\[\]]))",
    re.DOTALL,
)
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"', "\n": ""}
_WORDS = {"True": True, "False": False, "None": None, "true": True, "false": False}


class _Token(NamedTuple):
    kind: str
    text: str


def _tokens(code: str) -> Iterator[_Token]:
    at, code = 0, code.rstrip()
    while at < len(code):
        found = _TOKEN.match(code, at)
        if not found or not found.lastgroup:
            _refuse(code)
        at = found.end()
        yield _Token(found.lastgroup, found[found.lastgroup])


def _refuse(code: str) -> NoReturn:
    told = code if len(code) <= 60 else f"{code[:60]}..."
    raise InvalidAction(
        f"{told!r} is not one call of a function. Write one call, as in click('12'), "
        "and put it between triple backticks if anything else stands around it."
    )


class _Reader:
    """Reads one call whose arguments are texts, numbers, True, False, None, or lists of them."""

    def __init__(self, code: str) -> None:
        self._code = code
        self._tokens = list(_tokens(code))
        self._at = 0

    def call(self) -> tuple[str, list[Any], dict[str, Any]]:
        """The function's name and its arguments."""
        name = self._take("name").text
        self._mark("(")
        positional, named = list[Any](), dict[str, Any]()
        while not self._next_is(")"):
            if (key := self._key()) is not None:
                if key in named:
                    _refuse(self._code)
                named[key] = self._value()
            elif named:
                _refuse(self._code)
            else:
                positional.append(self._value())
            self._comma(")")
        self._mark(")")
        if self._at < len(self._tokens):
            _refuse(self._code)
        return name, positional, named

    def _key(self) -> str | None:
        """The name of a named argument, if one begins here."""
        name, equals = (*self._tokens[self._at : self._at + 2], None, None)[:2]
        if name is None or equals is None or name.kind != "name" or equals.text != "=":
            return None
        self._at += 2
        return name.text

    def _value(self) -> Any:
        if not self._next_is("["):
            return self._single()
        self._mark("[")
        values = list[Any]()
        while not self._next_is("]"):
            values.append(self._single())
            self._comma("]")
        self._mark("]")
        return values

    def _single(self) -> Any:
        kind, text = self._take()
        if kind == "text":
            return _unescaped(text)
        if kind == "number":
            return float(text) if "." in text else int(text)
        if kind == "name" and text in _WORDS:
            return _WORDS[text]
        _refuse(self._code)

    def _take(self, kind: str | None = None) -> _Token:
        if self._at >= len(self._tokens) or (kind and self._tokens[self._at].kind != kind):
            _refuse(self._code)
        self._at += 1
        return self._tokens[self._at - 1]

    def _next_is(self, mark: str) -> bool:
        return self._at < len(self._tokens) and self._tokens[self._at] == ("mark", mark)

    def _mark(self, mark: str) -> None:
        if self._take("mark").text != mark:
            _refuse(self._code)

    def _comma(self, closing: str) -> None:
        """A comma, which may be left out before the closing mark."""
        if not self._next_is(closing):
            self._mark(",")


def _unescaped(literal: str) -> str:
    quotes = 3 if literal[:3] in ('"""', "'''") and len(literal) > 5 else 1
    return _ESCAPE.sub(_escape, literal[quotes:-quotes])


def _escape(found: re.Match[str]) -> str:
    """A character for its escape; a backslash that escapes nothing stays, as in Python."""
    if digits := found[1] or found[2] or found[3]:
        code = int(digits, 16)
        return chr(code) if code < 0x110000 else found[0]
    return _ESCAPES.get(found[4], found[0])
