"""The oracle of the text editor: select a word or everything by keys, then press a button."""

from __future__ import annotations

from typing import Any

from agentgym_envs.errors import NoOracle
from agentgym_envs.webarena.actions import Action, Press
from agentgym_envs.webarena.miniwob.oracle.sight import Sight, Solver, click

_BUTTONS = {"bold": "bold", "italics": "italic", "underlined": "underline"}
_COLOURS = {
    "red": "#e60000",
    "orange": "#ff9900",
    "yellow": "#ffff00",
    "green": "#008a00",
    "blue": "#0066cc",
    "purple": "#9933ff",
}


def editor(sight: Sight) -> Action:
    """Peeks at what is selected and styled so far, which an agent knows by what it pressed."""
    text, selection, styled = sight.peek
    what, style = sight.asks(r"(?:give the text|give|make) (.+?) the (?:style|color) (\w+)")
    if styled:
        if styled != [(text if what == "everything" else what).strip()]:
            raise NoOracle("another part of the text was styled")
        return click(sight.one("button", "Submit"))
    if not selection:
        return Press("Control+Home", sight.one("textbox", "editor").id)
    key = _everything(text, selection) if what == "everything" else _word(text.split(" "), what, selection)
    if key:
        return Press(key)
    if style in _BUTTONS:
        return click(sight.one("button", _BUTTONS[style]))
    return click(sight.find("button", _COLOURS[style]) or sight.one("button", "color"))


def _everything(text: str, selection: dict[str, Any]) -> str | None:
    return None if selection["length"] >= len(text.rstrip("\n")) else "Control+a"


def _word(words: list[str], word: str, selection: dict[str, Any]) -> str | None:
    """The next key towards selecting a word, None once it is."""
    if word not in (tidy := [each.rstrip("\n") for each in words]):
        raise NoOracle(f"there is no word {word!r}")
    start = sum(len(each) + 1 for each in words[: tidy.index(word)])
    place, length = selection["index"], selection["length"]
    if place == start and length <= len(word):
        return "Shift+ArrowRight" if length < len(word) else None
    return "ArrowRight" if length == 0 and place < start else "Control+Home"


_STYLED = "editor.getContents().ops.filter(part => part.attributes).map(part => part.insert.trim())"
SOLVERS: dict[str, Solver] = {"text-editor": editor}
PEEKS = {
    "text-editor": f"[editor.getText(), editor.getSelection(), {_STYLED}]",
}
