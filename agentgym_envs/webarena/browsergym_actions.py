"""A parser and a formatter for BrowserGym's function calls, such as `fill('12', 'text')`. Nothing is evaluated.

Source: https://github.com/ServiceNow/BrowserGym, browsergym/core/src/browsergym/core/action/functions.py, for the
functions' names, arguments and meanings.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, NoReturn

from agentgym_envs.errors import InvalidAction
from agentgym_envs.webarena.actions import (
    ALL_FORMS,
    FORMS,
    Action,
    Click,
    ClickXY,
    CloseTab,
    CommandForm,
    GoBack,
    GoForward,
    Goto,
    Hover,
    HoverXY,
    KeyboardType,
    NewTab,
    Press,
    Scroll,
    StopTask,
    TabFocus,
    Type,
    Wait,
)


@dataclass(frozen=True, slots=True)
class BrowserGymFunction:
    """A function: its command, an example call, its description for the model, and its constructor."""

    command: str
    form: str
    meaning: str
    make: Callable[..., Action]


def _number(value: Any) -> int:
    """An element's id, which BrowserGym writes as a string."""
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


def _pixels(value: Any) -> int:
    """A coordinate; BrowserGym's are floating-point numbers."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 100_000:
        raise InvalidAction(f"{value!r:.40} is not a number of pixels, as in mouse_click(640, 360).")
    return round(value)


def _mouse_click(x: Any, y: Any, button: Any = "left") -> Action:
    if button != "left":
        raise InvalidAction("Only the left button can click here, as in mouse_click(640, 360).")
    return ClickXY(_pixels(x), _pixels(y))


def _tab_focus(index: Any) -> Action:
    if not isinstance(index, int) or not 0 <= index < 10**9:
        raise InvalidAction("tab_focus takes the number of a tab, counted from 0, as in tab_focus(1).")
    return TabFocus(int(index))


def _answer(text: Any) -> Action:
    number = isinstance(text, int | float) and not isinstance(text, bool)
    return StopTask(str(text) if number else _text(text))


FUNCTIONS = {
    "click": BrowserGymFunction(
        "click",
        "click('12')",
        "click an element; an option of a drop-down list is chosen by clicking the option.",
        _click,
    ),
    "fill": BrowserGymFunction(
        "type",
        "fill('12', 'text')",
        "replace what a field holds by a text; fill('12', 'text', press_enter=True) presses Enter afterwards.",
        _fill,
    ),
    "select_option": BrowserGymFunction(
        "type", "select_option('12', 'option')", "choose an option of a drop-down list by its text.", _select
    ),
    "clear": BrowserGymFunction(
        "type", "clear('12')", "empty a field.", lambda bid: Type(_number(bid), "", enter=False)
    ),
    "hover": BrowserGymFunction(
        "hover", "hover('12')", "move the mouse over an element.", lambda bid: Hover(_number(bid))
    ),
    "press": BrowserGymFunction(
        "press",
        "press('12', 'Enter')",
        "move the focus to an element and press a key or a combination, such as 'Control+a'.",
        lambda bid, key_comb: Press(_text(key_comb), _number(bid)),
    ),
    "keyboard_press": BrowserGymFunction(
        "press",
        "keyboard_press('PageDown')",
        "press a key or a combination where the focus is.",
        lambda key: Press(_text(key)),
    ),
    "scroll": BrowserGymFunction(
        "scroll",
        "scroll(0, 200)",
        "scroll the page down by the height of the window; a negative number scrolls up.",
        _scroll,
    ),
    "mouse_click": BrowserGymFunction(
        "click_xy",
        "mouse_click(640, 360)",
        "click a point of the screenshot, in pixels from its upper left corner.",
        _mouse_click,
    ),
    "mouse_move": BrowserGymFunction(
        "hover_xy",
        "mouse_move(640, 360)",
        "move the mouse to a point of the screenshot.",
        lambda x, y: HoverXY(_pixels(x), _pixels(y)),
    ),
    "keyboard_type": BrowserGymFunction(
        "keyboard_type",
        "keyboard_type('text')",
        "type a text where the focus is.",
        lambda text: KeyboardType(_text(text)),
    ),
    "new_tab": BrowserGymFunction("new_tab", "new_tab()", "open an empty tab and go to it.", NewTab),
    "tab_focus": BrowserGymFunction("tab_focus", "tab_focus(1)", "go to another tab; the first is 0.", _tab_focus),
    "tab_close": BrowserGymFunction("close_tab", "tab_close()", "close this tab.", CloseTab),
    "goto": BrowserGymFunction(
        "goto", "goto('http://example.com')", "visit an address in this tab.", lambda url: Goto(_text(url))
    ),
    "go_back": BrowserGymFunction("go_back", "go_back()", "go to the page before.", GoBack),
    "go_forward": BrowserGymFunction("go_forward", "go_forward()", "undo a go_back.", GoForward),
    "noop": BrowserGymFunction("wait", "noop()", "do nothing and look at the page again.", lambda wait_ms=1000: Wait()),
    "send_msg_to_user": BrowserGymFunction(
        "stop",
        "send_msg_to_user('answer')",
        "end the task, when it is done. The answer takes as few words as it can; it is empty if nothing was asked.",
        _answer,
    ),
    "report_infeasible": BrowserGymFunction(
        "stop", "report_infeasible('reason')", "end the task, if it cannot be done.", lambda reason: StopTask("N/A")
    ),
}
"""The functions by name."""
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
"""Advice for BrowserGym functions that are not supported."""


def functions_for(forms: Mapping[str, CommandForm]) -> dict[str, BrowserGymFunction]:
    """The functions for the commands that an environment accepts, with its own descriptions where it has some."""
    available = {name: function for name, function in FUNCTIONS.items() if function.command in forms}
    meanings = {command: form.meaning for command, form in forms.items() if form != ALL_FORMS[command]}
    return {
        name: replace(function, meaning=meanings.get(function.command, function.meaning))
        for name, function in available.items()
    }


def parse_call(code: str, forms: Mapping[str, CommandForm] = FORMS) -> Action:
    """Parse a call of an available function, in linear time. Raises InvalidAction.

    Keys and addresses are not checked yet: `normalized` does that.
    """
    name, positional, named = _CallParser(code).parse()
    functions = functions_for(forms)
    if name not in functions:
        instead = _INSTEAD.get(name, f"The functions are: {', '.join(functions)}.")
        raise InvalidAction(f"{name[:40]} cannot be called. {instead}")
    function = functions[name]
    try:
        inspect.signature(function.make).bind(*positional, **named)
    except TypeError:
        raise InvalidAction(f"These are not the arguments of {name}. Call it as {function.form}") from None
    return function.make(*positional, **named)


def format_call(action: Action) -> str:
    """Format an action as a call: `parse_call(format_call(action)) == action`."""
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
        case ClickXY(x, y):
            return f"mouse_click({x}, {y})"
        case HoverXY(x, y):
            return f"mouse_move({x}, {y})"
        case KeyboardType(text):
            return f"keyboard_type({text!r})"
        case TabFocus(index):
            return f"tab_focus({index})"
        case Goto(url):
            return f"goto({url!r})"
        case StopTask(answer):
            return f"send_msg_to_user({answer!r})"
    return _NO_ARGUMENTS[type(action)]


_NO_ARGUMENTS: dict[type[Action], str] = {
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
    position, code = 0, code.rstrip()
    while position < len(code):
        found = _TOKEN.match(code, position)
        if not found or not found.lastgroup:
            _refuse(code)
        position = found.end()
        yield _Token(found.lastgroup, found[found.lastgroup])


def _refuse(code: str) -> NoReturn:
    quoted = code if len(code) <= 60 else f"{code[:60]}..."
    raise InvalidAction(
        f"{quoted!r} is not one call of a function. Write one call, as in click('12'), "
        "and put it between triple backticks if anything else stands around it."
    )


class _CallParser:
    """Parses one call whose arguments are strings, numbers, True, False, None, or lists of these."""

    def __init__(self, code: str) -> None:
        self._code = code
        self._tokens = list(_tokens(code))
        self._position = 0

    def parse(self) -> tuple[str, list[Any], dict[str, Any]]:
        """Return the function's name, its positional arguments and its named ones."""
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
        if self._position < len(self._tokens):
            _refuse(self._code)
        return name, positional, named

    def _key(self) -> str | None:
        """Consume the name of a named argument, if one begins here."""
        name, equals = (*self._tokens[self._position : self._position + 2], None, None)[:2]
        if name is None or equals is None or name.kind != "name" or equals.text != "=":
            return None
        self._position += 2
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
        if self._position >= len(self._tokens) or (kind and self._tokens[self._position].kind != kind):
            _refuse(self._code)
        self._position += 1
        return self._tokens[self._position - 1]

    def _next_is(self, mark: str) -> bool:
        return self._position < len(self._tokens) and self._tokens[self._position] == ("mark", mark)

    def _mark(self, mark: str) -> None:
        if self._take("mark").text != mark:
            _refuse(self._code)

    def _comma(self, closing: str) -> None:
        """Consume a comma, which is optional before the closing mark."""
        if not self._next_is(closing):
            self._mark(",")


def _unescaped(literal: str) -> str:
    quotes = 3 if literal[:3] in ('"""', "'''") and len(literal) > 5 else 1
    return _ESCAPE.sub(_escape, literal[quotes:-quotes])


def _escape(found: re.Match[str]) -> str:
    """Decode one escape. An unknown escape keeps its backslash, as in Python."""
    if digits := found[1] or found[2] or found[3]:
        code = int(digits, 16)
        return chr(code) if code < 0x110000 else found[0]
    return _ESCAPES.get(found[4], found[0])
