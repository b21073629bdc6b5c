"""Oracles of the mail boxes."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import NamedTuple

from agentgym_envs.errors import NoOracle
from agentgym_envs.webarena.actions import Action
from agentgym_envs.webarena.browser.view import Element
from agentgym_envs.webarena.miniwob.oracle.page_reader import Solver, WidgetReader, click, fill

_PLAIN = {
    "reply": r'email by (?P<by>.+) and reply to them with the text "(?P<message>.+)"',
    "forward": r"email by (?P<by>.+) and forward that email to (?P<to>.+)\.",
    "delete": r"email by (?P<by>.+) and click the trash",
    "star": r"email by (?P<by>.+) and click the star",
}


class _Order(NamedTuple):
    task: str
    by: str
    to: str = ""
    message: str = ""


def plain(page: WidgetReader) -> Action:
    """What is asked is always worded alike."""
    for task, pattern in _PLAIN.items():
        if found := re.search(pattern, page.goal):
            return _carry_out(page, _Order(task, **found.groupdict()))
    raise NoOracle(f"not understood: {page.goal!r}")


def worded(page: WidgetReader) -> Action:
    """What is asked comes in people's own words. Peeks at what they mean."""
    return _carry_out(page, _Order(**{"task": "forward", **page.peek}))


def _carry_out(page: WidgetReader, order: _Order) -> Action:
    back = page.find("button", "back")
    if back and not _leads_on(page, order):
        return click(back)
    if send := page.find("button", "send"):
        return fill([(page.fields[0], order.message or order.to)], send)
    wanted = "Reply" if order.task == "reply" else "Forward"
    if answer := page.find("button", wanted):
        return click(answer)
    mail = _mail_by(page, order.by)
    if order.task in ("reply", "forward"):
        return click(mail)
    icon = "trash" if order.task == "delete" else "star"
    return click(next(element for element in page.after(mail) if element.name == icon))


def _leads_on(page: WidgetReader, order: _Order) -> bool:
    """Whether what is open, a mail or an answer, is what the order is about. Whose mail is forwarded is not told."""
    if order.task not in ("reply", "forward"):
        return False
    if page.find("button", "send") is None:
        return order.by in page.texts
    fields = 1 if order.task == "reply" else 2
    return len(page.fields) == fields and (fields == 2 or order.by in page.texts)


def _mail_by(page: WidgetReader, sender: str) -> Element:
    """A mail in the list. One of many words has no name of its own, but begins with its sender."""
    for mail, first in pairwise(page.body):
        if mail.role == "generic" and (mail.name or first.name).split(" ")[0] == sender:
            return mail
    raise NoOracle(f"no mail by {sender} is to be seen")


SOLVERS: dict[str, Solver] = {
    "email-inbox": plain,
    "email-inbox-delete": plain,
    "email-inbox-forward": plain,
    "email-inbox-forward-nl": worded,
    "email-inbox-forward-nl-turk": worded,
    "email-inbox-important": plain,
    "email-inbox-nl-turk": worded,
    "email-inbox-noscroll": plain,
    "email-inbox-reply": plain,
    "email-inbox-star-reply": plain,
}
PEEKS = dict.fromkeys(
    ("email-inbox-forward-nl", "email-inbox-forward-nl-turk", "email-inbox-nl-turk"), "core.currentFields"
)
