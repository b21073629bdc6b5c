"""Playwright's key names, and a parser of the names that models write for them."""

from __future__ import annotations

from agentgym_envs.errors import InvalidAction

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
"""Playwright's key names by their lower-case names and aliases. Source: Playwright's US keyboard layout."""
_SEPARATORS = str.maketrans("", "", " \t_-")


def parse_keys(text: str) -> str:
    """Translate a key or a combination to Playwright's names. Raises InvalidAction."""
    *held, last = [_key(part) for part in _keys(text.strip())]
    if len(set(held)) != len(held) or not set(held) <= set(_MODIFIERS):
        raise InvalidAction("In a combination all but the last key are Control, Alt, Shift or Meta, and each once.")
    return "+".join([*held, last])


def _keys(text: str) -> list[str]:
    """Split a combination into keys. The plus sign is also a key, and a hyphen may separate keys."""
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
    if name := KEYS.get(text.lower().translate(_SEPARATORS)):
        return name
    if text:
        raise InvalidAction(f"There is no key {shortened(text)}. A text is written with type.")
    raise InvalidAction("A key is missing.")


def shortened(text: str) -> str:
    """A quotation of the model's text, at most 40 characters long."""
    return repr(text if len(text) <= 40 else f"{text[:40]}...")
