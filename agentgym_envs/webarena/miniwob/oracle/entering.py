"""Oracles of the pages with text to type."""

from __future__ import annotations

from agentgym_envs.webarena.actions import Action, Press
from agentgym_envs.webarena.browser.view import Element
from agentgym_envs.webarena.miniwob.oracle.page_reader import Solver, WidgetReader, click, fill, number, write


def quoted_text(page: WidgetReader) -> Action:
    """Type the quoted text into every field, in upper or lower case if requested."""
    (text,) = page.asks('"(.+)"')
    if "upper case" in page.goal:
        text = text.upper()
    if "lower case" in page.goal:
        text = text.lower()
    return fill([(field, text) for field in page.fields], page.all("button")[-1])


def date(page: WidgetReader) -> Action:
    """Type a date in the form 2012-09-10."""
    month, day, year = page.asks(r"(\d\d)/(\d\d)/(\d{4})")
    return fill([(page.one("Date"), f"{year}-{month}-{day}")], page.one("button", "Submit"))


def time(page: WidgetReader) -> Action:
    """Type a time in the form 20:22."""
    hour, minute, half = page.asks(r"(\d+):(\d\d)\s([AP])M")
    text = f"{int(hour) % 12 + 12 * (half == 'P'):02}:{minute}"
    return fill([(page.one("InputTime"), text)], page.one("button", "Submit"))


def captcha(page: WidgetReader) -> Action:
    """Type the letters, which are separate texts."""
    text = "".join(element.name for element in page.body if element.role == "StaticText")
    return fill([(page.one("textbox"), text)], page.one("button", "Submit"))


def copy(page: WidgetReader) -> Action:
    """Copy a text area into the field. Peeks at the position of the field, which is empty only at first."""
    areas = page.fields
    field = areas.pop(page.peek)
    text = areas[number(page.goal) - 1 if len(areas) > 1 else 0].properties["value"]
    return fill([(field, text)], page.one("button", "Submit"))


def suggestion(page: WidgetReader) -> Action:
    """Type the beginning of an item, and choose a suggestion with the right ending."""
    parts = page.asks('starts with "(.+?)"(?: and ends with "(.+?)")?')
    begin, end = parts[0], parts[1] or ""

    def fits(text: str) -> bool:
        return text.startswith(begin) and text.endswith(end)

    field = page.fields[0]
    offered: list[Element] = [item for item in page.all("menuitem") if fits(item.name)]
    if offered:
        return click(offered[0])
    if fits(field.properties.get("value", "")):
        return click(page.one("button", "Submit"))
    return write(field, begin)


def terminal(page: WidgetReader) -> Action:
    """List the files and remove the requested one."""
    field, texts = page.fields[0], page.texts
    if texts[-1] != "user$":  # something was typed without Enter
        return Press("Backspace", field.id)
    if "ls" not in texts:
        return write(field, "ls", enter=True)
    files = texts[texts.index("ls") + 1].split()
    if "no file extension" in page.goal:
        name = next(name for name in files if "." not in name)
    else:
        (ending,) = page.asks(r"extension (\S+)$")
        name = next(name for name in files if name.endswith(ending))
    return write(field, f"rm {name}", enter=True)


SOLVERS: dict[str, Solver] = {
    "copy-paste": copy,
    "copy-paste-2": copy,
    "enter-date": date,
    "enter-password": quoted_text,
    "enter-text": quoted_text,
    "enter-text-2": quoted_text,
    "enter-text-dynamic": quoted_text,
    "enter-time": time,
    "terminal": terminal,
    "text-transform": captcha,
    "use-autocomplete": suggestion,
    "use-autocomplete-nodelay": suggestion,
}
_FIELD = "[...document.querySelectorAll('#area textarea, #area input')].findIndex(each => each.tagName === 'INPUT')"
PEEKS = {"copy-paste": _FIELD, "copy-paste-2": _FIELD}
