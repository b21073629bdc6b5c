"""Oracles of the pages where something is typed."""

from __future__ import annotations

from agentgym_envs.webarena.actions import Action, Press
from agentgym_envs.webarena.browser.view import Element
from agentgym_envs.webarena.miniwob.oracle.page_reader import Solver, WidgetReader, click, fill, number, write


def quoted_text(page: WidgetReader) -> Action:
    """What is quoted, into every field, in the letters that are asked for."""
    (text,) = page.asks('"(.+)"')
    if "upper case" in page.goal:
        text = text.upper()
    if "lower case" in page.goal:
        text = text.lower()
    return fill([(field, text) for field in page.fields], page.all("button")[-1])


def date(page: WidgetReader) -> Action:
    """A field of dates takes them as 2012-09-10."""
    month, day, year = page.asks(r"(\d\d)/(\d\d)/(\d{4})")
    return fill([(page.one("Date"), f"{year}-{month}-{day}")], page.one("button", "Submit"))


def time(page: WidgetReader) -> Action:
    """A field of times takes them as 20:22."""
    hour, minute, half = page.asks(r"(\d+):(\d\d)\s([AP])M")
    text = f"{int(hour) % 12 + 12 * (half == 'P'):02}:{minute}"
    return fill([(page.one("InputTime"), text)], page.one("button", "Submit"))


def captcha(page: WidgetReader) -> Action:
    """Letters that lean, each a text of its own."""
    text = "".join(element.name for element in page.body if element.role == "StaticText")
    return fill([(page.one("textbox"), text)], page.one("button", "Submit"))


def copy(page: WidgetReader) -> Action:
    """What a text area holds, into the field. Peeks at which that is: at first the only one that is empty."""
    areas = page.fields
    field = areas.pop(page.peek)
    text = areas[number(page.goal) - 1 if len(areas) > 1 else 0].properties["value"]
    return fill([(field, text)], page.one("button", "Submit"))


def suggestion(page: WidgetReader) -> Action:
    """Type how an item begins, and take what is offered and ends well."""
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
    """List the files, remove the one that is asked for."""
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
