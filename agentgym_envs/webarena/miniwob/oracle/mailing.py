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


class _Request(NamedTuple):
    task: str
    by: str
    to: str = ""
    message: str = ""


def plain(page: WidgetReader) -> Action:
    """Follow an objective with a fixed wording."""
    for task, pattern in _PLAIN.items():
        if found := re.search(pattern, page.goal):
            return _carry_out(page, _Request(task, **found.groupdict()))
    raise NoOracle(f"the oracle cannot parse the objective: {page.goal!r}")


def worded(page: WidgetReader) -> Action:
    """Follow an objective in free wording. Peeks at its meaning."""
    return _carry_out(page, _Request(**{"task": "forward", **page.peek}))


def _carry_out(page: WidgetReader, request: _Request) -> Action:
    back = page.find("button", "back")
    if back and not _is_relevant(page, request):
        return click(back)
    if send := page.find("button", "send"):
        return fill([(page.fields[0], request.message or request.to)], send)
    wanted = "Reply" if request.task == "reply" else "Forward"
    if answer := page.find("button", wanted):
        return click(answer)
    mail = _mail_by(page, request.by)
    if request.task in ("reply", "forward"):
        return click(mail)
    icon = "trash" if request.task == "delete" else "star"
    return click(next(element for element in page.after(mail) if element.name == icon))


def _is_relevant(page: WidgetReader, request: _Request) -> bool:
    """Return whether the open mail or answer belongs to the request. A forwarded mail does not show its sender."""
    if request.task not in ("reply", "forward"):
        return False
    if page.find("button", "send") is None:
        return request.by in page.texts
    fields = 1 if request.task == "reply" else 2
    return len(page.fields) == fields and (fields == 2 or request.by in page.texts)


def _mail_by(page: WidgetReader, sender: str) -> Element:
    """Return a mail of the list. A long mail has no name of its own, and its first text is the sender."""
    for mail, first in pairwise(page.body):
        if mail.role == "generic" and (mail.name or first.name).split(" ")[0] == sender:
            return mail
    raise NoOracle(f"the page has no mail by {sender}")


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
