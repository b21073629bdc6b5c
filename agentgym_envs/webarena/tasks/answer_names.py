"""Names and other texts in answers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from agentgym_envs.webarena.evaluators.wording import MARK

_SEPARATORS = r"[ .()/-]{0,2}"
_MIN_CODE = 7  # digits of a number that may be written in groups, such as a telephone number


def take_names(text: str, intent: str, wanted: Sequence[Sequence[str]], others: Sequence[str]) -> tuple[str, str]:
    """Put `MARK` in the place of all wanted names. A name may have several spellings.

    Returns the text, and what is wrong with it, as a predicate: a missing or an unwanted name. Longer names are looked
    for first, so that a part of a name does not count. All texts are normal.
    """
    text = _without_comparisons(text, intent, others)
    if len(wanted) == 1 and not any(_SECOND.search(f"{name} ") for name in wanted[0]):
        text = _SECOND.sub(" ", text)
    spellings = {one: number for number, names in enumerate(wanted) for one in names}
    found = set()
    for name in sorted({*spellings, *others} - {""}, key=lambda name: (-len(name), name)):
        if name.partition(" ")[0].rstrip(".?!") not in text and not _is_code(name):
            continue
        left, count = _pattern(name).subn(f" {MARK} " if name in spellings else " ", text)
        if count and name not in spellings:
            return text, f"also includes {name!r}"
        if count:
            found.add(spellings[name])
        text = left
    for number, names in enumerate(wanted):
        if number not in found:
            return text, f"does not include {names[0]!r}"
    similar = next((other for name in spellings for other in _similar(name, text) if other not in intent), None)
    return text, f"also includes {similar!r}" if similar else ""


_SECOND = re.compile(r"\b(?:as )?(?:compared (?:to|with)|followed by|ahead of) [^.?!:;]*")
"""A part that names something beside the answer."""
_COMPARATIVES = (
    r"\b(?:more|most|(?:high|larg|great|bigg|long)(?:er|est))\b",
    r"\b(?:less|least|fewer|(?:low|cheap|small|short|near|clos)(?:er|est))\b",
)


def _without_comparisons(text: str, intent: str, others: Sequence[str]) -> str:
    """Remove "than B" from "A is higher than B" if the intent names B and asks for what is higher."""
    asked = [words for words in _COMPARATIVES if re.search(words, intent)]
    if len(asked) != 1 or " than " not in text:
        return text
    for name in others:
        if name and name in intent and name in text:
            compared = rf"({asked[0]}[^.?!:;]*?) than (?:the )?{_pattern(name).pattern}"
            text = re.sub(compared, r"\1", text)
    return text


@lru_cache(maxsize=20_000)
def _pattern(name: str) -> re.Pattern[str]:
    """Match a name as whole words; a long number may have its digits in groups."""
    name = name.rstrip(".?!") or name
    if _is_code(name):
        return _whole(_SEPARATORS.join(re.findall(r"\d", name)), name)
    return _whole(re.sub(r"(\d?)\\ (\D?)", _gap, re.escape(name)), name)


def _gap(match: re.Match[str]) -> str:
    """A space in a name may be a dash; before a unit it may be missing."""
    return f"{match[1]}(?: - | ){'?' * bool(match[1] and match[2].isalpha())}{match[2]}"


def _whole(body: str, name: str) -> re.Pattern[str]:
    before = r"(?<!\w)(?<!\w[-.@])" if name[:1].isalnum() else ""
    after = r"(?![\w@]|-\w|[.,]\w)" if name[-1:].isalnum() else ""
    return re.compile(f"{before}{body}{after}")


def _is_code(name: str) -> bool:
    return not re.search(r"[^\W\d_]", name) and len(re.findall(r"\d", name)) >= _MIN_CODE


def _similar(name: str, text: str) -> list[str]:
    """Return the parts of a text that differ from a name only in the values of its numbers."""
    if not re.search(r"\d", name):
        return []
    if _is_code(name):
        return _whole(_SEPARATORS.join([r"\d"] * len(re.findall(r"\d", name))), name).findall(text)
    letters = re.search(r"[^\W\d_]", name) is not None
    parts = re.split(r"(\d+)", name)
    parts[::2] = map(re.escape, parts[::2])
    parts[1::2] = (r"\d+" if letters else rf"\d{{{len(part)}}}" for part in parts[1::2])
    return _whole("".join(parts), name).findall(text)
